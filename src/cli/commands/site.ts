/** `switchyard sites show`: a site, and what is known of its own scheduler. */
import type { Command } from 'commander';
import { addCommand, findSite, show } from '../command.js';
import { connect } from '../connect.js';
import { type SiteDetailsFragment as Site, SiteDocument } from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { count, duration, printable, table, time } from '../format.js';
import { secondsBetween } from './jobs.js';

type Load = NonNullable<Site['load']>;

export function addSiteShow(list: Command): void {
  const one = addCommand(list, 'show <site>', 'show a site, with the load of its own scheduler');
  one.action(async (nameOrId: string) => {
    const client = connect();
    const { id } = await findSite(client, nameOrId);
    const { node } = await client.request(SiteDocument, { id });
    if (node === null) throw new CliError(`there is no site ${id} any more (NOT_FOUND)`, ExitCode.NOT_FOUND);
    // It was asked for as a site.
    show(one, node as Site, describeSite);
  });
}

function describeSite(site: Site): string {
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
  if (site.load !== null) text.push('', ...describeLoad(site.load, site.cpus));
  return text.join('\n');
}

function describeLoad(load: Load, cpus: number): string[] {
  const outdated = load.stale ? '; OUTDATED: its agent is silent' : '';
  const lines = [
    `its own scheduler, as of ${duration(secondsBetween(load.at, null))} ago (${time(load.at)} UTC)${outdated}:`,
    `  ${load.busyCpus} of ${cpus} CPUs in use, ${load.busyMemoryMb} MB of memory in use, by jobs of any user`,
    `  ${count(load.waitingJobs, 'job')} of others waiting, with limits of ${duration(load.waitingS)} in all, ${duration(load.waitingCpuS)} of CPU time`,
  ];
  if (load.longestS !== null) lines.push(`  longest run time limit ${duration(load.longestS)}`);
  if (load.calls !== null) {
    const { made, failed, listS, jobs } = load.calls;
    lines.push(
      `  ${count(made, 'request')} of the agent since it started, ${failed} not answered; the last listing took ${duration(listS)}; ${count(jobs, 'job')} of agents there`,
    );
  }
  if (load.partitions.length > 0) {
    const rows = load.partitions.map((one) => [
      `${one.name}${one.isDefault ? '*' : ''}`,
      one.state,
      one.isUsed ? 'yes' : 'no',
      one.longestS === null ? 'none' : duration(one.longestS),
      one.nodes,
      `${one.busyCpus}/${one.cpus}`,
      one.nodeList,
    ]);
    const head = ['PARTITION', 'STATE', 'USED', 'LIMIT', 'NODES', 'CPUS IN USE', 'NODE NAMES'];
    lines.push('', table(head, rows));
  }
  if (load.queue !== null && load.queue.length > 0) {
    const rows = load.queue.map(({ id, cpus, limitS, reason }) => [id, cpus, duration(limitS), reason]);
    lines.push('', 'others waiting there, the first:', table(['ID', 'CPUS', 'LIMIT', 'REASON'], rows));
  }
  if (load.waits.length === 0) lines.push('  no job of this service has started there in the last 24 h');
  else {
    const rows = load.waits.map(({ cpusMax, limitMaxS, runs, waitS }) => [
      cpusMax === null ? 'more' : `≤ ${cpusMax}`,
      limitMaxS === null ? 'longer, or none' : `≤ ${duration(limitMaxS)}`,
      duration(waitS),
      runs,
    ]);
    lines.push(
      '',
      'jobs of this service lately waited there:',
      table(['CPUS', 'LIMIT', 'WAITED', 'JOBS'], rows),
    );
  }
  return lines;
}
