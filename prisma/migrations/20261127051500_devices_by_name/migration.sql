-- Devices that each task of a job asks for by what they are: kind, model, memory, shares.
ALTER TABLE jobs ADD COLUMN devices_per_task jsonb;
