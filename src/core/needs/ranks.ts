/**
 * The order in which the ready jobs of a workflow go where the policy says so (jobs.md, "Ranks of a workflow"): the longest way
 * from a job to the end, by mean run times and transfers (Topcuoglu, Hariri and Wu, IEEE TPDS 2002: HEFT).
 */
import { circles, digraph, topologicalOrder } from '../structures/digraph.js';

export interface RankedJob {
  /** The sites that can run it, by name, with its P50 run time there in seconds; empty: none. */
  readonly runs: readonly { readonly site: string; readonly p50S: number }[];
}

/** The successor reads `mb` megabytes that the other makes. Both by position. */
export interface DataEdge {
  readonly from: number;
  readonly to: number;
  readonly mb: number;
}

export interface RankLink {
  readonly latencyS: number;
  readonly mbPerS: number;
}

export interface UpwardRanks {
  /** By position. */
  readonly ranks: Float64Array;
  /** Positions, the first to go first: never a job before one that it needs. */
  readonly order: number[];
}

/** `linkOf`: the link between two sites that differ; the grid's default one where none is known. Throws for a circle. */
export function upwardRanks(
  jobs: readonly RankedJob[],
  edges: readonly DataEdge[],
  linkOf: (from: string, to: string) => RankLink,
): UpwardRanks {
  const positions = (way: 'from' | 'to') => Int32Array.from(edges, (edge) => edge[way]);
  const graph = digraph(jobs.length, positions('from'), positions('to'));
  const ordered = topologicalOrder(graph);
  if (ordered.length < jobs.length) {
    const members = circles(graph)[0]?.slice(0, 20).join(', ');
    throw new Error(`jobs ${members} depend on one another in a cycle; accepted: edges without cycles`);
  }
  const ways = new Ways(jobs, linkOf);
  const after = new Float64Array(jobs.length);
  const ranks = new Float64Array(jobs.length);
  const level = new Int32Array(jobs.length);
  const into = incoming(jobs.length, edges);
  for (const job of ordered) {
    for (let e = graph.first[job] as number; e < (graph.first[job + 1] as number); e++) {
      const next = graph.to[e] as number;
      level[next] = Math.max(level[next] as number, (level[job] as number) + 1);
    }
  }
  for (let i = ordered.length - 1; i >= 0; i--) {
    const job = ordered[i] as number;
    const rank = meanRunS(jobs[job] as RankedJob) + (after[job] as number);
    ranks[job] = rank;
    for (const { from, mb } of into(job))
      after[from] = Math.max(after[from] as number, ways.meanS(from, job, mb) + rank);
  }
  // Sums that differ by rounding alone are equal: what is left of them would decide by chance.
  const keys = Float64Array.from(ranks, (rank) => Number(rank.toPrecision(12)));
  const order = [...jobs.keys()].sort(
    (a, b) =>
      (keys[b] as number) - (keys[a] as number) || (level[a] as number) - (level[b] as number) || a - b,
  );
  return { ranks, order };
}

/** The edges to a job. */
function incoming(jobs: number, edges: readonly DataEdge[]): (job: number) => Iterable<DataEdge> {
  const graph = digraph(
    jobs,
    Int32Array.from(edges, ({ to }) => to),
    edges.map((_, i) => i),
  );
  return function* (job) {
    for (let e = graph.first[job] as number; e < (graph.first[job + 1] as number); e++)
      yield edges[graph.to[e] as number] as DataEdge;
  };
}

function meanRunS({ runs }: RankedJob): number {
  return runs.length === 0 ? 0 : runs.reduce((sum, { p50S }) => sum + p50S, 0) / runs.length;
}

/** Mean transfers from the sites of one job to those of another. Jobs that the same sites can run share what they cost. */
class Ways {
  private readonly sitesOf: Int32Array;
  private readonly sites: string[][] = [];
  private readonly means = new Map<number, { latencyS: number; sPerMb: number }>();

  constructor(
    jobs: readonly RankedJob[],
    private readonly linkOf: (from: string, to: string) => RankLink,
  ) {
    const known = new Map<string, number>();
    this.sitesOf = Int32Array.from(jobs, ({ runs }) => {
      const sites = runs.map(({ site }) => site).sort();
      const key = JSON.stringify(sites);
      const found = known.get(key) ?? this.sites.push(sites) - 1;
      known.set(key, found);
      return found;
    });
  }

  /** Over all pairs of a site of each, 0 within a site. */
  meanS(from: number, to: number, mb: number): number {
    if (mb === 0) return 0;
    const [a, b] = [this.sitesOf[from] as number, this.sitesOf[to] as number];
    const key = a * this.sites.length + b;
    let mean = this.means.get(key);
    if (mean === undefined) {
      mean = this.meanOf(this.sites[a] as string[], this.sites[b] as string[]);
      this.means.set(key, mean);
    }
    return mean.latencyS + mb * mean.sPerMb;
  }

  private meanOf(from: readonly string[], to: readonly string[]): { latencyS: number; sPerMb: number } {
    const pairs = from.length * to.length;
    let [latencyS, sPerMb] = [0, 0];
    for (const a of from) {
      for (const b of to) {
        if (a === b) continue;
        const link = this.linkOf(a, b);
        latencyS += link.latencyS / pairs;
        sPerMb += 1 / link.mbPerS / pairs;
      }
    }
    return { latencyS, sPerMb };
  }
}
