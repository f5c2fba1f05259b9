/**
 * What people change of jobs that have not ended. Pure: both stores lock and read the jobs, and carry out what is decided here.
 */
import { isDeepStrictEqual } from 'node:util';
import { amendableFields, isWaiting, type JobState, possible } from '../core/states.js';
import { type Lanes, laneFault } from './lanes.js';
import { type AgainOf, type JobWait, neededToRead, stored, targetsOf, waits } from './needs.js';
import { bytesOf } from './rules.js';
import type { ChangeableField, ChangeableValues, ChangeFault, ChangingJob, JobChanges } from './store.js';

const amendable: ReadonlySet<string> = new Set(amendableFields);

export type ChangeDecision =
  /** It is already as it is to be. */
  | { kind: 'SAME' }
  | { kind: 'REFUSED'; fault: ChangeFault }
  /** `wait`: null: as before. */
  | {
      kind: 'DONE';
      action: 'amend' | 'change';
      state: JobState;
      /** New values of this job. */
      values: Partial<ChangeableValues>;
      note: string;
      bytes: number;
      wait: JobWait | null;
    };

/** Up to which id jobs belong to groups that are needed by name, and how members of groups have been run again. */
interface AskedOfGroups {
  until: number;
  againOf?: AgainOf | undefined;
}

/** `circular`: those that would need themselves. `lanes`: where it is to be in one. */
export function decideChange(
  job: ChangingJob,
  changes: JobChanges,
  {
    circular,
    lanes = null,
    ...groups
  }: AskedOfGroups & { circular: ReadonlySet<number>; lanes?: Lanes | null | undefined },
): ChangeDecision {
  const given = valuesOf(job, changes);
  const values = Object.entries(given) as [ChangeableField, unknown][];
  const changed = values.filter(([field, value]) => !isDeepStrictEqual(job[field], value));
  const wait = newWait(job, changes, groups, lanes?.needs.get(job.id));
  if (changed.length === 0 && wait === null) return { kind: 'SAME' };
  const fault =
    stateFault(job, changed, wait) ??
    partsFault(job, changed, changes) ??
    needsFault(job, changes, wait, circular) ??
    (lanes && laneFault(job, lanes, circular.size === 0));
  if (fault !== null) return { kind: 'REFUSED', fault };
  const after = { ...job, ...given };
  const wrong = changes.fault(after);
  if (wrong !== null) return { kind: 'REFUSED', fault: wrong };
  const before = job.wait ?? NO_WAIT;
  const note = noteOf([
    ...changed
      .map(([field, value]): Said => [field, said(field, job[field]), said(field, value)])
      // No amounts are none, with devices or without.
      .filter(([, was, is]) => was !== is),
    ...(wait === null ? [] : saidWaits(before, wait)),
  ]);
  const bytes = job.bytes + takes(after, wait ?? before) - takes(job, before);
  const action = wait === null && changed.every(([field]) => amendable.has(field)) ? 'amend' : 'change';
  return {
    kind: 'DONE',
    action,
    state: action === 'amend' ? job.state : stateOf(job, wait, changes.now),
    values: given,
    note,
    bytes,
    wait,
  };
}

function valuesOf(job: ChangingJob, { values, memoryMbPerCpu }: JobChanges): Partial<ChangeableValues> {
  const given = { ...values, ...amountsBeside(job, values) };
  if (memoryMbPerCpu === null) return given;
  const { cpusPerTask = job.cpusPerTask, memoryMbPerTask = 0 } = values;
  return { ...given, memoryMbPerTask: Math.max(memoryMbPerTask, memoryMbPerCpu * cpusPerTask) };
}

/** A job that asks for devices by what they are has amounts, too, if only none; any other has none only as null. */
function amountsBeside(
  job: ChangingJob,
  values: Partial<ChangeableValues>,
): Pick<Partial<ChangeableValues>, 'resourcesPerTask'> {
  if (!('devicesPerTask' in values || 'resourcesPerTask' in values)) return {};
  const { devicesPerTask = job.devicesPerTask, resourcesPerTask = job.resourcesPerTask } = values;
  if (devicesPerTask !== null) return { resourcesPerTask: resourcesPerTask ?? {} };
  const isNone = resourcesPerTask === null || Object.keys(resourcesPerTask).length === 0;
  return { resourcesPerTask: isNone ? null : resourcesPerTask };
}

const NO_WAIT: JobWait = { needs: [], onUnmet: 'CANCEL', notBefore: null, dueAt: null, because: null };

/** What it waits for from now on; null: as before. */
function newWait(
  job: ChangingJob,
  { wait, now }: JobChanges,
  { until, againOf }: AskedOfGroups,
  inLane: JobWait['needs'] | undefined,
): JobWait | null {
  if (wait === null && inLane === undefined) return null;
  const before = job.wait ?? NO_WAIT;
  const { onUnmet = before.onUnmet, notBefore = before.notBefore } = wait ?? {};
  const asked =
    wait?.needs === undefined
      ? (inLane ?? before.needs)
      : [...stored(wait.needs, [until], againOf), ...neededToRead(job.inputs)];
  const needs = isDeepStrictEqual(anyTime(asked), anyTime(before.needs)) ? before.needs : asked;
  if (needs === before.needs && onUnmet === before.onUnmet && notBefore === before.notBefore) return null;
  const dueAt = needs.length === 0 ? (notBefore ?? now) : null;
  return { needs, onUnmet, notBefore, dueAt, because: null };
}

/** Groups as they were asked for: without the time of that. */
const anyTime = (needs: JobWait['needs']): object =>
  needs.map(({ expression, of }) => ({
    expression,
    of: of.map((term) => {
      if ('job' in term) return term;
      const { again: _, ...asked } = 'until' in term ? { ...term, until: 0 } : term;
      return asked;
    }),
  }));

/** A job that waits for needs goes on waiting: whoever decides about them finds that it needs nothing any more. */
function stateOf({ state }: ChangingJob, wait: JobWait | null, now: number): JobState {
  if (state === 'HELD' || state === 'BLOCKED') return state;
  return waits(wait, now) ? 'BLOCKED' : 'QUEUED';
}

function stateFault(
  { id, state, foreign, epoch, wait: before }: ChangingJob,
  changed: readonly (readonly [ChangeableField, unknown])[],
  wait: JobWait | null,
): ChangeFault | null {
  const refuse = (field: string | null, why: string): ChangeFault => ({
    field,
    code: 'CONFLICT',
    message: `${field === null ? '' : `${field}: `}job_${id} is ${state}: ${why}`,
  });
  if (!possible('amend', state)) return refuse(null, 'ended jobs cannot be changed; submit it again');
  if (foreign) return refuse(null, 'it is a job of a peer and can only be changed there');
  if (isWaiting(state)) {
    // What its runs have used is charged by the job: nobody is to be rid of that afterwards.
    if (epoch > 0 && changed.some(([name, value]) => name === 'charged' && value === false))
      return refuse('class', 'a run of it has started, which is charged; accepted: classes that are charged');
    const asked = wait !== null && (wait.needs !== before?.needs || wait.onUnmet !== before.onUnmet);
    return asked && wait.needs.length > 0 && epoch > 0
      ? refuse('needs', 'a run of it has started, so its dependencies no longer count')
      : null;
  }
  const field = changed.find(([name]) => !amendable.has(name))?.[0] ?? (wait === null ? null : 'needs');
  return field === null
    ? null
    : refuse(
        field,
        `its agent already has the job; accepted now: ${amendableFields.join(', ')}; or requeue it first`,
      );
}

/** What a job with parts does not say of all its tasks: it is said by part, and cannot be changed. */
const byPart: ReadonlySet<ChangeableField> = new Set([
  ...(['tasks', 'cpusPerTask', 'memoryMbPerTask', 'resourcesPerTask', 'devicesPerTask'] as const),
  ...(['tasksPerMachine', 'exclusive', 'allAlike', 'sameSwitch'] as const),
]);

function partsFault(
  { id, parts }: ChangingJob,
  changed: readonly (readonly [ChangeableField, unknown])[],
  { values: { retry } }: JobChanges,
): ChangeFault | null {
  const grows = (retry?.rules ?? []).some(({ memoryFactor }) => memoryFactor > 1);
  const field = parts && changed.find(([name]) => byPart.has(name) || (name === 'retry' && grows))?.[0];
  if (!field) return null;
  const message = `${field}: job_${id} has parts, whose requirements cannot be changed; cancel it and submit it again`;
  return { field, code: 'CONFLICT', message };
}

function needsFault(
  { id, userId }: ChangingJob,
  { userId: asker, wait: asked }: JobChanges,
  wait: JobWait | null,
  circular: ReadonlySet<number>,
): ChangeFault | null {
  if (wait === null || asked?.needs === undefined) return null;
  const refuse = (message: string): ChangeFault => ({ field: 'needs', code: 'BAD_USER_INPUT', message });
  if (circular.has(id)) return refuse(`needs: job_${id} would depend on itself through its new dependencies`);
  const named = [...targetsOf(wait.needs).values()].find((target) => 'group' in target);
  return named !== undefined && userId !== asker
    ? refuse(
        `needs: the group ${JSON.stringify('group' in named ? named.group : '')} is yours, but job_${id} belongs to another user; accepted: jobs and bulk groups`,
      )
    : null;
}

/** Of what may change, what a job takes of its user's share. */
const takes = (job: ChangeableValues, { needs }: JobWait): number =>
  bytesOf({ ...job, ...NOTHING, wait: { needs, onUnmet: 'CANCEL', notBefore: null } });
const NOTHING = {
  ...{ command: '', arguments: [], environment: {}, workingDirectory: null, inputs: [], outputs: [] },
  ...{ downloads: null, uploads: null },
  ...{ preferences: [], image: null, parts: null },
};

// In words ----------------------------------------------------------------------------------------------------------------

type Said = readonly [field: string, before: string, after: string];
/** Characters of a value, and of what an event says of all. */
const VALUE_CHARS = 100;
const NOTE_CHARS = 2_000;

const cut = (text: string, chars: number): string =>
  text.length > chars ? `${text.slice(0, chars - 1)}…` : text;

export const noteOf = (changes: readonly Said[]): string =>
  cut(
    changes
      .map(([field, before, after]) => `${field} ${cut(before, VALUE_CHARS)} → ${cut(after, VALUE_CHARS)}`)
      .join('; '),
    NOTE_CHARS,
  );

const timeSaid = (at: number | null): string => (at === null ? 'none' : new Date(at * 1000).toISOString());

function said(field: ChangeableField, value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (field === 'deadline') return timeSaid(value as number);
  const written = JSON.stringify(value);
  return written === '{}' ? 'none' : written;
}

const saidWaits = (before: JobWait, after: JobWait): Said[] =>
  (
    [
      ['needs', saidNeeds(before.needs), saidNeeds(after.needs)],
      ['onUnmet', before.onUnmet, after.onUnmet],
      ['notBefore', timeSaid(before.notBefore), timeSaid(after.notBefore)],
    ] as const
  ).filter(([, was, is]) => was !== is);

export function saidNeeds(needs: JobWait['needs']): string {
  if (needs.length === 0) return 'none';
  const terms = needs.map(({ expression, of }) =>
    of
      .map((term) => {
        const what =
          'job' in term ? `job_${term.job}` : 'jobGroup' in term ? `group_${term.jobGroup}` : term.group;
        const again = 'again' in term && term.again ? ` as of job_${term.again.asOf}` : '';
        return `${term.condition} of ${what}${again}${term.minDelayS === 0 ? '' : ` + ${term.minDelayS} s`}`;
      })
      .join(expression === 'ALL' ? ' and ' : ' or '),
  );
  return terms.length === 1 ? (terms[0] as string) : terms.map((term) => `(${term})`).join(' and ');
}
