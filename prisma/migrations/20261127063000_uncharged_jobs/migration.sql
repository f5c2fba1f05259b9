-- Jobs whose work is not charged: what usage leaves out (Usage.chargedCpuS).
CREATE INDEX jobs_uncharged ON jobs (id) WHERE NOT charged;
