// Generated from schema.graphql by scripts/codegen-documents.mjs. Do not edit.
export const JOB_STATES = [
  'QUEUED',
  'HELD',
  'DISPATCHED',
  'ASSIGNED',
  'RUNNING',
  'CANCELLING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;
