/** Changes of jobs that have not ended, checked as submissions are. */
import { changeableFields } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { jobFields } from '../../store/job-fields.js';
import type {
  ChangeableField,
  ChangeableValues,
  ChangeFault,
  JobChanges,
  NewJob,
} from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { within } from '../check.js';
import { ApiError, badInput, notAccepted } from '../errors.js';
import type { JobChangesInput, JobInput, UpdateJobsInput } from '../generated/types.js';
import { amountsShown } from '../resources.js';
import { handlesAll, submitterOf } from './access.js';
import type { Judge } from './fit.js';
import { type Fault, newJob, type Places, placesOf, storedJobs } from './job-input.js';
import { waitsOfSubmission } from './needs.js';
import type { ServiceParts } from './parts.js';

/** Machines are chosen by them. */
const FITTED: readonly ChangeableField[] = [
  ...(['tasks', 'cpusPerTask', 'memoryMbPerTask', 'resourcesPerTask', 'licenses', 'resources'] as const),
  ...([
    'devicesPerTask',
    'tasksPerMachine',
    'exclusive',
    'allAlike',
    'sameSwitch',
    'os',
    'architecture',
    'machineConstraint',
    'runTimeLimitS',
  ] as const),
];

/** A job that takes the least: what is wrong with changes of it is wrong with them for every job. */
const LEAST: JobInput = {
  ...{
    command: 'command',
    arguments: [],
    environment: [],
    licenses: [],
    resourcesPerTask: [],
    devicesPerTask: [],
    resources: [],
    inputs: [],
  },
  ...{
    outputs: [],
    downloads: [],
    uploads: [],
    preferences: [],
    needs: [],
    tasks: 1,
    cpusPerTask: 1,
    memoryMbPerTask: 0,
    boost: 0,
    preemptionClass: 0,
  },
  ...{ estimateS: MAX.leastSeconds, benchmark: MAX.leastBenchmark, sandboxMb: 0, outputMb: 0, killGraceS: 0 },
  ...{
    warnSignal: 'SIGTERM',
    restartable: true,
    launch: 'EVERY_TASK',
    onTaskFailure: 'END_ALL',
    held: false,
  },
  onUnmet: 'CANCEL',
};

/** What the store is told to change. Throws what is wrong with it whatever the jobs are. */
export async function changesOf(
  parts: Pick<ServiceParts, 'queries' | 'limits' | 'fits' | 'now'>,
  viewer: Viewer,
  { set, allowUnfit }: Pick<UpdateJobsInput, 'set' | 'allowUnfit'>,
): Promise<JobChanges> {
  const refuse = ({ field, code, message }: Fault): never => {
    throw new ApiError(code, `set.${message}`, { field: `set.${field}` });
  };
  const given = Object.keys(set).filter((field) => set[field as keyof JobChangesInput] !== undefined);
  if (given.length === 0)
    refuse({
      field: 'name',
      code: 'BAD_USER_INPUT',
      message: notAccepted('name', undefined, 'at least one field'),
    });
  for (const field of given)
    if (set[field as keyof JobChangesInput] === null && !mayBeNull(field))
      refuse({
        field,
        code: 'BAD_USER_INPUT',
        message: notAccepted(field, null, 'a value; omit it to keep the current one'),
      });
  const now = parts.now();
  const { atOnce, ...others } = set;
  if (atOnce !== undefined && atOnce !== null) within('set.atOnce', atOnce, 0, MAX.integer);
  if (atOnce !== undefined && given.includes('needs'))
    throw badInput('set.atOnce', atOnce, 'without needs, which are a change of their own');
  const asked: JobInput = {
    ...LEAST,
    ...(others as Partial<JobInput>),
    resourcesPerTask: set.resourcesPerTask ?? [],
    devicesPerTask: set.devicesPerTask ?? [],
    resources: set.resources ?? [],
    // As many as the bounds on them need.
    tasks: set.tasks ?? Math.max(1, Math.min(MAX.tasks, set.tasksPerMachine?.min ?? 1)),
  };
  const places = await placesOf([asked], parts.queries, submitterOf(viewer));
  const [whole] = storedJobs([newJob(asked, { ...submitterOf(viewer), places, now }, refuse)], places) as [
    NewJob,
  ];
  const fields = changeableFields.filter(
    (field) =>
      given.includes(field) ||
      (field === 'resources' && whole.resources !== null) ||
      (field === 'charged' && given.includes('class')) ||
      // A class has a rank of its own.
      (field === 'preemptionClass' && (set.class ?? null) !== null),
  );
  // As plain objects, to be compared with what is stored.
  const values = structuredClone(
    Object.fromEntries(fields.map((field) => [field, field === 'atOnce' ? atOnce : whole[field]])),
  ) as Partial<ChangeableValues>;
  const { memoryMbPerCpu = null } = set;
  const fitted = memoryMbPerCpu !== null || fields.some((field) => FITTED.includes(field));
  const judge = !allowUnfit && fitted ? await parts.fits.afresh() : null;
  return {
    values,
    memoryMbPerCpu,
    wait: await askedWait(parts, viewer, set, refuse),
    userId: viewer.userId,
    fault: (job) => faultOf(job, judge),
    bytesMax: handlesAll(viewer) ? null : parts.limits.userJobBytes,
    now,
  };
}

const mayBeNull = (field: string): boolean =>
  field === 'notBefore' ||
  // Nobody takes back that it was said.
  (field !== 'atOnce' && field in jobFields && jobFields[field as ChangeableField].nullable);

async function askedWait(
  parts: Pick<ServiceParts, 'queries'>,
  viewer: Viewer,
  { needs, onUnmet, notBefore }: JobChangesInput,
  refuse: (fault: Fault) => never,
): Promise<JobChanges['wait']> {
  if (needs === undefined && onUnmet === undefined && notBefore === undefined) return null;
  // Members of a group, of which the job may be one, are found by the store.
  const asked = { needs: needs ?? [], onUnmet: onUnmet ?? ('CANCEL' as const), notBefore };
  const input = { ref: null, groupName: null, inputs: [], outputs: [], ...asked };
  const waitOf = await waitsOfSubmission(
    parts,
    viewer,
    [{ input, array: null }],
    (_, { message, ...fault }) => refuse({ ...fault, message: message.replace(/^jobs\.0: /, 'needs: ') }),
  );
  const found = waitOf(0, null);
  return {
    ...(needs && { needs: found?.needs ?? [] }),
    ...(onUnmet && { onUnmet }),
    ...(notBefore !== undefined && { notBefore: notBefore === null ? null : notBefore.getTime() / 1000 }),
  };
}

/** All that it says is known to be good by itself. */
const ANYWHERE: Places = {
  datasets: new Set(),
  sites: new Set(),
  kinds: null,
  pools: null,
  reservations: new Map(),
  classes: null,
};

/** What is wrong with the job as it would be: what several fields have to agree on, and machines. */
function faultOf(job: Parameters<JobChanges['fault']>[0], judge: Judge | null): ChangeFault | null {
  const faults: Fault[] = [];
  const whole = newJob(
    inputOf(job),
    { mayRaise: true, userId: 0, places: ANYWHERE, now: null },
    (fault) => void faults.push(fault),
  );
  const fault =
    faults[0] ??
    judge?.({ ...whole, inputs: job.inputs, outputs: job.outputs, parts: job.parts } satisfies NewJob);
  return fault ? { ...fault, code: fault.code === 'NEVER_FITS' ? 'NEVER_FITS' : 'BAD_USER_INPUT' } : null;
}

/** As it would be submitted, as far as it may be changed. */
const inputOf = ({
  deadline,
  resourcesPerTask,
  devicesPerTask,
  resources,
  mail,
  charged: _,
  atOnce: __,
  ...job
}: ChangeableValues): JobInput => ({
  ...LEAST,
  ...Object.fromEntries(changeableFields.map((field) => [field, (job as Partial<ChangeableValues>)[field]])),
  deadline: deadline === null ? null : new Date(deadline * 1000),
  resourcesPerTask: amountsShown(resourcesPerTask),
  devicesPerTask: [...(devicesPerTask ?? [])],
  resources: amountsShown(resources),
  mail: mail === null ? null : [...mail],
});
