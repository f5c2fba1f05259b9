/** A job as it is being written: texts of fields, and the `JobInput` that follows from them. */
import { split } from 'shlex';
import type { JobAgainQuery, JobInput, TaskFailure, TaskLaunch } from './submit.gql';

export interface Draft {
  command: string;
  /** `sh -c` runs the command line; else it is split into words and run as it is. */
  shell: boolean;
  script: string;
  name: string;
  application: string;
  project: string;
  groupName: string;
  tasks: string;
  launch: TaskLaunch;
  onTaskFailure: TaskFailure;
  cpusPerTask: string;
  memoryMbPerTask: string;
  /** `90`, `10m`, `2h`, `1-12:00:00`. */
  estimate: string;
  runTimeLimit: string;
  deadline: string;
  /** `gpu=2, tape=1` */
  resources: string;
  /** `gen >= 3 and not slow` */
  constraint: string;
  licenses: string;
  os: string;
  architecture: string;
  inputs: string[];
  outputMb: string;
  /** Paths or patterns, one a line. */
  outputs: string;
  environment: string;
  workingDirectory: string;
  restartable: boolean;
  held: boolean;
  boost: string;
}

export const EMPTY: Draft = {
  command: '',
  shell: true,
  script: '#!/bin/sh\n#SBATCH --cpus-per-task=1\n#SBATCH --time=00:10:00\n\necho "Hello from $(hostname)"\n',
  name: '',
  application: '',
  project: '',
  groupName: '',
  tasks: '1',
  launch: 'EVERY_TASK',
  onTaskFailure: 'END_ALL',
  cpusPerTask: '1',
  memoryMbPerTask: '0',
  estimate: '1h',
  runTimeLimit: '',
  deadline: '',
  resources: '',
  constraint: '',
  licenses: '',
  os: '',
  architecture: '',
  inputs: [],
  outputMb: '0',
  outputs: '',
  environment: '',
  workingDirectory: '',
  restartable: true,
  held: false,
  boost: '0',
};

export class Wrong extends Error {
  constructor(
    readonly field: keyof Draft,
    message: string,
  ) {
    super(message);
  }
}

const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** Seconds of `90`, `10m`, `1.5h`, `00:10:00`, `1-12:00:00` (days before the dash, as Slurm writes it). */
export function secondsOf(text: string): number | null {
  const plain = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?$/.exec(text.trim());
  if (plain) return Number(plain[1]) * (UNITS[plain[2] ?? 's'] ?? 1);
  const clock = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(text.trim());
  if (!clock) return null;
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = clock;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
}

/** Words of a command line as a shell splits them; quotes and backslashes only. Null: a quote is left open. */
export function wordsOf(line: string): string[] | null {
  try {
    return split(line);
  } catch {
    return null;
  }
}

/** Interpreters that take a program as an argument, and how. */
const INLINE: Record<string, string> = { perl: '-e', ruby: '-e', node: '-e' };

/** What runs a script: the interpreter of its first line, or `sh`. */
export function commandOfScript(script: string): { command: string; arguments: string[] } {
  const shebang = /^#!\s*(\S+)(?:[ \t]+(\S.*?))?[ \t]*\r?\n/.exec(script);
  const [interpreter = '/bin/sh', ...more] = shebang
    ? [shebang[1]!, ...(shebang[2]?.split(/\s+/) ?? [])]
    : ['/bin/sh'];
  const program = (/\/env$/.test(interpreter) ? more[0] : interpreter)?.split('/').at(-1) ?? 'sh';
  return {
    command: interpreter,
    arguments: [...more, INLINE[program.replace(/[\d.]+$/, '')] ?? '-c', script],
  };
}

/** `#SBATCH` lines that say what we understand, as fields; the others are told. */
export function directivesOf(script: string): {
  fields: Partial<Draft>;
  array: string | null;
  unknown: string[];
} {
  const fields: Partial<Draft> = {};
  const unknown: string[] = [];
  let array: string | null = null;
  const memory = (text: string): string => {
    const match = /^(\d+(?:\.\d+)?)([KMGT]?)B?$/i.exec(text);
    if (!match) return text;
    const factor = { K: 0.001, M: 1, G: 1000, T: 1e6 }[match[2]!.toUpperCase()] ?? 1;
    return String(Math.ceil(Number(match[1]) * factor));
  };
  for (const [, text = ''] of script.matchAll(/^#SBATCH[ \t]+(.+?)[ \t]*$/gm)) {
    const match = /^(--[\w-]+|-[A-Za-z])(?:[= \t]+|(?<=^-[A-Za-z]))(.*)$/.exec(text) ?? [text, text, ''];
    const value = match[2]!.replace(/^["']|["']$/g, '');
    switch (match[1]) {
      case '-J':
      case '--job-name':
        fields.name = value;
        break;
      case '-n':
      case '--ntasks':
        fields.tasks = value;
        break;
      case '-c':
      case '--cpus-per-task':
        fields.cpusPerTask = value;
        break;
      case '--mem':
        fields.memoryMbPerTask = memory(value);
        break;
      case '-t':
      case '--time':
        fields.estimate = /^\d+$/.test(value) ? `${value}m` : value;
        fields.runTimeLimit = fields.estimate;
        break;
      case '--gres':
        fields.resources = value.replaceAll(/:(\d+)(?=,|$)/g, '=$1');
        break;
      case '-L':
      case '--licenses':
        fields.licenses = value.replaceAll(/:\d+/g, '');
        break;
      case '-D':
      case '--chdir':
        fields.workingDirectory = value;
        break;
      case '--deadline':
        fields.deadline = value;
        break;
      case '-H':
      case '--hold':
        fields.held = true;
        break;
      case '--no-requeue':
        fields.restartable = false;
        break;
      case '-a':
      case '--array':
        array = value;
        break;
      default:
        unknown.push(text);
    }
  }
  return { fields, array, unknown };
}

/** The input that a draft stands for. Throws {@link Wrong} for a field that says nothing acceptable. */
export function inputOf(draft: Draft, mode: 'form' | 'script'): JobInput {
  const whole = (field: keyof Draft, least: number, most: number): number => {
    const value = Number(draft[field]);
    if (draft[field] === '' || !Number.isInteger(value) || value < least || value > most)
      throw new Wrong(field, `A whole number from ${least} to ${most.toLocaleString('en-US')}.`);
    return value;
  };
  const seconds = (field: 'estimate' | 'runTimeLimit'): number => {
    const value = secondsOf(draft[field]);
    if (value === null || value <= 0)
      throw new Wrong(field, 'A time above 0, such as 90, 10m, 2h or 00:30:00.');
    return value;
  };
  const run = mode === 'script' ? commandOfScript(draft.script) : commandOf(draft);
  const application = draft.application.trim() || applicationOf(draft, mode);
  const amount = (text: string): { kind: string; amount: number } => {
    const [, kind, value = '1'] = /^([^=]+)(?:=(\d+))?$/.exec(text) ?? [];
    if (kind === undefined) throw new Wrong('resources', 'Kinds and amounts, such as gpu=2, tape-drive=1.');
    return { kind, amount: Number(value) };
  };
  const list = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
  const output = Number(draft.outputMb);
  if (!Number.isFinite(output) || output < 0) throw new Wrong('outputMb', 'Megabytes, 0 or more.');
  const deadline = draft.deadline ? new Date(draft.deadline) : null;
  if (deadline && Number.isNaN(deadline.getTime())) throw new Wrong('deadline', 'A date and time.');
  return {
    ...run,
    ...(application && { application }),
    ...(draft.name.trim() && { name: draft.name.trim() }),
    ...(draft.project.trim() && { project: draft.project.trim() }),
    ...(draft.groupName.trim() && { groupName: draft.groupName.trim() }),
    ...(draft.workingDirectory.trim() && { workingDirectory: draft.workingDirectory.trim() }),
    tasks: whole('tasks', 1, 100_000),
    ...(Number(draft.tasks) > 1 && { launch: draft.launch }),
    ...(Number(draft.tasks) > 1 && draft.launch === 'EVERY_TASK' && { onTaskFailure: draft.onTaskFailure }),
    cpusPerTask: whole('cpusPerTask', 1, 100_000),
    memoryMbPerTask: whole('memoryMbPerTask', 0, 2_000_000_000),
    estimateS: seconds('estimate'),
    ...(draft.runTimeLimit.trim() && { runTimeLimitS: seconds('runTimeLimit') }),
    ...(deadline && { deadline: deadline.toISOString() }),
    ...(draft.resources.trim() && { resourcesPerTask: list(draft.resources).map(amount) }),
    ...(draft.constraint.trim() && { machineConstraint: draft.constraint.trim() }),
    ...(draft.licenses.trim() && { licenses: list(draft.licenses) }),
    ...(draft.os.trim() && { os: draft.os.trim() }),
    ...(draft.architecture.trim() && { architecture: draft.architecture.trim() }),
    ...(draft.inputs.length > 0 && { inputs: draft.inputs.map((dataset) => ({ dataset })) }),
    ...(output > 0 && { outputMb: output }),
    ...(draft.outputs.trim() && { outputs: lines(draft.outputs).map((path) => ({ path })) }),
    ...(draft.environment.trim() && { environment: environmentOf(draft.environment) }),
    ...(!draft.restartable && { restartable: false }),
    ...(draft.held && { held: true }),
    ...(draft.boost !== '0' && { boost: whole('boost', -1000, 1000) }),
  };
}

function commandOf(draft: Draft): Pick<JobInput, 'command' | 'arguments'> {
  const line = draft.command.trim();
  if (line === '') throw new Wrong('command', 'What is to run?');
  if (draft.shell) return { command: 'sh', arguments: ['-c', line] };
  const words = wordsOf(line);
  if (words === null) throw new Wrong('command', 'A quote is left open.');
  const [command = '', ...rest] = words;
  return { command, arguments: rest };
}

/** By the program's name: `sh` would put all jobs in one application. */
function applicationOf(draft: Draft, mode: 'form' | 'script'): string | null {
  if (mode === 'script') return draft.name.trim() || 'script';
  if (!draft.shell) return null;
  const first = wordsOf(draft.command)?.find((word) => !/^\w+=/.test(word));
  return (
    first
      ?.split('/')
      .at(-1)
      ?.replaceAll(/[^\w.+-]/g, '')
      .slice(0, 100) || null
  );
}

const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const environmentOf = (text: string): { name: string; value: string }[] =>
  lines(text).map((line) => {
    const at = line.indexOf('=');
    if (at < 1) throw new Wrong('environment', `NAME=value on each line; “${line}” is not.`);
    return { name: line.slice(0, at), value: line.slice(at + 1) };
  });

/** A job that was submitted, as the input that would submit it again. */
export function againOf(job: NonNullable<JobAgainQuery['job']>): JobInput {
  const { id: _, environment, originSite, inputs, outputs, preferences, ...rest } = job;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)) as Omit<
    JobInput,
    'environment' | 'inputs' | 'outputs' | 'preferences' | 'needs'
  > & { command: string };
  return {
    ...given,
    environment: (environment ?? []).map(({ name, value }) => ({ name, value })),
    ...(originSite && { originSite: originSite.id }),
    outputs,
    preferences: preferences.map(({ site, ...machine }) => ({ ...machine, site: site?.id ?? null })),
    inputs: inputs.map(({ dataset, site, sizeMb }) =>
      dataset ? { dataset: dataset.id } : { sizeMb, site: site?.id ?? null },
    ),
  };
}
