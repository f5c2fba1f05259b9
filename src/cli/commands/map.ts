/** `switchyard map`: a command for each line of a list, as GNU parallel does, over the grid. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Command } from 'commander';
import { asked, type Client } from '../../client/index.js';
import { MAX } from '../../platform/limits.js';
import { ARRAY_MAX, elementsOf, given, parseNumber } from '../../words/index.js';
import { addCommand, interruption, note, print, printJson, readText, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import type { JobInput } from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { awaitEnds, type JobLine, stateTold } from '../follow.js';
import { count, printable, printableOutput } from '../format.js';
import { addJobOptions, type JobOptions, jobFromOptions, placesFromOptions } from '../job-options.js';
import { commandTemplate } from '../templates.js';
import { cancelled, codeOfSignal, INTERRUPTIONS } from './run.js';
import { submit } from './submit.js';

interface MapOptions extends JobOptions {
  inputs?: string;
  null?: boolean;
  atOnce?: string;
  keepOrder?: boolean;
  idempotencyKey?: string;
  dryRun?: boolean;
}

/** As GNU parallel: more than can be told. */
const MANY_FAILED = 101;
const FAILURES_TOLD = 10;

export function addMap(program: Command): void {
  const command = addJobOptions(
    addCommand(
      program,
      'map <command> [arguments...]',
      'run a command for each line of a list, as jobs, and print their output',
    ),
  )
    .option('-a, --inputs <file>', 'the list of inputs, one per line (default: standard input)')
    .option('-0, --null', 'inputs are separated by NUL instead of newlines')
    .option(
      '-j, --at-once <n>',
      'maximum number of jobs at the same time (default: as many as there is room for)',
    )
    .option('-k, --keep-order', 'print output in input order (default: as jobs end)')
    .option(
      '--idempotency-key <key>',
      'the same command with this key and list continues with the same jobs, and an interrupt does not cancel them',
    )
    .option('--dry-run', 'print the command lines, and submit nothing')
    .passThroughOptions()
    .addHelpText('after', HELP);
  command.action(async (name: string, args: string[], options: MapOptions) => {
    const { words, inputs } = await inputsOf([name, ...args], options);
    const template = commandTemplate(words);
    const lines = inputs.map((input, at) => template(input, at + 1));
    if (options.dryRun) {
      for (const line of lines) print(JSON.stringify([line.command, ...line.arguments]));
      return;
    }
    if (lines.length === 0) return wantsJson(command) ? printJson([]) : undefined;
    const client = connect();
    const key = options.idempotencyKey ?? randomUUID();
    const common = { ...jobFromOptions(options, []), ...(await placesFromOptions(client, options)) };
    const atOnce = given(options.atOnce, (text) => parseNumber('--at-once', text, { min: 1, integer: true }));
    const elements = elementsOf({ indices: inputs.map((_, at) => at + 1), atOnce: atOnce ?? null });
    const jobs = elements.map(
      (element, at): JobInput => ({
        name: [...(inputs[at] as string)].slice(0, MAX.nameChars).join('') || null,
        groupName: `map ${key}`.slice(0, MAX.nameChars),
        ...common,
        ...element,
        ...lines[at]!,
        ...(element.needs && { needs: [...(common.needs ?? []), ...element.needs] }),
      }),
    );
    const interrupted = interruption(INTERRUPTIONS);
    const { jobIds } = await asked(() => submit(client, jobs, key));
    await awaited(client, { ids: jobIds, inputs, options, json: wantsJson(command), interrupted });
  });
}

const HELP = `
One word is a line for \`sh\`; several are a program and its arguments. In both, for each input:
  {}    the input                        {.}   without its extension
  {/}   its last component, as a path    {//}  its directory
  {/.}  its last component without extension
  {#}   its number, from 1
Without any of these, the input becomes the last argument. \\{} stays {}. Inputs are passed as arguments: the shell never executes any part of them.
Exit code: the number of failed jobs, at most 101; 128 + n if interrupted by signal n.

Examples:
  ls *.txt | switchyard map 'gzip -k {}'
  switchyard map --cpus 4 -j 10 -- ./align {} {.}.bam < samples
  switchyard map echo ::: a b c`;

/** The inputs: behind `:::`, of a file, or of standard input; and the words before them. */
async function inputsOf(
  words: readonly string[],
  options: MapOptions,
): Promise<{ words: readonly string[]; inputs: readonly string[] }> {
  const at = words.indexOf(':::');
  const inputs =
    at >= 0
      ? words.slice(at + 1)
      : linesOf(await readText('--inputs', options.inputs ?? '-'), options.null ? '\0' : '\n');
  if (inputs.length > ARRAY_MAX)
    throw new CliError(
      `map: ${inputs.length} inputs; accepted: up to ${ARRAY_MAX} in one command`,
      ExitCode.USAGE,
    );
  return { words: at >= 0 ? words.slice(0, at) : words, inputs };
}

const linesOf = (text: string, end: string): string[] =>
  (text.endsWith(end) ? text.slice(0, -1) : text).split(end).filter((line) => line !== '' || end === '\0');

interface Mapped {
  ids: readonly string[];
  inputs: readonly string[];
  options: MapOptions;
  json: boolean;
  interrupted: AbortSignal;
}

/** Waits for the jobs, prints what they wrote, and gives the command its exit code. */
async function awaited(client: Client, { ids, inputs, options, json, interrupted }: Mapped): Promise<void> {
  const isKept = options.idempotencyKey !== undefined;
  const stop = new AbortController();
  const onInterruption = (): void => {
    if (isKept) stop.abort();
    else void cancelled(client, ids);
  };
  interrupted.addEventListener('abort', onInterruption);
  if (interrupted.aborted) onInterruption();
  const written = inTurn(json ? () => Promise.resolve() : (id) => copyOutput(client, id, options));
  // In the order of the inputs, or as they end.
  const waiting = options.keepOrder ? [...ids] : [];
  const ready = new Set<string>();
  const ended = await awaitEnds(client, ids, stop.signal, undefined, ({ id }) => {
    if (!options.keepOrder) return written.next(id);
    ready.add(id);
    while (waiting[0] !== undefined && ready.has(waiting[0])) written.next(waiting.shift()!);
  });
  await written.done();
  if (json) printJson(ids.map((id, at) => result(inputs[at]!, id, ended.get(id))));
  const failed = ids.flatMap((id, at) => {
    const job = ended.get(id);
    return job && job.state !== 'COMPLETED'
      ? [`${printable(inputs[at]!)} (${id}): ${stateTold(job, null)}`]
      : [];
  });
  for (const line of failed.slice(0, FAILURES_TOLD)) note(line);
  if (failed.length > 0) note(`${failed.length} of ${count(ids.length, 'job')} failed`);
  if (ended.size < ids.length)
    note(
      `${count(ids.length - ended.size, 'job')} not ended yet; the same command continues with --idempotency-key ${options.idempotencyKey}`,
    );
  process.exitCode = interrupted.aborted
    ? codeOfSignal(interrupted.reason)
    : Math.min(failed.length, MANY_FAILED);
}

const result = (input: string, id: string, job: JobLine | undefined) => ({
  ...{ input, id, state: job?.state ?? null, cause: job?.cause ?? null, exitCode: job?.exitCode ?? null },
});

/** Does something for one after another, in the order of the calls. */
function inTurn(work: (id: string) => Promise<void>): { next(id: string): void; done(): Promise<void> } {
  let last = Promise.resolve();
  // What went wrong is told once, by `done`; nothing is printed behind it.
  return {
    next(id) {
      last = last.then(() => work(id));
      last.catch(() => {});
    },
    done: () => last,
  };
}

/** Prints all that is kept of what a job wrote, each stream on the stream of its name. */
async function copyOutput(client: Client, id: string, options: MapOptions): Promise<void> {
  const tasks = options.launchOnce ? 1 : Number(options.tasks ?? 1);
  for (let task = 0; task < tasks; task++)
    for (const stream of ['stdout', 'stderr'] as const) {
      const { body } = await asked(() => client.get(`/jobs/${id}/output?stream=${stream}&task=${task}`));
      const to = process[stream];
      const decoder = new TextDecoder();
      for await (const piece of body ?? []) {
        // Into a file it goes as it is.
        const text = to.isTTY ? printableOutput(decoder.decode(piece, { stream: true })) : piece;
        if (!to.write(text)) await once(to, 'drain');
      }
    }
}
