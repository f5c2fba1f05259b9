-- What machines have and tasks take besides CPUs, memory and places: amounts by kind of resource as operators name them.
ALTER TABLE machines ADD COLUMN resources jsonb NOT NULL DEFAULT '{}', ADD COLUMN resources_used jsonb NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD COLUMN resources_per_task jsonb;
ALTER TABLE runs ADD COLUMN resources_per_task jsonb;
