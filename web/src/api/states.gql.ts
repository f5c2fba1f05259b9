// Generated from src/core/states.ts by scripts/codegen-documents.mjs. Do not edit.
export const JOB_STATES = [
  'QUEUED',
  'BLOCKED',
  'HELD',
  'DISPATCHED',
  'ASSIGNED',
  'RUNNING',
  'CANCELLING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;

export const WAITING_STATES = [
  'QUEUED',
  'BLOCKED',
  'HELD',
  'DISPATCHED',
] as const;

export const PENDING_STATES = [
  'QUEUED',
  'DISPATCHED',
] as const;

export const LIVE_STATES = [
  'ASSIGNED',
  'RUNNING',
  'CANCELLING',
] as const;

export const ENDED_STATES = [
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;

export const CANCELLABLE_STATES = [
  'QUEUED',
  'BLOCKED',
  'HELD',
  'DISPATCHED',
  'ASSIGNED',
  'RUNNING',
] as const;

export type JobState = (typeof JOB_STATES)[number];
