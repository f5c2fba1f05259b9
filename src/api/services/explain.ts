/** Dry runs and explanations: what the schedulers would do, asked of the same functions that do it. */
import {
  type Job as CoreJob,
  type ExplainContext,
  earliestAnywhere,
  externalSites,
  figuresOf,
  type Grid,
  keepsPromises,
  localPolicyOf,
  type Placing,
  type PredictedStart,
  placement,
  predictStart,
  promisesFrom,
  type SiteRanking,
  startBounds,
  type Waiting,
  waitingAtSite,
  waitingOnAgent,
  waitingOnHold,
  waitingOnOthers,
  whyWaiting,
} from '../../core/index.js';
import type { DispatchExplanation } from '../../core/model.js';
import { isLive, isPending, isTerminal } from '../../core/states.js';
import type { BlockedJob, NeedTerm } from '../../store/needs.js';
import type { JobRow, RunRow } from '../../store/rows.js';
import { submittedJob } from '../../store/rules.js';
import type { Viewer } from '../auth.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { JobInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import type { Loaders } from '../loaders.js';
import type {
  CandidateModel,
  ImageDataModel,
  MissingNeedModel,
  PlacementModel,
  WhyWaitingModel,
} from '../models.js';
import { LATEST_MS } from '../scalars.js';
import { guarded, handlesAll, maySeeJob, submitterOf } from './access.js';
import { expectations, type Predecessor } from './expected.js';
import { newJob, placesOf, poolsApart } from './job-input.js';
import type { Asker, ServiceParts } from './parts.js';
import { createSiteLoads } from './site-load.js';

/** The id of a job that does not exist: draws depend on ids, so a dry run's draw may fall otherwise than the job's will. */
const NO_JOB = 0;

/** For whom something is worked out, and what it may cost. */

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createExplainService(parts: ServiceParts) {
  const { store, queries, mirror, shares, now } = parts;
  const loads = createSiteLoads(parts);

  async function context(loaders: Loaders) {
    // Once for all explanations of a request; after a mutation in it, anew.
    await loaders.once('mirror', () => mirror.sync());
    return {
      grid: mirror.grid,
      version: mirror.policy.version,
      explain: { now: now(), policy: mirror.policy.document },
    };
  }

  /** Gives the grid what the site's scheduler has promised, as a cycle of the site would find it. */
  async function takeInPromises(
    grid: Grid,
    siteId: number,
    { policy, now }: ExplainContext,
    loaders: Loaders,
  ): Promise<void> {
    const local = localPolicyOf(grid.siteEntry(siteId).site, policy);
    const { promises } = keepsPromises(local)
      ? await loaders.once(`promises ${siteId}`, () => store.promises(siteId))
      : { promises: null };
    grid.keepMemory(siteId, promises && promisesFrom(grid, siteId, local, promises, now));
  }

  async function startAt(
    grid: Grid,
    siteId: number,
    job: CoreJob,
    explain: ExplainContext,
    loaders: Loaders,
  ): Promise<PredictedStart | null> {
    await takeInPromises(grid, siteId, explain, loaders);
    return predictStart(grid, grid.siteEntry(siteId), job, explain);
  }

  /** Of a job that waits before a site's local queue or in it. */
  const startIn = async (
    grid: Grid,
    place: { at: 'META' | 'QUEUE'; siteId: number },
    job: CoreJob,
    explain: ExplainContext,
    loaders: Loaders,
  ): Promise<PredictedStart | null> =>
    place.at === 'QUEUE'
      ? startAt(grid, place.siteId, job, explain, loaders)
      : earliestAnywhere(grid, job, explain.now);

  async function userClass(userId: number): Promise<CoreJob['userClass']> {
    const [user] = await queries.usersByIds([userId]);
    if (!user) throw notFound('user', globalId('user', userId));
    return user.class;
  }

  /** Where a job that is not in a site's queue would go, and when it would start. */
  async function placedFromRoot(job: CoreJob, grid: Grid, explain: ExplainContext, loaders: Loaders) {
    const placing = placement(grid, job, explain);
    const { siteId, arrival } = placing;
    const start =
      siteId === null || arrival === null
        ? placing.start
        : await startAt(grid, siteId, arrival, explain, loaders);
    return { placing, start };
  }

  /** The dry run of such a job. */
  async function atRoot(job: CoreJob, image: string | null, loaders: Loaders): Promise<PlacementModel> {
    const { grid, version, explain } = await context(loaders);
    const { placing, start } = await placedFromRoot(job, grid, explain, loaders);
    const { siteId, arrival } = placing;
    return {
      ...described(placing, image),
      ...starting(start),
      ...(siteId === null ? NO_BOUNDS : startBounds(grid, siteId, arrival ?? job, explain, start)),
      ...{ policyVersion: version, siteId },
    };
  }

  async function ofJob(row: JobRow, loaders: Loaders): Promise<PlacementModel> {
    if (isTerminal(row.state) || isLive(row.state)) {
      throw new ApiError(
        'CONFLICT',
        `${globalId('job', row.id)} is ${row.state}: it has already been started or has ended`,
      );
    }
    const { grid, version, explain } = await context(loaders);
    const known = grid.job(row.id);
    const place = grid.placeOf(row.id);
    if (known === null || place === null || place.at === 'ROOT') {
      const job =
        known ?? submittedJob(row, { ...row, userClass: await userClass(row.userId), groupId: null });
      return atRoot(job, row.image, loaders);
    }
    if (place.at === 'RUNNING')
      throw new ApiError('CONFLICT', `${globalId('job', row.id)} has just been started`);
    // It is in a queue: its place is decided, the ranking is what it would be today.
    const start = await startIn(grid, place, known, explain, loaders);
    const { siteId } = place;
    return {
      ...described(placement(grid, known, explain), row.image),
      ...starting(start),
      ...startBounds(grid, siteId, known, explain, start),
      ...{ policyVersion: version, siteId },
    };
  }

  async function whyQueued(id: number, loaders: Loaders): Promise<Waiting | null> {
    const { grid, explain } = await context(loaders);
    const place = grid.placeOf(id);
    if (place?.at === 'QUEUE') await takeInPromises(grid, place.siteId, explain, loaders);
    // It may have moved on since the row was read.
    if (grid.placeOf(id) === null) return null;
    const why = whyWaiting(grid, id, explain);
    return why && withFigures(why, id, grid, loaders);
  }

  /** And what is known of the sites that schedule themselves where the job is or could go. */
  async function withFigures(
    why: Waiting,
    jobId: number,
    grid: Grid,
    loaders: Pick<Loaders, 'site'>,
  ): Promise<Waiting> {
    const job = grid.job(jobId) as CoreJob;
    const told: ReturnType<typeof figuresOf>[] = [];
    for (const entry of externalSites(grid, job, why.numbers.bestSiteId ?? null))
      told.push(figuresOf(entry, job, await loads.ageOf(await loaders.site(entry.site.id))));
    // Sentences are of all of them, numbers of the first.
    return {
      ...why,
      message: [why.message, ...told.map(({ message }) => message)].join(' '),
      numbers: { ...told[0]?.numbers, ...why.numbers },
    };
  }

  /** Of a job that the site's own scheduler has and has not started. */
  async function whyAtSite(
    jobId: number,
    { localState, assignedAt }: Pick<RunRow, 'localState' | 'assignedAt'>,
    loaders: Loaders,
  ): Promise<WhyWaitingModel> {
    const { grid, explain } = await context(loaders);
    const waiting = waitingAtSite(localState);
    const place = grid.placeOf(jobId);
    // It may have started, or ended, since the row was read.
    if (place?.at !== 'RUNNING') return { ...waiting, ...NO_START };
    const why = await withFigures(waiting, jobId, grid, loaders);
    const { observedWaitS } = why.numbers;
    const at = observedWaitS === undefined ? null : assignedAt + observedWaitS;
    // Later than its time by what was observed, nobody knows.
    return { ...why, ...NO_START, startsAt: at === null || at < explain.now ? null : shownTime(at) };
  }

  /** Of a blocked job: which of what it needs has not happened, by name. */
  async function waitingOnNeeds(id: number, asker: Asker): Promise<WhyWaitingModel | null> {
    const { loaders, viewer } = asker;
    const found = await queries.openNeeds(id);
    if (found === null) return null;
    const { wait } = found;
    const open = found.open.flatMap(({ of }) => of);
    const needs = wait.needs.reduce((sum, { of }) => sum + of.length, 0);
    const why = waitingOnOthers(needs, open.length, (wait.dueAt ?? wait.notBefore ?? now()) - now());
    const expected = expectations({
      jobOf: (of) => predecessor(of, asker),
      openNeeds: (of) => queries.openNeeds(of),
      now: now(),
    });
    const missing: MissingNeedModel[] = [];
    const said: string[] = [];
    for (const term of open.slice(0, NAMED_MAX)) {
      const when = await expected.term(term);
      missing.push({
        term,
        expectedAt: 'at' in when ? shownTime(when.at) : null,
        unknown: 'at' in when ? null : when.unknown,
      });
      said.push(await missingTerm(term, wait, viewer, loaders));
    }
    const more = open.length > NAMED_MAX ? [`${open.length - NAMED_MAX} more`] : [];
    const start = await expected.needs(found);
    const at = 'at' in start ? start.at : (wait.dueAt ?? wait.notBefore);
    return {
      ...why,
      message:
        said.length === 0 ? why.message : `${why.message} Not satisfied: ${[...said, ...more].join('; ')}.`,
      ...NO_START,
      ...{ earliestStart: at === null ? null : shownTime(at), missing },
    };
  }

  /** When a job that others need runs, as it is planned; null: the viewer may not see it. */
  async function predecessor(id: number, asker: Asker): Promise<Predecessor | null> {
    const row = await asker.loaders.findJob(id);
    if (row === null || !maySeeJob(asker.viewer, row)) return null;
    const { state, estimateS, epoch } = row;
    const from = (start: number | null, durationS: number): Predecessor => ({
      ...{ state, estimateS },
      planned: start === null ? null : { start, end: start + durationS },
    });
    const run = isLive(state) ? (await asker.loaders.runs(id)).find((one) => one.epoch === epoch) : undefined;
    if (run !== undefined) return from(run.startedAt ?? run.assignedAt, run.plannedS);
    const { startsAt, earliestStart } = await startOf(row, asker);
    return from(startsAt ?? earliestStart, estimateS);
  }

  /** Of a job that the viewer has been shown: epoch seconds. */
  async function startOf({ id, state }: Pick<JobRow, 'id' | 'state'>, asker: Asker): Promise<Starting> {
    if (!isPending(state)) return starting(null);
    const { loaders } = asker;
    const find = async (): Promise<Starting> => {
      const { grid, explain } = await context(loaders);
      const job = grid.job(id);
      const place = grid.placeOf(id);
      if (job === null || place === null || place.at === 'RUNNING') return starting(null);
      if (place.at === 'ROOT') return starting((await placedFromRoot(job, grid, explain, loaders)).start);
      return starting(await startIn(grid, place, job, explain, loaders));
    };
    return loaders.once(`start ${id}`, () => shares.explain(asker, find));
  }

  return {
    ...guarded({
      async placement(
        viewer: Viewer,
        job: string | null,
        spec: JobInput | null,
        asker: Omit<Asker, 'viewer'>,
      ): Promise<PlacementModel> {
        if ((job === null) === (spec === null))
          throw badInput('placement', { job, spec: spec && '…' }, 'either `job` or `spec`');
        const { loaders } = asker;
        if (spec !== null) {
          const places = await placesOf([spec], queries, submitterOf(viewer));
          const made = newJob(spec, { ...submitterOf(viewer), places, now: now() }, (fault) => {
            throw new ApiError(fault.code, `spec.${fault.message}`, { field: fault.field });
          });
          const { userId } = viewer;
          const of = {
            id: NO_JOB,
            userId,
            userClass: await userClass(userId),
            submittedAt: now(),
            groupId: null,
          };
          return shares.explain({ viewer, ...asker }, () =>
            atRoot(submittedJob(poolsApart(made, places), of), made.image, loaders),
          );
        }
        const id = job as string;
        const [row] = await queries.jobsByIds([localId('job', id, 'jobId')]);
        if (!row || !maySeeJob(viewer, row)) throw notFound('job', id);
        return shares.explain({ viewer, ...asker }, () => ofJob(row, loaders));
      },
    }),

    startOf,

    /** Of a job that the viewer has been shown; null where it does not wait. */
    async whyWaiting(
      job: Pick<JobRow, 'id' | 'state' | 'epoch'>,
      asker: Asker,
    ): Promise<WhyWaitingModel | null> {
      if (job.state === 'HELD') return { ...waitingOnHold(), ...NO_START };
      if (job.state === 'BLOCKED') return waitingOnNeeds(job.id, asker);
      if (job.state === 'ASSIGNED') {
        const run = (await asker.loaders.runs(job.id)).find(({ epoch }) => epoch === job.epoch);
        if (run?.placedBy === 'SITE')
          return shares.explain(asker, () => whyAtSite(job.id, run, asker.loaders));
        const staging = await asker.loaders.staging({ jobId: job.id, epoch: job.epoch });
        const going = staging !== null && staging.endedAt === null;
        const measuredS = going ? Math.max(0, now() - staging.beganAt) : 0;
        return { ...waitingOnAgent(going ? { ...staging, measuredS } : null), ...NO_START };
      }
      if (!isPending(job.state)) return null;
      return shares.explain(asker, async () => {
        const why = await whyQueued(job.id, asker.loaders);
        return why && shownTo(asker.viewer, why, now());
      });
    },
  };
}

/** Missing needs that are named. */
const NAMED_MAX = 10;

const CONDITION: Readonly<Record<NeedTerm['condition'], string>> = {
  START: 'must start',
  OK: 'must complete',
  NOT_OK: 'must end other than COMPLETED',
  ANY: 'must end',
};

/** `job_5 (prepare, RUNNING) must complete and keep out.dat`. */
async function missingTerm(
  term: NeedTerm,
  { inputs }: BlockedJob,
  viewer: Viewer,
  loaders: Loaders,
): Promise<string> {
  const what = CONDITION[term.condition];
  if ('group' in term) return `the jobs of group ${JSON.stringify(term.group)} ${what}`;
  if ('jobGroup' in term) return `the jobs of ${globalId('group', term.jobGroup)} ${what}`;
  const job = await loaders.findJob(term.job);
  const shown = job !== null && maySeeJob(viewer, job) ? [job.name, job.state] : [];
  const details = shown.filter((one) => one !== null).join(', ');
  const read = inputs.flatMap(({ from }) => (from?.job === term.job ? from.path : []));
  const kept = read.length === 0 || term.condition !== 'OK' ? '' : ` and keep ${read.join(', ')}`;
  return `${globalId('job', term.job)}${details === '' ? '' : ` (${details})`} ${what}${kept}`;
}

type Starting = Pick<PlacementModel, 'startsAt' | 'earliestStart'>;
const NO_BOUNDS = { startsAtLatest: null, fitsIfLimitS: null };
const NO_START = { startsAt: null, earliestStart: null, ...NO_BOUNDS };

const timeOf = (start: PredictedStart | null): number | null => (start?.expected ? start.at : null);

const starting = (start: PredictedStart | null): Starting & Pick<PlacementModel, 'allocations'> => ({
  startsAt: timeOf(start),
  earliestStart: start && !start.expected ? start.at : null,
  allocations: start?.allocations ?? [],
});

const shownTime = (at: number): Date => new Date(Math.min(at * 1000, LATEST_MS));

/** Instants as times, and no job that may be another user's. */
function shownTo(viewer: Viewer, { numbers, ...why }: Waiting, now: number): WhyWaitingModel {
  const { expectedStart, earliestStart, startsAtLatest, reservedAt, reservedJob, ...rest } = numbers;
  const shown = (at: number | undefined): Date | null => (at === undefined ? null : shownTime(at));
  return {
    ...why,
    numbers: {
      ...rest,
      ...(reservedAt !== undefined && { reservedInS: Math.round((reservedAt - now) * 1000) / 1000 }),
      ...(reservedJob !== undefined && handlesAll(viewer) && { reservedJob }),
    },
    startsAt: shown(expectedStart),
    earliestStart: shown(earliestStart),
    startsAtLatest: shown(startsAtLatest),
    fitsIfLimitS: rest.fitsIfLimitS ?? null,
  };
}

function described({ priority, reason, message, ranking, explanation }: Placing, image: string | null) {
  return {
    priority,
    jobTerms: explanation?.priorityTerms ?? {},
    image: imageData(image, explanation),
    reason,
    message,
    candidates: candidates(ranking),
  };
}

/** What an explanation says of a job's image, by the name that the job gives it; null: nothing. */
export const imageData = (
  name: string | null,
  explanation: Partial<Pick<DispatchExplanation, 'image'>> | null,
): ImageDataModel | null =>
  name === null || explanation?.image === undefined ? null : { name, known: explanation.image };

/** A ranking of sites as the API shows it. */
export const candidates = (ranking: readonly SiteRanking[]): CandidateModel[] =>
  ranking.map(({ siteId, rank, terms, ineligible }) => ({
    siteId,
    eligible: ineligible === null,
    reason: ineligible,
    rank,
    terms,
  }));
