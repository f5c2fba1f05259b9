/**
 * Partitions: each site is one. So is each partition of a scheduler of a site's own, by the names of both: `alps/debug`. It is also found by its own
 * name where only one site has it, as scripts that were written for that cluster call it.
 */
import { parseArray } from '../words/index.js';
import { ask, SlurmError } from './ask.js';
import {
  SlurmPartitionsDocument,
  type SlurmPartitionsQuery,
  SlurmSitesDocument,
  type SlurmSitesQuery,
} from './documents.gql.js';
import type { Job } from './jobs.js';

export type Site = SlurmSitesQuery['sites']['nodes'][number];
/** One of which only the name is known is at a site whose agent does not use its partition. */
export type Machine = Site['machines'][number] & { readonly unknown?: boolean };

/** With machines: as many in a page as one request may cost. */
export const SITES_PAGE = 300;

export async function allSites(): Promise<Site[]> {
  const all: Site[] = [];
  for (let after: string | null = null; ; ) {
    const { sites }: SlurmSitesQuery = await ask(SlurmSitesDocument, { first: SITES_PAGE, after });
    all.push(...sites.nodes);
    if (!sites.pageInfo.hasNextPage) return all;
    after = sites.pageInfo.endCursor;
  }
}

export interface Partition {
  /** `alps`, `alps/debug`. */
  name: string;
  /** At its site; null: it is the site. */
  own: string | null;
  isDefault: boolean;
  isUp: boolean;
  machines: readonly Machine[];
  /** The longest limit of a job, seconds; null: any. */
  longestS: number | null;
  /** The limit of a job that has none, seconds; null: none. */
  defaultS: number | null;
}

const least = (...limits: (number | null | undefined)[]): number | null => {
  const least = Math.min(...limits.map((one) => one ?? Infinity));
  return least === Infinity ? null : least;
};

/** The first site is the default one. */
export const partitionsOf = (sites: readonly Site[]): Partition[] =>
  sites.flatMap((site, at): Partition[] => {
    const isUp = site.state === 'UP';
    const defaultS = site.maxLimitS;
    const whole = { name: site.name, own: null, isDefault: at === 0, isUp, machines: site.machines };
    const byName = new Map<string, Machine>(site.machines.map((machine) => [machine.name, machine]));
    return [
      { ...whole, defaultS, longestS: least(site.maxLimitS, site.load?.longestS) },
      ...(site.load?.partitions ?? []).map(
        (part): Partition => ({
          ...{ name: `${site.name}/${part.name}`, own: part.name, isDefault: false },
          isUp: isUp && part.state.toLowerCase() === 'up',
          machines: machinesOf(part, byName),
          longestS: least(site.maxLimitS, part.longestS),
          defaultS,
        }),
      ),
    ];
  });

type OwnPartition = NonNullable<Site['load']>['partitions'][number];

/** Nodes that are no machines of the site have what the others leave of the partition's CPUs. Adds them to those that are known. */
function machinesOf({ nodeList, cpus, busyCpus }: OwnPartition, byName: Map<string, Machine>): Machine[] {
  const names = namesIn(nodeList);
  const known = names.flatMap((name) => byName.get(name) ?? []);
  const others = names.filter((name) => !byName.has(name));
  const left = (all: number, of: (machine: Machine) => number): number =>
    Math.max(0, Math.round((all - known.reduce((sum, one) => sum + of(one), 0)) / others.length));
  const unknown = others.map((name) => {
    const node: Machine = {
      ...{ name, unknown: true, state: 'UP', reason: null, problem: null, silent: false },
      cpus: left(cpus, (one) => one.cpus),
      cpusUsed: 0,
      busyCpus: left(busyCpus, cpusTaken),
      ...{ memoryMb: 0, memoryUsedMb: 0, busyMemoryMb: null, os: '', architecture: '', resources: [] },
    };
    byName.set(name, node);
    return node;
  });
  return [...known, ...unknown];
}

/** What a scheduler writes that is not understood counts as one node. */
function namesIn(list: string): string[] {
  try {
    return expanded(list);
  } catch {
    return [list];
  }
}

/** By whomever, where that is known. */
export const cpusTaken = ({ busyCpus, cpusUsed }: Machine): number => Math.max(cpusUsed, busyCpus ?? 0);
export const memoryTaken = ({ busyMemoryMb, memoryUsedMb }: Machine): number =>
  Math.max(memoryUsedMb, busyMemoryMb ?? 0);

/** What people call it: by its whole name, or by its own. */
export const isCalled = ({ name, own }: Pick<Partition, 'name' | 'own'>, text: string): boolean =>
  text === name || text === own;

/** `n[1-3,7],login` */
export function expanded(list: string): string[] {
  return list
    .split(/,(?![^[]*\])/)
    .filter(Boolean)
    .flatMap((part) => {
      const [, before, inner, after] = /^(.*)\[([\d,-]+)\](.*)$/.exec(part) ?? [];
      if (inner === undefined) return [part];
      const width = /^0\d/.test(inner) ? inner.split(/[,-]/)[0]!.length : 0;
      return parseArray('nodes', inner).indices.map(
        (index) => `${before}${String(index).padStart(width, '0')}${after}`,
      );
    });
}

// Of jobs --------------------------------------------------------------------------------------------------------------

/** Where a job is or is to be, of which partitions there; null: it may go to any site. */
const placeOf = ({ site, siteTerms, machineConstraint }: Job) => ({
  at: site?.name ?? onlySiteIn(machineConstraint),
  own: siteTerms?.partition?.split(',') ?? [],
});

/** As it is shown: `alps`, `alps/debug,alps/batch`, or `any` site. */
export function partitionOfJob(job: Job): string {
  const { at, own } = placeOf(job);
  if (at === null) return 'any';
  return own.length === 0 ? at : own.map((one) => `${at}/${one}`).join(',');
}

/** Whether one of these names calls a partition of the job's, or its site. */
export function isInOne(job: Job, names: readonly string[]): boolean {
  const { at, own } = placeOf(job);
  if (at === null) return names.includes('any');
  return names.some((name) => name === at || own.some((one) => name === one || name === `${at}/${one}`));
}

/** As `sbatch -p alps/debug` begins the constraint of its job. */
const onlySite = (site: string): string => `site = "${site.replaceAll(/["\\]/g, '\\$&')}"`;
function onlySiteIn(constraint: string | null): string | null {
  const written = /^site = "((?:[^"\\]|\\.)*)"/.exec(constraint ?? '')?.[1];
  return written?.replaceAll(/\\(.)/g, '$1') ?? null;
}
export const atSite = (site: string, constraint: string | undefined): string =>
  constraint === undefined ? onlySite(site) : `${onlySite(site)} and (${constraint})`;

/** Where a job is to go: partitions of one site. */
export interface AskedPartitions {
  site: string;
  /** Separated by commas, as the site's own scheduler calls them. */
  partition: string;
}

/**
 * What these names call, none of which is that of a site.
 *
 * @param limitS of the job; undefined: none
 * @param siteNames what else is accepted
 * @throws SlurmError in Slurm's words, with what is accepted
 */
export async function ownPartitions(
  names: readonly string[],
  limitS: number | undefined,
  siteNames: readonly string[],
): Promise<AskedPartitions> {
  const all = await allOwn();
  const found = names.map((text) => {
    const called = all.filter((one) => isCalled(one, text));
    if (called.length === 0) throw noPartition(text, [...siteNames, ...all.map(({ name }) => name)]);
    if (called.length > 1)
      throw noPartition(
        `${text}: several sites have it`,
        called.map(({ name }) => name),
      );
    return called[0]!;
  });
  const sites = [...new Set(found.map(({ site }) => site))];
  if (sites.length > 1) throw noPartition(names.join(','), [SITES_OR_ONE]);
  const longestS = Math.max(...found.map((one) => one.longestS ?? Infinity));
  if (limitS !== undefined && limitS > longestS)
    throw new SlurmError(
      `--time: ${limitS} s is not accepted; accepted in ${names.join(',')}: up to ${longestS} s\nBatch job submission failed: Requested time limit is invalid (missing or exceeds some limit)`,
    );
  return { site: sites[0]!, partition: found.map(({ own }) => own).join(',') };
}

export const SITES_OR_ONE = 'sites, or partitions of one site';
const ACCEPTED_MAX = 20;

/** The first line as Slurm has it, and the last: clients look for them. */
export const noPartition = (what: string, accepted: readonly string[]): SlurmError =>
  new SlurmError(
    `invalid partition specified: ${what}\naccepted: ${accepted.slice(0, ACCEPTED_MAX).join(', ')}${accepted.length > ACCEPTED_MAX ? ', …' : ''}\nBatch job submission failed: Invalid partition name specified`,
  );

async function allOwn() {
  const all: { site: string; name: string; own: string; longestS: number | null }[] = [];
  for (let after: string | null = null; ; ) {
    const { sites }: SlurmPartitionsQuery = await ask(SlurmPartitionsDocument, { first: 1000, after });
    for (const { name: site, load } of sites.nodes)
      for (const { name: own, longestS } of load?.partitions ?? [])
        all.push({ site, name: `${site}/${own}`, own, longestS });
    if (!sites.pageInfo.hasNextPage) return all;
    after = sites.pageInfo.endCursor;
  }
}
