/** Where jobs stand in the workflow that is submitted with them (jobs.md, "Ranks of a workflow"). */
import { type DataEdge, Grid, type Job, UNKNOWN_LINK, workflowPlaces } from '../../core/index.js';
import { turns } from '../../platform/turns.js';
import type { Queries } from '../../store/queries.js';
import type { NewJob } from '../../store/store.js';
import { anybodys, isUnknown, type Resources } from './fit.js';

/** More than anybody has. */
const LINKS_MAX = 10_000;

/** Gives each job that needs another of the submission, or is needed by one, its place. `since`: epoch seconds. */
export type Ranks = (jobs: readonly NewJob[], since: number) => Promise<void>;

export function createRanks(known: () => Promise<Resources>, queries: Pick<Queries, 'links'>): Ranks {
  return async (jobs, since) => {
    const { edges, groups } = edgesOf(jobs);
    if (edges.length === 0) return;
    const resources = await known();
    const links = edges.some(({ mb }) => mb > 0) ? await queries.links({}, null, LINKS_MAX) : [];
    const byEnds = new Map(links.map((link) => [`${link.fromSiteId} ${link.toSiteId}`, link]));
    await turns.pause();
    const places = workflowPlaces(
      isUnknown(resources) ? new Grid() : resources.grid,
      { jobs: described(jobs), edges, groups, since },
      (from, to) => {
        const { rttS, bandwidthMbPerS } = byEnds.get(`${from} ${to}`) ?? UNKNOWN_LINK;
        return { latencyS: rttS, mbPerS: bandwidthMbPerS };
      },
    );
    for (const [i, job] of jobs.entries()) job.workflow = places[i] ?? null;
  };
}

/** One at a time: of 100 000 none is kept. */
function* described(jobs: readonly NewJob[]): Generator<Job> {
  for (const job of jobs) yield anybodys(job);
}

/**
 * Between jobs by their positions. Behind these come the groups of the submission that are needed, so that members and who needs
 * them cost their sum, not their product.
 */
function edgesOf(jobs: readonly NewJob[]): { edges: DataEdge[]; groups: number } {
  const edges: DataEdge[] = [];
  const needed = new Map<string, number>();
  for (const [to, { wait }] of jobs.entries()) {
    for (const { of } of wait?.needs ?? [])
      for (const term of of) {
        if ('item' in term) edges.push({ from: term.item, to, mb: 0 });
        if (!('group' in term)) continue;
        const node = needed.get(term.group) ?? jobs.length + needed.size;
        needed.set(term.group, node);
        edges.push({ from: node, to, mb: 0 });
      }
    for (const sources of wait?.reads?.values() ?? [])
      for (const source of sources)
        if ('item' in source) edges.push({ from: source.item, to, mb: jobs[source.item]?.outputMb ?? 0 });
  }
  if (needed.size === 0) return { edges, groups: 0 };
  const found = new Set<number>();
  for (const [from, { groupName }] of jobs.entries()) {
    const to = groupName === null ? undefined : needed.get(groupName);
    if (to === undefined) continue;
    found.add(to);
    edges.push({ from, to, mb: 0 });
  }
  // A group that has no member here is of no workflow.
  return {
    edges: edges.filter(({ from }) => from < jobs.length || found.has(from)),
    groups: needed.size,
  };
}
