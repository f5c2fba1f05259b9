-- What runs used of the devices that they had for themselves.
ALTER TABLE runs ADD COLUMN device_s double precision, ADD COLUMN device_memory_mb double precision;
ALTER TABLE tasks ADD COLUMN device_s double precision, ADD COLUMN device_memory_mb double precision;
