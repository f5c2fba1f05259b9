-- The images of jobs that lie at an agent, as it has reported them: rows of agents that serve machines only (triggers.agents_left).
CREATE TABLE agent_images (
  agent_id integer NOT NULL REFERENCES agents (id),
  site_id integer NOT NULL REFERENCES sites (id),
  name text NOT NULL,
  digest text,
  size_mb double precision NOT NULL,
  PRIMARY KEY (agent_id, name),
  CONSTRAINT agent_images_sizes CHECK (size_mb >= 0 AND size_mb < 'Infinity')
);
CREATE INDEX agent_images_site ON agent_images (site_id, name);
