/** The tools that write: first a plan, then what the plan says. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { asked } from '../client/index.js';
import { ACTIVE_STATES } from '../client/states.gql.js';
import { answer, firstChars } from './answers.js';
import { CancelDocument, type JobInput, JobsDocument, SubmitDocument } from './documents.gql.js';
import { BadCall, cpuHoursAtMost, FILTER, filterOf, JOB, jobId, jobOf, jobsOfArray } from './inputs.js';
import { type Caller, estimate, type Tool, tool } from './tools.js';
import { whatIf } from './whatif.js';

const SUBMITTERS = ['ADMIN', 'OPERATOR', 'USER'] as const;
/** Jobs that one call cancels: the plan names each. */
const CANCEL_MAX = 150;
/** Ids that an answer names. */
const NAMED_MAX = 20;

const confirm = z
  .string()
  .max(64)
  .optional()
  .describe(
    'The digest of the plan, once the user has agreed to it; without it, the plan is returned and nothing is done',
  );

/** The key of whoever calls: their plans are no other's. */
const keyOf = ({ client }: Caller): string => client.options.key ?? '';

function planned(name: string, plan: object, digest: string): CallToolResult {
  return answer(
    { plan },
    {
      own: { digest },
      next: `Nothing has been done. Show this plan to the user; once they agree, call ${name} with the same arguments and confirm: ${digest}`,
    },
  );
}

/** What the digest confirms. */
function confirmed<Does>(caller: Caller, name: string, input: object, digest: string): Does {
  const plan = caller.plans.confirm<Does>(keyOf(caller), name, input, digest);
  if (typeof plan === 'string') throw new BadCall(plan);
  return plan;
}

/** An array is not spelled out before it is submitted: plans are kept, and one may be of thousands of jobs. */
interface Submission {
  job: JobInput;
  array: string | undefined;
  idempotencyKey: string;
}

const submitJobs = tool(
  'submit_jobs',
  'Submits a job, or an array of jobs. The first call returns the plan and its digest; a second call with the same arguments and the digest as confirm submits. Using the same digest again returns the same jobs.',
  {
    ...JOB,
    array: z
      .string()
      .max(400)
      .optional()
      .describe('One job for each index, such as 1-10 or 0-99:5%4; it is in SWITCHYARD_ARRAY_INDEX'),
    maxCpuHours: z
      .number()
      .min(0)
      .optional()
      .describe('Refuse the plan if all its jobs together could be charged more than this'),
    idempotencyKey: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('The same key returns the same jobs, even after the plan has expired'),
    confirm,
  },
  async ({ confirm: digest, ...input }, caller) => {
    if (digest !== undefined)
      return submitted(caller, confirmed<Submission>(caller, 'submit_jobs', input, digest));
    const { array, idempotencyKey, maxCpuHours, ...given } = input;
    const job = jobOf(given);
    const { length } = jobsOfArray(job, array);
    const each = cpuHoursAtMost(job);
    if (maxCpuHours !== undefined) checkPrice(each, length, maxCpuHours);
    // It also refuses what would not be accepted.
    const likely = await estimate(caller, job);
    const plan = caller.plans.make(
      keyOf(caller),
      'submit_jobs',
      input,
      (id): Submission => ({
        ...{ job, array },
        idempotencyKey: idempotencyKey ?? `mcp-${id}`,
      }),
    );
    const { environment, ...rest } = job;
    return planned(
      'submit_jobs',
      {
        ...{ action: 'submit', jobs: length, array, idempotencyKey: plan.does.idempotencyKey },
        cpuHoursAtMost: each === null ? null : each * length,
        job: { ...rest, environment: environment?.map(({ name, value }) => `${name}=${value}`) },
        likely,
      },
      plan.digest,
    );
  },
  SUBMITTERS,
);

/** @throws BadCall if the jobs may be charged more, or nobody can say how much */
function checkPrice(each: number | null, jobs: number, most: number): void {
  if (each === null)
    throw new BadCall(
      'maxCpuHours: needs runTimeLimitS, and jobs that are not exclusive: without them there is no bound on what is charged',
    );
  if (each * jobs > most)
    throw new BadCall(
      `maxCpuHours: ${most} is too low; at their limit, ${jobs} jobs with ${each} CPU hours each use ${each * jobs}`,
    );
}

async function submitted(
  { client }: Caller,
  { job, array, idempotencyKey }: Submission,
): Promise<CallToolResult> {
  const input = { jobs: jobsOfArray(job, array), idempotencyKey };
  // With the key of the plan, a lost answer does not start it twice.
  const { jobIds, repeated, errors } = (await asked(() => client.request(SubmitDocument, { input })))
    .submitJobs;
  if (errors.length > 0) return answer({ submitted: 0, errors: errors.slice(0, 5) }, { isError: true });
  const named = jobIds.length <= NAMED_MAX ? { jobIds } : { first: jobIds[0], last: jobIds.at(-1) };
  return answer(
    { submitted: jobIds.length, repeated, ...named },
    { next: `${repeated ? 'These jobs were already submitted. ' : ''}To wait for one: wait_for_job.` },
  );
}

const cancelJobs = tool(
  'cancel_jobs',
  'Cancels jobs that have not ended, by ID or filter. The first call returns the plan, which names each job, and its digest; a second call with the same arguments and the digest as confirm cancels exactly these jobs.',
  { ids: z.array(jobId).min(1).max(CANCEL_MAX).optional(), ...FILTER, confirm },
  async ({ confirm: digest, ...input }, caller) => {
    if (digest !== undefined) {
      const ids = confirmed<readonly string[]>(caller, 'cancel_jobs', input, digest);
      const { jobIds, unchanged } = (await caller.client.request(CancelDocument, { ids })).cancelJobs;
      return answer({ cancelled: jobIds.length, unchanged, jobIds });
    }
    if (Object.keys(input).length === 0)
      throw new BadCall(
        `ids: is missing; accepted: ids of jobs, or one of ${Object.keys(FILTER).join(', ')}`,
      );
    const { ids, states = ACTIVE_STATES, ...given } = input;
    const live = ACTIVE_STATES.filter((state) => states.includes(state));
    if (live.length === 0)
      throw new BadCall(
        `states: ${states.join(', ')} is not accepted; accepted: ${ACTIVE_STATES.join(', ')}`,
      );
    const filter = { ...(await filterOf(caller.client, given)), states: live, ...(ids && { ids }) };
    const { jobs } = await caller.client.request(
      JobsDocument,
      { filter, first: CANCEL_MAX, after: null },
      caller.signal,
    );
    const nodes = jobs.edges.map(({ node }) => node);
    if (jobs.totalCount > CANCEL_MAX)
      throw new BadCall(
        `${jobs.totalCount} jobs match; accepted: up to ${CANCEL_MAX} in one call; give IDs or a narrower filter`,
      );
    if (nodes.length === 0)
      return answer({ plan: null }, { next: 'No unfinished job matches: there is nothing to cancel.' });
    const matching = nodes.map(({ id }) => id);
    const { digest: made } = caller.plans.make(keyOf(caller), 'cancel_jobs', input, () => matching);
    return planned(
      'cancel_jobs',
      {
        ...{ action: 'cancel', jobs: matching.length, ids: matching },
        some: nodes.slice(0, 5).map(({ id, name, state, user }) => ({
          ...{ id, state, user: firstChars(user.name, 40) },
          name: name === null ? null : firstChars(name, 40),
        })),
      },
      made,
    );
  },
  SUBMITTERS,
);

export const WRITING: readonly Tool[] = [submitJobs, cancelJobs, whatIf];
