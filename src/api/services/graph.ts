/** What jobs need of one another, as a graph, with the way that decides when the last of them ends. */
import { type ForecastJob, type ForecastTerm, forecast } from '../../core/needs/forecast.js';
import type { NeedCondition } from '../../core/needs/model.js';
import { isTerminal } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { type JobWait, keyOf, type NeedTerm, type TargetKey } from '../../store/needs.js';
import type { JobRow, RunRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { within } from '../check.js';
import type { QueryJobGraphArgs } from '../generated/types.js';
import type { JobGraphModel, JobGraphNodeModel } from '../models.js';
import { guarded } from './access.js';
import { visibleFilter } from './job-filter.js';
import type { ServiceParts } from './parts.js';

const FIELDS = [
  ...(['id', 'userId', 'name', 'arrayIndex', 'groupName', 'groupId', 'state', 'epoch'] as const),
  ...(['submittedAt', 'startedAt', 'endedAt', 'estimateS', 'rerunOf'] as const),
];
type Member = Pick<JobRow, (typeof FIELDS)[number]>;

const NO_WAIT: Pick<JobWait, 'needs' | 'notBefore'> = { needs: [], notBefore: null };

export function createGraphService({ queries, now }: Pick<ServiceParts, 'queries' | 'now'>) {
  /** The first jobs that match, by id; one more, where there are more. */
  const members = (filter: NonNullable<ReturnType<typeof visibleFilter>>, limit: number): Promise<Member[]> =>
    queries.jobs(
      filter,
      { order: 'SUBMITTED', direction: 'ASC', backward: false, from: null, limit },
      FIELDS,
    );

  /** Jobs that are needed and not among these. What they need themselves is not looked for: nobody knows when such a one starts. */
  async function others(jobs: readonly Member[], waits: ReadonlyMap<number, JobWait>): Promise<Member[]> {
    const known = new Set(jobs.map(({ id }) => id));
    const named = new Set<number>();
    for (const { needs } of waits.values())
      for (const { of } of needs) for (const term of of) if ('job' in term) named.add(term.job);
    const ids = [...named].filter((id) => !known.has(id)).slice(0, MAX.graphJobs);
    return ids.length === 0 ? [] : members({ ids }, ids.length);
  }

  return guarded({
    async jobGraph(viewer: Viewer, { filter, most }: QueryJobGraphArgs): Promise<JobGraphModel> {
      within('most', most, 1, MAX.graphJobs);
      const stored = visibleFilter(viewer, filter);
      const found = stored === null ? [] : await members(stored, most + 1);
      const shown = found.slice(0, most);
      const waits = await queries.waitsOf(shown.map(({ id }) => id));
      const all = [...shown, ...(await others(shown, waits))];
      for (const [id, wait] of await queries.waitsOf(all.slice(shown.length).map(({ id }) => id)))
        waits.set(id, wait);
      const started = all.filter(({ epoch, endedAt }) => epoch > 0 && endedAt === null);
      const runs = new Map<number, RunRow[]>(started.map(({ id }) => [id, []]));
      for (const run of await queries.runsOfJobs([...runs.keys()])) runs.get(run.jobId)?.push(run);
      const at = now();
      const targets = new Targets(all);
      const jobs = all.map((job): ForecastJob => forecastJob(job, waits.get(job.id), runs, targets));
      const { levels, starts, ends, criticalPath } = forecast(jobs, at);
      const { needs, isWhole } = edgesOf(jobs.slice(0, shown.length), shown.length);
      const way = criticalPath.filter((i) => i < shown.length);
      const last = way.at(-1);
      return {
        nodes: shown.map(
          (job, i): JobGraphNodeModel => ({
            ...job,
            level: levels[i] as number,
            expectedStart: starts[i] ?? null,
            expectedEnd: ends[i] ?? null,
            needs: (needs[i] ?? []).map(({ on }) => on),
            conditions: (needs[i] ?? []).map(({ condition }) => condition),
          }),
        ),
        isWhole: isWhole && found.length <= most,
        criticalPath: way,
        expectedEnd:
          last === undefined || shown.every((job) => isTerminal(job.state)) ? null : (ends[last] ?? null),
      };
    },
  });
}

function forecastJob(
  { id, state, startedAt, endedAt, estimateS, epoch }: Member,
  wait: JobWait | undefined,
  runs: ReadonlyMap<number, RunRow[]>,
  targets: Targets,
): ForecastJob {
  const { needs, notBefore } = wait ?? NO_WAIT;
  const own = runs.get(id) ?? [];
  const run = own.find((one) => one.epoch === epoch);
  return {
    needs: needs.map(({ expression, of }) => ({
      expression,
      of: of.map(
        (term): ForecastTerm => ({
          on: targets.of(term),
          condition: term.condition,
          minDelayS: term.minDelayS,
        }),
      ),
    })),
    ...{ notBefore, endedAt, startedAt: endedAt === null ? (run?.startedAt ?? null) : startedAt },
    firstStartedAt: own.find((one) => one.startedAt !== null)?.startedAt ?? startedAt,
    runS: run?.plannedS ?? estimateS,
    held: state === 'HELD',
  };
}

/** What terms name, as positions among the jobs; terms on the same thing share a list. */
class Targets {
  private readonly positions: ReadonlyMap<number, number>;
  private readonly lists = new Map<TargetKey, readonly number[]>();
  private readonly copies: ReadonlyMap<number, number>;

  constructor(private readonly jobs: readonly Member[]) {
    this.positions = new Map(jobs.map(({ id }, i) => [id, i]));
    this.copies = new Map(jobs.flatMap(({ id, rerunOf }) => (rerunOf === null ? [] : [[rerunOf, id]])));
  }

  of(term: NeedTerm): readonly number[] {
    const key = keyOf(term);
    let list = this.lists.get(key);
    if (list === undefined) {
      list = this.find(term);
      this.lists.set(key, list);
    }
    return list;
  }

  private find(term: NeedTerm): readonly number[] {
    if ('job' in term) return [this.positions.get(term.job)].filter((position) => position !== undefined);
    const isNamed = (job: Member): boolean =>
      'jobGroup' in term
        ? job.groupId === term.jobGroup
        : job.groupName === term.group && job.id <= term.until;
    const asOf = term.again?.asOf ?? 0;
    return [...this.jobs.keys()].filter((i) => {
      let job = this.jobs[i];
      const copy = this.copies.get((job as Member).id);
      if (copy !== undefined && copy <= asOf) return false;
      while (job !== undefined && !isNamed(job) && job.rerunOf !== null && job.id <= asOf)
        job = this.jobs[this.positions.get(job.rerunOf) ?? -1];
      return job !== undefined && isNamed(job);
    });
  }
}

/** Each job that another one needs, once, among the first `count`; as many as are shown. */
function edgesOf(
  jobs: readonly ForecastJob[],
  count: number,
): { needs: { on: number; condition: NeedCondition }[][]; isWhole: boolean } {
  let edges = 0;
  const needs = jobs.map(({ needs: clauses }) => {
    const found = new Map<number, NeedCondition>();
    for (const { of } of clauses)
      for (const { on, condition } of of)
        for (const position of on)
          if (position < count && edges + found.size < MAX.graphEdges) found.set(position, condition);
    edges += found.size;
    return [...found].map(([on, condition]) => ({ on, condition }));
  });
  return { needs, isWhole: edges < MAX.graphEdges };
}
