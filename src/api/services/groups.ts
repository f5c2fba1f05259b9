/** Bulk groups: up to 100 000 jobs from one template and a list of parameters, followed and cancelled as one. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { schedulerOf } from '../../core/scheduler.js';
import { MAX } from '../../platform/limits.js';
import { turns } from '../../platform/turns.js';
import type { GroupRow } from '../../store/rows.js';
import type { NewJob } from '../../store/store.js';
import { accountOf } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import { text, textFault } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput, notAccepted, notFound } from '../errors.js';
import type { JobInput, SubmitJobGroupInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { createLoaders } from '../loaders.js';
import type {
  CancelJobGroupPayloadModel,
  JobGroupUpdateModel,
  SubmitJobGroupPayloadModel,
} from '../models.js';
import { subscription } from '../subscriptions/loop.js';
import { guarded, handlesAll, maySeeJob, ownerOnly, submitterOf } from './access.js';
import type { Fit } from './fit.js';
import {
  checkDatasets,
  type Fault,
  newJob,
  type Places,
  placesOf,
  poolsApart,
  storedJobs,
} from './job-input.js';
import { askedWait, waitsOfSubmission } from './needs.js';
import type { ServiceParts } from './parts.js';
import { checkedKey, isKnown, submitted } from './submissions.js';
import { filled, filledChars, type Template, templateOf } from './template.js';

/** The job's place in its group; no parameter may be called so. */
const INDEX = 'index';
/** Jobs that are made before others get their turn. */
const JOBS_OF_A_TURN = 5_000;
/** Shortest time between two updates about a group. */
const GROUP_UPDATE_MS = 1_000;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createGroupsService(parts: ServiceParts) {
  const { store, queries, limits, now } = parts;

  const judgeOf = async (places: Places): Promise<Fit> => {
    const judge = await parts.fits.remembered();
    return (job) => judge(poolsApart(job, places));
  };

  async function submitJobGroup(
    viewer: Viewer,
    input: SubmitJobGroupInput,
    requestId: string,
  ): Promise<SubmitJobGroupPayloadModel> {
    const name =
      input.name === null || input.name === undefined ? null : text('name', input.name, MAX.nameChars, 1);
    const idleTimeoutS = input.idleTimeoutS ?? null;
    if (idleTimeoutS !== null && !(idleTimeoutS >= MAX.leastIdleS && idleTimeoutS <= MAX.seconds))
      throw badInput('idleTimeoutS', idleTimeoutS, `from ${MAX.leastIdleS} to ${MAX.seconds} seconds`);
    const idempotencyKey = checkedKey(input.idempotencyKey);
    const size = sizeOf(input, limits.groupJobsMax);

    const errors: SubmitJobGroupPayloadModel['errors'][number][] = [];
    const refuse = (index: number, field: string, value: unknown, accepted: string): void => {
      if (errors.length === MAX.faults) return;
      errors.push({ index, field, code: 'BAD_USER_INPUT', message: notAccepted(field, value, accepted) });
    };
    const ofTemplate = (index: number, { code, field, message }: Fault): void => {
      if (errors.length === MAX.faults) return;
      errors.push({ index, code, field: `template.${field}`, message: `template.${message}` });
    };
    const refused = () => ({ groupId: null, ids: [], repeated: false, errors });

    if ((input.template.arrayIndex ?? null) !== null)
      refuse(
        0,
        'template.arrayIndex',
        input.template.arrayIndex,
        'no value, because it is always the index in the group',
      );
    const maker = makerOf(input.template);
    if (input.parameters) {
      for (const [i, row] of input.parameters.entries()) checkParameters(row, i, maker.names, refuse);
    } else
      for (const other of maker.names)
        refuse(0, 'template', `{${other}}`, 'only {index}, because `count` is given');
    if (errors.length > 0) return refused();

    const isRetry = await isKnown(parts, viewer.userId, idempotencyKey);
    const places = await placesOf([input.template], queries, submitterOf(viewer), isRetry);
    const context = { ...submitterOf(viewer), places, now: isRetry ? null : now() };
    const jobs: NewJob[] = new Array(size);
    const judge = input.allowUnfit || isRetry ? null : await judgeOf(places);
    let chars = 0;
    for (let index = 0; index < size; index++) {
      const values = input.parameters?.[index] as Readonly<Record<string, string>> | undefined;
      const valueFor = (of: string): string => (of === INDEX ? String(index) : (values?.[of] as string));
      chars += maker.chars(valueFor);
      if (chars > limits.groupCharsMax) {
        throw new ApiError(
          'LIMIT_EXCEEDED',
          `template: its jobs would have too many characters in total; accepted: up to ${limits.groupCharsMax} characters`,
          { field: 'template' },
        );
      }
      jobs[index] = newJob({ ...maker.make(valueFor), arrayIndex: index }, context, (fault) =>
        ofTemplate(index, fault),
      );
      const unfit = index === 0 && errors.length === 0 ? await judge?.(jobs[index] as NewJob) : null;
      if (unfit) ofTemplate(index, unfit);
      // What is wrong with the template is wrong with every job: told once.
      if (index === 0 && errors.length > 0) return refused();
      if (errors.length >= MAX.faults) break;
      if (index % JOBS_OF_A_TURN === JOBS_OF_A_TURN - 1) await turns.pause();
    }
    if (errors.length === 0 && !isRetry) {
      const asked = [{ input: input.template, array: [0, size - 1] as const }];
      const waitOf = await waitsOfSubmission(parts, viewer, asked, (_, one) => ofTemplate(0, one));
      if (errors.length === 0) for (const [index, job] of jobs.entries()) job.wait = waitOf(0, index);
    }
    if (errors.length === 0 && !isRetry) await checkDatasets(jobs, queries, ofTemplate);
    if (errors.length > 0) return refused();

    const { jobIds, groupId, repeated } = await submitted(parts, viewer, requestId, {
      userId: viewer.userId,
      idempotencyKey,
      payloadHash: idempotencyKey === null ? '' : hashOf(name, jobs, input),
      jobs: storedJobs(jobs, places),
      group: { name, template: input.template, idleTimeoutS },
      now: now(),
    });
    return { groupId, ids: jobIds, repeated, errors: [] };
  }

  async function visibleGroup(viewer: Viewer, id: string, field: string): Promise<GroupRow | null> {
    const [found] = await queries.groupsByIds([localId('group', id, field)]);
    return found && maySeeJob(viewer, found) ? found : null;
  }

  return guarded({
    submitJobGroup,

    async cancelJobGroup(viewer: Viewer, id: string, requestId: string): Promise<CancelJobGroupPayloadModel> {
      const group = await visibleGroup(viewer, id, 'jobGroupId');
      if (group === null) throw notFound('jobGroup', id);
      const selection = { filter: { groupId: group.id }, ownedBy: ownerOnly(viewer), limit: group.size };
      const audit = (jobs: readonly number[]) => ({
        ...{ userId: viewer.userId, requestId, action: 'cancelJobGroup', reason: null },
        target: globalId('group', group.id),
        after: { jobs: jobs.length },
      });
      const all = handlesAll(viewer);
      const { changed, touched } = await store.cancel(
        all ? { ...selection, audit } : selection,
        now(),
        all ? 'CANCELLED_BY_OPERATOR' : 'CANCELLED_BY_USER',
      );
      if (touched.length > 0) parts.wake(touched.map(schedulerOf));
      return { groupId: group.id, cancelled: changed.length };
    },

    jobGroup: (viewer: Viewer, id: string) => visibleGroup(viewer, id, 'id'),

    /** The group as it is, whenever it is another: a count of all its jobs is too dear for each event. */
    async jobGroupUpdated(viewer: Viewer, id: string) {
      const group = await visibleGroup(viewer, id, 'jobGroupId');
      if (group === null) throw notFound('jobGroup', id);
      let toldAt = Number.NEGATIVE_INFINITY;
      let told = '';
      return subscription<JobGroupUpdateModel>(accountOf(viewer), parts.feed, limits.subscriberBuffer, {
        async read() {
          const early = toldAt + GROUP_UPDATE_MS - performance.now();
          if (early > 0) await delay(early);
          toldAt = performance.now();
          const loaders = createLoaders(queries, now);
          const counts = JSON.stringify(await loaders.groupCounts(group.id));
          if (counts === told) return { updates: [], more: false };
          told = counts;
          return { updates: [{ group, loaders }], more: false };
        },
        concerns: ({ events }) => events.some((event) => event.seq !== null && event.userId === group.userId),
      });
    },

    async jobGroups(viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<GroupRow>> {
      const size = pageSize('first', first, limits);
      const before = after ? decodeCursor('after', after, 'group', ['bigNumber'])[0] : null;
      const rows = await queries.groups(ownerOnly(viewer), before, size + 1);
      return connection(rows, size, (group) => encodeCursor('group', [group.id]), {
        continued: before !== null,
      });
    },
  });
}

/** How many jobs are asked for. Throws BAD_USER_INPUT or LIMIT_EXCEEDED. */
function sizeOf({ parameters, count }: SubmitJobGroupInput, max: number): number {
  if (((parameters ?? null) === null) === ((count ?? null) === null))
    throw badInput(
      'parameters',
      parameters ? 'parameters and count' : 'neither parameters nor count',
      'exactly one of the two',
    );
  const [field, size] = parameters
    ? (['parameters', parameters.length] as const)
    : (['count', count as number] as const);
  if (size < 1) throw badInput(field, size, `1 to ${max} jobs`);
  if (size > max) {
    throw new ApiError('LIMIT_EXCEEDED', `${field}: ${size} jobs given; accepted: up to ${max}`, {
      field,
    });
  }
  return size;
}

/** One job's parameters: a text for each name of the template, and nothing else. */
function checkParameters(
  row: unknown,
  index: number,
  names: ReadonlySet<string>,
  refuse: (index: number, field: string, value: unknown, accepted: string) => void,
): void {
  const place = `parameters[${index}]`;
  if (row === null || typeof row !== 'object' || Array.isArray(row)) {
    refuse(index, place, row, 'an object with texts as values');
    return;
  }
  const values = row as Readonly<Record<string, unknown>>;
  for (const name of names) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const wrong =
      typeof value === 'string'
        ? textFault(value, MAX.argumentChars)
        : `a text, because the template uses {${name}}`;
    if (wrong) refuse(index, `${place}.${name}`, value, wrong);
  }
  for (const name of Object.keys(values)) {
    if (names.has(name)) continue;
    const used = [...names].map((other) => `{${other}}`).join(', ');
    refuse(
      index,
      `${place}.${name}`,
      values[name],
      name === INDEX
        ? 'no value for `index`, which is the index in the group'
        : `only parameters that the template uses: ${used || 'none'}`,
    );
  }
}

/** What makes jobs of a template. */
interface Maker {
  /** Parameters that the template uses. */
  names: ReadonlySet<string>;
  /** How long a job's texts are. */
  chars(valueFor: (name: string) => string): number;
  make(valueFor: (name: string) => string): JobInput;
}

function makerOf(job: JobInput): Maker {
  const optional = (of: string | null | undefined): Template | null =>
    of === null || of === undefined ? null : templateOf(of);
  const name = optional(job.name);
  const workingDirectory = optional(job.workingDirectory);
  const args = job.arguments.map(templateOf);
  const environment = job.environment.map((variable) => ({
    name: variable.name,
    value: templateOf(variable.value),
  }));
  const outputs = job.outputs.map((one) => ({
    ...one,
    path: templateOf(one.path),
    dataset: optional(one.dataset),
  }));
  const all = [
    ...[name, workingDirectory, ...args, ...environment.map(({ value }) => value)],
    ...outputs.flatMap(({ path, dataset }) => [path, dataset]),
  ].filter((one) => one !== null);
  const names = new Set(all.flatMap((one) => one.names));
  names.delete(INDEX);
  return {
    names,
    chars: (valueFor) => all.reduce((sum, one) => sum + filledChars(one, valueFor), 0),
    make: (valueFor) => ({
      ...job,
      name: name && filled(name, valueFor),
      workingDirectory: workingDirectory && filled(workingDirectory, valueFor),
      arguments: args.map((one) => filled(one, valueFor)),
      environment: environment.map((one) => ({ name: one.name, value: filled(one.value, valueFor) })),
      outputs: outputs.map((one) => ({
        ...one,
        path: filled(one.path, valueFor),
        dataset: one.dataset && filled(one.dataset, valueFor),
      })),
    }),
  };
}

function hashOf(
  name: string | null,
  jobs: readonly NewJob[],
  { template, idleTimeoutS }: SubmitJobGroupInput,
): string {
  const hash = createHash('sha256').update(JSON.stringify(['group', name]));
  for (const { wait: _, ...job } of jobs) hash.update(JSON.stringify(job));
  const asked = askedWait(template);
  if (asked !== null) hash.update(JSON.stringify(asked));
  if (typeof idleTimeoutS === 'number') hash.update(JSON.stringify({ idleTimeoutS }));
  return hash.digest('hex');
}
