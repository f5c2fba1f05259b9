-- Devices that machines have, which runs hold by name: [{"id", "kind", "model", "memoryMb", "shares", "link"}]; of a run, a list for each of its machines.
ALTER TABLE machines ADD COLUMN devices jsonb NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN devices jsonb;
-- What live runs hold. The key is the promise that nobody holds what another has.
CREATE TABLE device_holds (
  machine_id integer NOT NULL,
  unit text NOT NULL,
  job_id bigint NOT NULL,
  epoch integer NOT NULL,
  PRIMARY KEY (machine_id, unit)
);
