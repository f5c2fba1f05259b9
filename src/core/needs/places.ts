/** Where jobs stand in their workflow, for policies that go by ranks. */
import type { Grid } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type { Job, WorkflowPlace } from '../model.js';
import { whyNeverFits } from '../resources/eligibility.js';
import { SitePowers } from '../terms/power.js';
import { type DataEdge, type RankedJob, type RankLink, upwardRanks } from './ranks.js';

export interface RankedWorkflow {
  jobs: Iterable<Job>;
  /** Between jobs by position. Positions beyond the jobs stand for all members of a group, and take no time. */
  edges: readonly DataEdge[];
  groups: number;
  /** When it was submitted. */
  since: number;
}

/** By position; null: a job that no edge has. `linkOf`: between sites by id. Throws for a circle. */
export function workflowPlaces(
  grid: Grid,
  { jobs, edges, groups, since }: RankedWorkflow,
  linkOf: (from: number, to: number) => RankLink,
): (WorkflowPlace | null)[] {
  const nodes = Array.from(jobs, runsOn(grid));
  const count = nodes.length;
  for (let i = 0; i < groups; i++) nodes.push(NOWHERE);
  const link = (from: string, to: string): RankLink => linkOf(Number(from), Number(to));
  const { ranks, order } = upwardRanks(nodes, edges, link);
  const isPart = new Uint8Array(nodes.length);
  for (const { from, to } of edges) isPart[from] = isPart[to] = 1;
  const places: (WorkflowPlace | null)[] = new Array(count).fill(null);
  let place = 0;
  for (const item of order)
    if (item < count && isPart[item] === 1)
      places[item] = { since, place: ++place, rankS: Number((ranks[item] as number).toPrecision(12)) };
  return places;
}

const NOWHERE: RankedJob = { runs: [] };

/** Of a job the sites that could run it, and for how long. Jobs that ask for the same share the answer. */
function runsOn(grid: Grid): (job: Job) => RankedJob {
  const powers = new SitePowers(grid.sites);
  const known = new Map<Requirement, Map<number, RankedJob>>();
  return (job) => {
    const requirement = grid.requirementOf(job);
    const work = job.estimateS * job.benchmark;
    const byWork = known.get(requirement) ?? new Map<number, RankedJob>();
    known.set(requirement, byWork);
    let found = byWork.get(work);
    if (found === undefined) {
      const { benchmark } = powers.of(requirement.signature);
      const runs = grid.sites.flatMap(({ site, resources }, i) =>
        whyNeverFits(requirement, resources.eligible(requirement.signature)) === null
          ? [{ site: String(site.id), p50S: work / (benchmark[i] as number) }]
          : [],
      );
      found = { runs };
      byWork.set(work, found);
    }
    return found;
  };
}
