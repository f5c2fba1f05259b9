-- What runs lost that were stopped for other jobs (Query.lostWork).
CREATE INDEX runs_preempted ON runs (ended_at) WHERE cause = 'PREEMPTED';
