/** `switchyard why` and `placement`: what the schedulers decided, or would decide, and on what numbers. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import { parseId } from '../../words/values.js';
import { addCommand, print, printJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import {
  type JobInput,
  PlacementDocument,
  type PlacementQuery,
  WhyDocument,
  type WhyQuery,
} from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { noSuchJob } from '../follow.js';
import { duration, printable, short, table, time, workflowPlace } from '../format.js';
import { addJobOptions, type JobOptions, jobFromOptions, placesFromOptions } from '../job-options.js';

type Why = NonNullable<WhyQuery['job']>;
type Placement = PlacementQuery['placement'];
type Candidate = Placement['candidates'][number];
type Term = Candidate['terms'][number];

export function addWhy(program: Command): void {
  const why = addCommand(
    program,
    'why <id>',
    'show why a job is waiting, and why it was dispatched to its site',
  );
  why.action(async (id: string) => {
    const client = connect();
    const jobId = parseId('job', id);
    const { job } = await client.request(WhyDocument, { id: jobId });
    if (!job) throw noSuchJob(jobId);
    return wantsJson(why) ? printJson(job) : print(describeWhy(job));
  });

  const placement = addJobOptions(
    addCommand(
      program,
      'placement [job-or-command] [arguments...]',
      'dry run: show where a job would be dispatched and when it would start',
    ),
  )
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nExamples: switchyard placement job_17\n          switchyard placement --cpus 4 --license matlab -- simulate',
    );
  placement.action(async (first: string | undefined, rest: string[], options: JobOptions) => {
    const client = connect();
    const result = await dryRun(client, first, rest, options);
    return wantsJson(placement) ? printJson(result) : print(describePlacement(result));
  });
}

async function dryRun(
  client: Client,
  first: string | undefined,
  rest: string[],
  options: JobOptions,
): Promise<Placement> {
  const job =
    first !== undefined && rest.length === 0 && /^(job_)?\d+$/.test(first) ? parseId('job', first) : null;
  const spec = job
    ? null
    : {
        ...jobFromOptions(options, first === undefined ? [] : [first, ...rest]),
        ...(await placesFromOptions(client, options)),
      };
  if (spec && spec.command === undefined) {
    throw new CliError('no job given: give a job such as job_17, or a command after --', ExitCode.USAGE);
  }
  return (await client.request(PlacementDocument, job ? { job } : { spec: spec as JobInput })).placement;
}

function describeWhy(job: Why): string {
  const at = job.site ?? job.scheduler;
  const lines = [
    `${job.id} is ${job.state}${at ? ` at ${printable(at.name)}` : ''}${job.cause ? ` (${job.cause})` : ''}`,
  ];
  if (job.message) lines.push(printable(job.message));
  if (job.foreign)
    lines.push(printable(`it is ${job.foreign.job} of ${job.foreign.user} at ${job.foreign.peer.name}`));
  if (job.workflow) lines.push(`workflow: ${workflowPlace(job.workflow)}`);
  const wait = job.whyWaiting;
  if (wait) {
    lines.push(`waiting: ${wait.message} (${wait.code})`);
    if (wait.startsAt) lines.push(`  expected start ${time(wait.startsAt)} UTC`);
    if (wait.earliestStart) lines.push(`  will not start before ${time(wait.earliestStart)} UTC`);
    if (wait.startsAtLatest) lines.push(`  starts no later than ${time(wait.startsAtLatest)} UTC`);
    for (const { term, expectedAt, unknown } of wait.missing) {
      const what = term.job?.id ?? term.jobGroup?.id ?? term.group ?? 'a job of another user';
      const when = expectedAt ? `expected ${time(expectedAt)} UTC` : `expected time unknown: ${unknown}`;
      lines.push(printable(`  ${what} ${term.condition}: ${when}`));
    }
    for (const { name, value } of wait.numbers) lines.push(`  ${name} = ${short(value)}`);
    for (const change of wait.wouldChange) lines.push(`  would help: ${change}`);
  }
  // A path through the tree has more than its end.
  if (job.path.some(({ scheduler }) => scheduler !== null)) {
    lines.push('', 'its path:');
    for (const step of job.path) {
      const to = step.site ? `site ${step.site.name}` : (step.scheduler?.name ?? 'the root');
      lines.push(printable(`  ${time(step.at)}  to ${to}: ${step.message} (${step.reason})`));
    }
  }
  if (job.peers.length > 0) lines.push('', 'peers:');
  for (const { peer, state, reason, path } of job.peers) {
    const at = path === null ? '' : `, at ${path.join(' > ')}`;
    const is = state === 'CLAIMED' ? `has it${at}` : state === 'OFFERED' ? `may claim it${at}` : reason;
    lines.push(printable(`  ${peer.name}: ${is}`));
  }
  for (const decision of job.decisions.nodes) {
    const from = decision.kind === 'DISPATCH' && decision.from ? `from ${decision.from.name}; ` : '';
    const basis = `${from}${decision.reason}; policy ${decision.policyVersion}, cycle ${decision.cycle}`;
    lines.push('', `${time(decision.at)}  ${printable(decision.message)} (${printable(basis)})`);
    lines.push(...jobTerms(decision.jobTerms), ...imageOf(decision.image));
    if (decision.candidates.length > 0) lines.push(candidateTable(decision.candidates));
  }
  if (job.decisions.nodes.length === 0) lines.push('no scheduling decisions yet');
  return lines.join('\n');
}

function describePlacement(placement: Placement): string {
  const where = placement.allocations.map(({ machine, tasks }) => `${machine.name}×${tasks}`).join(' ');
  const starts = placement.startsAt
    ? `would start ${time(placement.startsAt)} UTC${where ? ` on ${where}` : ''}`
    : placement.earliestStart
      ? `would not start before ${time(placement.earliestStart)} UTC`
      : 'its start cannot be predicted';
  const head = placement.site
    ? `would be dispatched to ${placement.site.name}; ${starts}`
    : placement.candidates.some(({ eligible }) => eligible)
      ? `would wait in the global queue; ${starts}`
      : `no site can run it now: ${placement.reason}`;
  return [
    `${printable(head)} (priority ${placement.priority ?? 'none'}, policy ${placement.policyVersion})`,
    `${placement.message} (${placement.reason})`,
    ...boundsOf(placement),
    ...jobTerms(placement.jobTerms),
    ...imageOf(placement.image),
    '',
    candidateTable(placement.candidates),
  ].join('\n');
}

/** What windows and reservations say of its start. */
function boundsOf({ startsAtLatest, fitsIfLimitS }: Placement): string[] {
  return [
    ...(startsAtLatest ? [`would start at ${time(startsAtLatest)} UTC at the latest`] : []),
    ...(fitsIfLimitS === null ? [] : [`would start now with a limit of ${duration(fitsIfLimitS)}`]),
  ];
}

/** A line of what the policy knew of the job itself; none where it knew nothing. */
function jobTerms(terms: readonly Term[]): string[] {
  const known = terms.map(({ name, value }) => `${name} = ${short(value)}`);
  return known.length === 0 ? [] : [`the job: ${known.join(', ')}`];
}

/** A line of what was known of the job's image; none where the policy does not ask. */
function imageOf(image: Placement['image']): string[] {
  if (image === null) return [];
  const { name, sizeMb, sites } = image;
  const known =
    sizeMb === null
      ? 'at no site, so its size is not known and counts as nothing'
      : `${short(sizeMb)} MB, at ${sites.map((site) => site.name).join(', ')}`;
  return [printable(`its image ${name}: ${known}`)];
}

/** For a cell: a number without a long tail; null where there is none. */
const rounded = (term: Term | undefined): number | null => (term ? Number(term.value.toPrecision(6)) : null);

/** Candidates, the chosen ones first, a column for each term. */
function candidateTable(candidates: readonly Candidate[]): string {
  const terms = [...new Set(candidates.flatMap((one) => one.terms.map(({ name }) => name)))];
  const ranked = candidates.toSorted((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
  return table(
    ['RANK', 'SITE', ...terms.map((term) => term.toUpperCase()), 'NOT ELIGIBLE BECAUSE'],
    ranked.map((one) => [
      one.rank ?? '-',
      one.site.name,
      ...terms.map((term) => rounded(one.terms.find(({ name }) => name === term))),
      one.eligible ? '' : one.reason,
    ]),
  );
}
