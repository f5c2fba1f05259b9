-- The end of a run that somebody stopped so that its job is started again.
ALTER TYPE end_cause ADD VALUE 'REQUEUED';
