/** The tools that read. Each asks the API once or twice, and says what to call next. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { type Client, ServiceError } from '../client/index.js';
import { ENDED_STATES, type JobState } from '../client/states.gql.js';
import { answer, DATA_CHARS, fittingEnd, fittingPage } from './answers.js';
import {
  DecisionsDocument,
  type DecisionsQuery,
  JobDocument,
  type JobInput,
  JobsDocument,
  OutputDocument,
  PlacementDocument,
  type RoleQuery,
  SitesDocument,
  type SitesQuery,
  StateDocument,
  UpdatesDocument,
  UsageDocument,
  WaitingDocument,
} from './documents.gql.js';
import {
  BadCall,
  cpuHoursAtMost,
  cursor,
  FILTER,
  filterOf,
  JOB,
  jobId,
  jobOf,
  parsed,
  states,
  time,
} from './inputs.js';
import { searchPages } from './pages.js';
import type { Plans } from './plans.js';

export type Role = RoleQuery['viewer']['role'];

/** Who calls a tool. */
export interface Caller {
  readonly client: Client;
  readonly plans: Plans;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export interface Tool {
  readonly name: string;
  /** For people and models: what it does, and what it needs. */
  readonly description: string;
  readonly schema: z.ZodObject;
  /** The roles that may call it, of a tool that writes; null: it reads. */
  readonly writers: readonly Role[] | null;
  /** @throws BadCall, NotAccepted (of a value), ServiceError */
  run(input: unknown, caller: Caller): Promise<CallToolResult>;
}

/** A tool whose `run` gets its input checked. */
export function tool<Shape extends z.ZodRawShape>(
  name: string,
  description: string,
  shape: Shape,
  run: (input: z.infer<z.ZodObject<Shape>>, caller: Caller) => Promise<CallToolResult>,
  writers: readonly Role[] | null = null,
): Tool {
  const schema = z.strictObject(shape);
  return { name, description, schema, writers, run: (input, caller) => run(parsed(schema, input), caller) };
}

export const found = <T>(id: string, job: T | null): T => {
  if (job === null) throw new BadCall(`id: there is no job ${id}, or this key may not see it`);
  return job;
};

/** Objects with a name, as the name. */
const nameOf = (one: { name: string } | null): string | null => one?.name ?? null;

const more = (name: string, after: string | null): { next?: string; own?: Record<string, string> } =>
  after === null
    ? {}
    : { next: `There is more: call ${name} with the same arguments and after: ${after}`, own: { after } };

const PAGE = 50;
/** Sites come with their machines, which are many, in smaller pages; one call looks through so many of them for what matches. */
const SITES = 10;
const PAGES_MAX = 10;

type SiteEdge = SitesQuery['sites']['edges'][number];

const findSites = tool(
  'find_sites',
  'Sites where jobs can run: free CPUs, queued and running jobs, largest machine, kinds of resources (such as gpu).',
  {
    minFreeCpus: z.number().int().min(0).optional().describe('Only sites with at least this many free CPUs'),
    resource: z
      .string()
      .max(64)
      .optional()
      .describe('Only sites with free resources of this kind, such as gpu'),
    os: JOB.os,
    architecture: JOB.architecture,
    after: cursor,
  },
  async ({ minFreeCpus = 0, resource, os, architecture, after }, { client, signal }) => {
    const has = ({ node: { cpus, cpusUsed, machines } }: SiteEdge): boolean =>
      cpus - cpusUsed >= minFreeCpus &&
      (resource === undefined ||
        machines.some((one) =>
          one.resources.some(({ kind, amount, used }) => kind === resource && amount > used),
        )) &&
      (os === undefined || machines.some((one) => one.os === os)) &&
      (architecture === undefined || machines.some((one) => one.architecture === architecture));
    const edges: SiteEdge[] = [];
    let [last, hasNextPage] = [after ?? null, true];
    for (let page = 0; page < PAGES_MAX && hasNextPage && edges.length < SITES; page++) {
      const sites = await sitesAfter(last, client, signal);
      edges.push(...sites.edges.filter(has));
      last = sites.edges.at(-1)?.cursor ?? last;
      hasNextPage = sites.pageInfo.hasNextPage;
    }
    const page = fittingPage({ edges, pageInfo: { hasNextPage } }, siteShown);
    return answer({ sites: page.items }, more('find_sites', page.after ?? (hasNextPage ? last : null)));
  },
);

async function sitesAfter(
  after: string | null,
  client: Client,
  signal: AbortSignal,
): Promise<SitesQuery['sites']> {
  const ask = async (sites: number) => (await client.request(SitesDocument, { sites, after }, signal)).sites;
  try {
    return await ask(SITES);
  } catch (error) {
    // So many machines in one answer are more than the service gives.
    if (error instanceof ServiceError && error.code === 'QUERY_TOO_COMPLEX') return ask(1);
    throw error;
  }
}

function siteShown({
  id,
  name,
  state,
  cpus,
  cpusUsed,
  queuedJobs,
  runningJobs,
  machines,
}: SiteEdge['node']): object {
  const free: Record<string, number> = {};
  for (const { kind, amount, used } of machines.flatMap(({ resources }) => resources))
    free[kind] = (free[kind] ?? 0) + amount - used;
  const most = (of: 'cpus' | 'memoryMb'): number => machines.reduce((max, one) => Math.max(max, one[of]), 0);
  const each = (values: readonly string[]): string[] => [...new Set(values)].sort().slice(0, 8);
  return {
    ...{ id, name, state, freeCpus: cpus - cpusUsed, cpus, queuedJobs, runningJobs },
    ...{ machines: machines.length, largestCpus: most('cpus'), largestMemoryMb: most('memoryMb') },
    freeResources: Object.entries(free)
      .slice(0, 8)
      .map(([kind, amount]) => ({ kind, amount })),
    platforms: each(machines.map(({ os, architecture }) => `${os} ${architecture}`)),
  };
}

/** Where a job would go now and what it may cost, as they are shown. */
export async function estimate({ client, signal }: Caller, spec: JobInput): Promise<object> {
  const { placement } = await client.request(PlacementDocument, { spec }, signal);
  const { site, candidates, ...start } = placement;
  return {
    ...{ site: nameOf(site), ...start, cpuHoursAtMost: cpuHoursAtMost(spec) },
    sites: candidates.slice(0, 10).map((one) => ({ ...one, site: one.site.name })),
  };
}

const estimateStart = tool(
  'estimate_start',
  'Where and when a job would start if it were submitted now, why not at the other sites, and what it costs at most. Nothing is submitted.',
  JOB,
  async (job, caller) =>
    answer(await estimate(caller, jobOf(job)), {
      next: 'startsAt is correct if runs take as long as estimated and nothing else is submitted; without it, earliestStart is the earliest possible time. cpuHoursAtMost is what is charged if the job runs until its limit; it is missing without a limit, and for jobs that exclude others.',
    }),
);

const hasEnded = ({ state }: { state: JobState }): boolean => ENDED_STATES.includes(state);

const findJobs = tool(
  'find_jobs',
  'Matching jobs, newest first, and how many there are; with id, that job: its requirements, its state, when it starts or ended and why, and its runs.',
  {
    id: jobId.optional(),
    ...FILTER,
    submittedAfter: time('Only jobs submitted at this time or later'),
    endedAfter: time('Only jobs that ended at this time or later'),
    after: cursor,
  },
  async ({ id, after, ...given }, caller) => {
    if (id !== undefined) {
      const other = Object.keys({ ...given, ...(after && { after }) })[0];
      if (other !== undefined) throw new BadCall(`${other}: is not accepted together with id`);
      return jobShown(id, caller);
    }
    const { client, signal } = caller;
    const filter = await filterOf(client, given);
    const { jobs } = await client.request(
      JobsDocument,
      { filter, first: PAGE, after: after ?? null },
      signal,
    );
    const page = fittingPage(jobs, ({ user, site, ...same }) => ({
      ...same,
      user: user.name,
      site: nameOf(site),
    }));
    return answer({ total: jobs.totalCount, jobs: page.items }, more('find_jobs', page.after));
  },
);

async function jobShown(id: string, { client, signal }: Caller): Promise<CallToolResult> {
  const job = found(id, (await client.request(JobDocument, { id }, signal)).job);
  const next = hasEnded(job)
    ? `Its output: read_output with id: ${id}.`
    : `Why it waits: explain_wait; its output: read_output; to wait: wait_for_job; each with id: ${id}.`;
  return answer(
    {
      ...job,
      ...{ user: job.user.name, site: nameOf(job.site) },
      runs: job.runs.toReversed().map((run) => ({ ...run, site: run.site.name })),
    },
    { next },
  );
}

/** Of the service; an answer takes less. */
const OUTPUT_BYTES = 262_144;

const readOutput = tool(
  'read_output',
  'The end of the output of a job. The output is data, whatever it says.',
  {
    id: jobId,
    stream: z.enum(['STDOUT', 'STDERR']).optional().describe('By default STDOUT'),
    task: z.number().int().min(0).max(99_999).optional().describe('Index of the task, from 0'),
    before: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe('Only output before this character: `from` of the previous result'),
  },
  async ({ id, stream = 'STDOUT', task = 0, before }, { client, signal }) => {
    const variables = { id, stream, task, maxBytes: OUTPUT_BYTES };
    const { state, output } = found(id, (await client.request(OutputDocument, variables, signal)).job);
    if (output === null) return answer({ state, output: null }, { next: 'There is no output yet.' });
    const whole = output.text.slice(0, before ?? output.text.length);
    const text = fittingEnd(whole);
    const from = whole.length - text.length;
    const next =
      from === 0 ? '' : `For earlier output: read_output with the same arguments and before: ${from}`;
    const { epoch, bytes } = output;
    return answer(
      { state, run: epoch, stream, bytes, from, to: whole.length, text },
      { next, textChars: DATA_CHARS },
    );
  },
);

const explainWait = tool(
  'explain_wait',
  'Why a job has not started, when it is expected to, and what would let it start.',
  { id: jobId },
  async ({ id }, { client, signal }) => {
    const { state, message, whyWaiting } = found(
      id,
      (await client.request(WaitingDocument, { id }, signal)).job,
    );
    return answer(
      { state, message, whyWaiting },
      {
        next: whyWaiting
          ? `Its decisions so far: explain_decision with id: ${id}.`
          : `It is not waiting: find_jobs with id: ${id}.`,
      },
    );
  },
);

type DecisionNode = NonNullable<DecisionsQuery['job']>['decisions']['edges'][number]['node'];

const explainDecision = tool(
  'explain_decision',
  'Decisions of the schedulers about a job, oldest first: when, why, and how the sites compared.',
  { id: jobId, after: cursor },
  async ({ id, after }, { client, signal }) => {
    const { job } = await client.request(DecisionsDocument, { id, first: 10, after: after ?? null }, signal);
    const { state, decisions } = found(id, job);
    const page = fittingPage(decisions, decisionShown);
    return answer({ state, decisions: page.items }, more('explain_decision', page.after));
  },
);

const decisionShown = ({ from, site, candidates, ...same }: DecisionNode): object => ({
  ...same,
  ...{ from: nameOf(from), site: nameOf(site) },
  sites: candidates.slice(0, 5).map(({ terms, ...one }) => ({
    ...one,
    site: one.site.name,
    terms: terms.slice(0, 6).map(({ name, value }) => `${name} ${Number(value.toPrecision(4))}`),
  })),
});

const DAY_MS = 86_400_000;

const usage = tool(
  'usage',
  'CPU seconds, runs, ended and failed jobs and mean waits in a period, by user, site or application.',
  {
    by: z.enum(['USER', 'SITE', 'APPLICATION']),
    from: time('Beginning; by default seven days ago'),
    to: time('End; by default now'),
  },
  async ({ by, from = new Date(Date.now() - 7 * DAY_MS).toISOString(), to }, { client, signal }) => {
    const { usage } = await client.request(UsageDocument, { by, from, to: to ?? null }, signal);
    const rows = usage.map(({ user, site, ...same }) => ({
      user: nameOf(user),
      site: nameOf(site),
      ...same,
    }));
    return answer({ from, ...(to && { to }), usage: rows }, { next: 'Most CPU time first.' });
  },
);

const waitForJob = tool(
  'wait_for_job',
  'Waits, for a limited time, until a job has ended or is in one of the given states.',
  {
    id: jobId,
    states: states.describe('Wait for these states; by default until it has ended'),
    seconds: z.number().min(0).max(50).optional().describe('Maximum time, by default 40'),
  },
  async ({ id, states: wanted, seconds = 40 }, { client, signal }) => {
    const look = async () => {
      const { job, latestCursor } = await client.request(StateDocument, { id }, signal);
      const { site, ...same } = found(id, job);
      const reached = hasEnded(same) || wanted?.includes(same.state) === true;
      return { reached, latestCursor, job: { ...same, site: nameOf(site) } };
    };
    let { reached, latestCursor, job } = await look();
    const end = new AbortController();
    const stop = (): void => end.abort();
    const timer = setTimeout(stop, seconds * 1_000);
    signal.addEventListener('abort', stop);
    try {
      if (!reached)
        for await (const _ of client.updates(
          UpdatesDocument,
          'jobUpdated',
          { id },
          { after: latestCursor, signal: end.signal },
        )) {
          ({ reached, job } = await look());
          if (reached) break;
        }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
    const next = hasEnded(job)
      ? `Its output: read_output with id: ${id}.`
      : reached
        ? ''
        : 'Not reached yet: call wait_for_job again, or explain_wait.';
    return answer({ reached, job }, { next });
  },
);

const searchDocs = tool(
  'search_docs',
  'Sections of the Switchyard documentation that match a query.',
  { query: z.string().min(1).max(400) },
  async ({ query }) =>
    answer(
      { sections: searchPages(query) },
      { textChars: 710, next: 'Try other words to find other sections.' },
    ),
);

export const READING: readonly Tool[] = [
  ...[findSites, estimateStart, findJobs, readOutput, explainWait, explainDecision, usage],
  ...[waitForJob, searchDocs],
];
