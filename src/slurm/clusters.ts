/** Clusters (`--clusters`): this service, and each of its peers by its name. A job at a peer is in the peer's cluster. */
import { ask, SlurmError } from './ask.js';
import { SlurmClustersDocument, type SlurmClustersQuery } from './documents.gql.js';
import type { Job } from './jobs.js';

/** This service. */
export const OWN = 'switchyard';

export interface Clusters {
  /** Those that were asked for, in order. */
  names: readonly string[];
  of(job: Pick<Job, 'site'>): string;
}

/** All there are, this service first. */
export async function allClusters(): Promise<string[]> {
  const peers: string[] = [];
  for (let after: string | null = null; ; ) {
    const { sites }: SlurmClustersQuery = await ask(SlurmClustersDocument, { first: 5000, after });
    for (const { name, isPeer } of sites.nodes) if (isPeer) peers.push(name);
    if (!sites.pageInfo.hasNextPage) return [OWN, ...peers];
    after = sites.pageInfo.endCursor;
  }
}

/**
 * Those that are asked for by name, or by `all`; null: none are.
 *
 * @throws SlurmError in Slurm's words for one that there is not, with what is accepted
 */
export async function clustersAsked(asked: readonly string[]): Promise<Clusters | null> {
  if (asked.length === 0) return null;
  const all = await allClusters();
  const unknown = asked.find((one) => one !== 'all' && !all.includes(one));
  if (unknown !== undefined)
    throw new SlurmError(
      `'${unknown}' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.\naccepted: all, ${all.join(', ')}`,
    );
  const names = asked.includes('all') ? all : [...new Set(asked)];
  return { names, of: ({ site }) => (site !== null && all.includes(site.name) ? site.name : OWN) };
}

/** Lines of each cluster, under its name where there are headers, as Slurm has them; `lines`: of null, all. */
export const byCluster = (
  clusters: Clusters | null,
  isHeaded: boolean,
  lines: (cluster: string | null) => readonly string[],
): string[] =>
  clusters === null
    ? [...lines(null)]
    : clusters.names.flatMap((name, i) => [
        ...(isHeaded ? [...(i > 0 ? [''] : []), `CLUSTER: ${name}`] : []),
        ...lines(name),
      ]);
