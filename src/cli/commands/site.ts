/** `switchyard sites show`: a site, and what is known of its own scheduler. */
import type { Command } from 'commander';
import { addCommand, findSite, show } from '../command.js';
import { connect } from '../connect.js';
import { type SiteDetailsFragment as Site, SiteDocument, type SiteQuery } from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { count, duration, printable, short, table, time } from '../format.js';
import { secondsBetween } from './jobs.js';

type Load = NonNullable<Site['load']>;
type Waiting = SiteQuery['jobs'];
type Images = SiteQuery['images'];

/** Of each kind: what is longer is looked at with `jobs` and `machines`. */
const SHOWN = 20;

export function addSiteShow(list: Command): void {
  const one = addCommand(list, 'show <site>', 'show a site, with the load of its own scheduler');
  one.action(async (nameOrId: string) => {
    const client = connect();
    const { id } = await findSite(client, nameOrId);
    const { node, jobs, images } = await client.request(SiteDocument, { id, first: SHOWN });
    if (node === null) throw new CliError(`there is no site ${id} any more (NOT_FOUND)`, ExitCode.NOT_FOUND);
    // It was asked for as a site.
    show(one, { ...(node as Site), images: images.nodes }, (site) => describeSite(site, jobs, images));
  });
}

function describeSite(site: Site, waiting: Waiting, images: Images): string {
  const lines: [string, unknown][] = [
    ['id', site.id],
    ['name', site.name],
    ['state', site.state],
    ['under', site.scheduler?.name],
    ['local policy', site.localPolicy && JSON.stringify(site.localPolicy)],
    ['CPUs', `${site.cpusUsed} of ${site.cpus} allocated to jobs of this service`],
    ['jobs', `${site.runningJobs} running, ${site.queuedJobs} queued`],
    ['agent', site.agentSeenAt && `last heard from ${time(site.agentSeenAt)} UTC`],
  ];
  const text = lines
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name.padEnd(14)}${printable(String(value))}`);
  if (site.load !== null) text.push('', ...describeLoad(site, site.load, waiting));
  text.push(...imagesThere(images));
  return text.join('\n');
}

function describeLoad(site: Site, load: Load, waiting: Waiting): string[] {
  const outdated = load.stale ? '; OUTDATED: its agent is silent' : '';
  const lines = [
    `its own scheduler, as of ${duration(secondsBetween(load.at, null))} ago (${time(load.at)} UTC)${outdated}:`,
    `  ${load.busyCpus} of ${site.cpus} CPUs in use, ${load.busyMemoryMb} MB of memory in use, by jobs of any user`,
    `  ${count(load.waitingJobs, 'job')} of others waiting, with limits of ${duration(load.waitingS)} in all, ${duration(load.waitingCpuS)} of CPU time`,
  ];
  if (load.longestS !== null) lines.push(`  longest run time limit ${duration(load.longestS)}`);
  if (load.calls !== null) {
    const { made, failed, listS, jobs } = load.calls;
    lines.push(
      `  ${count(made, 'request')} of the agent since it started, ${failed} not answered; the last listing took ${duration(listS)}; ${count(jobs, 'job')} of agents there`,
    );
  }
  if (load.waits.length === 0) lines.push('  no job of this service has started there in the last 24 h');
  lines.push(
    ...partitionsIn(load),
    ...withoutJobs(site),
    ...waitingThere(load, waiting),
    ...waitedThere(load),
  );
  return lines;
}

function partitionsIn({ partitions }: Load): string[] {
  if (partitions.length === 0) return [];
  const rows = partitions.map((one) => [
    `${one.name}${one.isDefault ? '*' : ''}`,
    one.state,
    one.isUsed ? 'yes' : 'no',
    one.longestS === null ? 'none' : duration(one.longestS),
    one.nodes,
    `${one.busyCpus}/${one.cpus}`,
    one.nodeList,
  ]);
  return ['', table(['PARTITION', 'STATE', 'USED', 'LIMIT', 'NODES', 'CPUS IN USE', 'NODE NAMES'], rows)];
}

function imagesThere({ nodes, pageInfo }: Images): string[] {
  if (nodes.length === 0) return [];
  const rows = nodes.map(({ name, sizeMb, agents, digests }) => [
    name,
    short(sizeMb),
    agents,
    digests.join(' '),
  ]);
  const more = pageInfo.hasNextPage ? `, the first ${SHOWN}` : '';
  return ['', `images${more}:`, table(['IMAGE', 'MB', 'AGENTS', 'DIGEST'], rows)];
}

/** Nodes that get no jobs, and why. */
function withoutJobs({ machines }: Site): string[] {
  const out = machines.filter(({ state, problem, silent }) => state !== 'UP' || problem !== null || silent);
  if (out.length === 0) return [];
  const rows = out
    .slice(0, SHOWN)
    .map(({ name, state, silent, reason, problem }) => [
      name,
      silent ? 'SILENT' : state,
      reason ?? problem ?? '',
    ]);
  return [
    '',
    `${nodes(out.length)} without new jobs${first(out)}:`,
    table(['NODE', 'STATE', 'REASON'], rows),
  ];
}

const nodes = (number: number): string => count(number, 'node');
const first = (all: readonly unknown[]): string => (all.length > SHOWN ? `, the first ${SHOWN}` : '');

/** Ours beside those of others, with the reasons of the site's scheduler. */
function waitingThere({ queue }: Load, waiting: Waiting): string[] {
  const lines: string[] = [];
  if (waiting.nodes.length > 0) {
    const rows = waiting.nodes.map(({ id, cpus, runTimeLimitS, runs }) => {
      const run = runs.at(-1);
      return [
        run?.localId,
        id,
        cpus,
        runTimeLimitS === null ? 'none' : duration(runTimeLimitS),
        run?.localState ?? 'not reported yet',
        run === undefined ? null : duration(secondsBetween(run.assignedAt, null)),
      ];
    });
    const more = waiting.pageInfo.hasNextPage ? `, the first ${SHOWN}` : '';
    const head = ['ID', 'JOB', 'CPUS', 'LIMIT', 'STATE', 'WAITS FOR'];
    lines.push('', `jobs of this service waiting there${more}:`, table(head, rows));
  }
  if (queue !== null && queue.length > 0) {
    const rows = queue.map(({ id, cpus, limitS, reason }) => [id, cpus, duration(limitS), reason]);
    lines.push('', 'others waiting there, the first:', table(['ID', 'CPUS', 'LIMIT', 'REASON'], rows));
  }
  return lines;
}

function waitedThere({ waits }: Load): string[] {
  if (waits.length === 0) return [];
  const rows = waits.map(({ cpusMax, limitMaxS, runs, waitS }) => [
    cpusMax === null ? 'more' : `≤ ${cpusMax}`,
    limitMaxS === null ? 'longer, or none' : `≤ ${duration(limitMaxS)}`,
    duration(waitS),
    runs,
  ]);
  return ['', 'jobs of this service lately waited there:', table(['CPUS', 'LIMIT', 'WAITED', 'JOBS'], rows)];
}
