/** What the service says of requests, in the words of the command line. */
import { ServiceError } from '../client/index.js';
import { nearest } from '../words/nearest.js';
import type { JobInput } from './documents.gql.js';
import { CliError } from './errors.js';

/** The option that gives each field of a job; null: none does. */
const OPTIONS: { readonly [Field in keyof Required<JobInput>]: string | null } = {
  command: null,
  arguments: null,
  arrayIndex: '--array',
  name: '--name',
  application: '--application',
  project: '--project',
  groupName: '--group',
  tasks: '--tasks',
  cpusPerTask: '--cpus',
  memoryMbPerTask: '--mem',
  memoryMbPerCpu: '--mem-per-cpu',
  tasksPerMachine: '--tasks-per-machine',
  exclusive: '--exclusive',
  allAlike: '--all-alike',
  sameSwitch: '--same-switch',
  parts: '--part',
  resourcesPerTask: '--resource',
  devicesPerTask: '--devices',
  resources: '--resource',
  licenses: '--license',
  os: '--os',
  architecture: '--arch',
  machineConstraint: '--constraint',
  image: '--image',
  terminal: '--terminal',
  reservation: '--reservation',
  siteTerms: '--partition, --account, --qos',
  estimateS: '--estimate',
  benchmark: '--benchmark',
  deadline: '--deadline',
  runTimeLimitS: '--time',
  warnS: '--warn',
  warnSignal: '--warn-signal',
  killGraceS: '--kill-grace',
  sandboxMb: '--sandbox-mb',
  outputMb: '--output-mb',
  inputs: '--input',
  outputs: '--keep',
  downloads: '--download',
  uploads: '--upload',
  checkpoint: '--checkpoint',
  originSite: '--from-site',
  preferences: '--prefer',
  environment: '--env',
  workingDirectory: '--dir',
  boost: '--boost',
  class: '--class',
  preemptionClass: '--class',
  computationShare: '--computation-share',
  simulatedRunS: '--simulated-run',
  simulatedIoS: '--simulated-io',
  restartable: '--no-restart',
  retry: '--retries, --retry-rule',
  launch: '--launch-once',
  onTaskFailure: '--continue-on-failure',
  mail: '--mail',
  held: '--hold',
  ref: '--ref',
  needs: '--after',
  onUnmet: '--on-unmet',
  notBefore: '--begin',
};

/** Parts of a field that have options of their own. */
const PARTS: Readonly<Record<string, string>> = {
  'retry.maxRetries': '--retries',
  'retry.backoffS': '--retry-backoff',
  'retry.factor': '--retry-factor',
  'retry.maxBackoffS': '--retry-max-backoff',
  'retry.rules': '--retry-rule',
  'siteTerms.partition': '--partition',
  'siteTerms.account': '--account',
  'siteTerms.qos': '--qos',
  'checkpoint.signal': '--checkpoint-signal',
};

/** `cpusPerTask: 500 …`, `jobs.0: needs.0.of.0 names …`: the field is told as the option that gave it. */
export function inOptions(message: string): string {
  return message.replace(
    /^(?:jobs\.0: |spec\.|set\.|template\.)?((\w+)(?:\.\w+)?)(?:\.\w+|\[\d+\])*(?=:| names )/,
    (all, part: string, field: string) =>
      PARTS[part] ?? partSpoken(all) ?? OPTIONS[field as keyof JobInput] ?? all,
  );
}

/** `parts[1].cpusPerTask`: as it is written in the second `--part`; null: it is of none. */
function partSpoken(path: string): string | null {
  const [, number, field] = /parts\[(\d+)\](?:\.(\w+))?/.exec(path) ?? [];
  if (number === undefined) return null;
  const option = OPTIONS[field as keyof JobInput]?.slice(2);
  return `--part, part ${number}${option ? `, ${option}` : ''}`;
}

/** A fault of jobs that options describe. What would be accepted all the same says how. */
export const saidOfOptions = ({ message, code }: { message: string; code: string }): string =>
  `${inOptions(message)}${withWayOut(code)}`;

/** A fault of jobs that a file describes, which has names of its own. */
export const saidOfFile = ({ message, code }: { message: string; code: string }): string =>
  `${message}${withWayOut(code)}`;

/** What the service says of a request, where that is about fields that options gave. */
export const spoken = (error: unknown): unknown =>
  error instanceof ServiceError && /^(BAD_USER_INPUT|NEVER_FITS)$/.test(error.code)
    ? new CliError(`${saidOfOptions(error)} (${error.code})`, error.exitCode)
    : error;

const withWayOut = (code: string): string =>
  code === 'NEVER_FITS' ? '; submit and change accept it with --allow-unfit' : '';

const KINDS: Readonly<Record<string, string>> = {
  Int: 'a whole number',
  Float: 'a number',
  String: 'a text',
  Boolean: 'true or false',
  ID: 'an id',
};

/** What GraphQL says of a value of a wrong shape, and what that means to who wrote a file; of what is not here its own words do. */
const SHAPES: readonly [RegExp, (found: readonly string[], path: string) => string][] = [
  [
    /^Field "(\w+)" is not defined by type "(\w+)"/,
    ([, field = '', type = ''], path) =>
      `${path}${path && '.'}${field}: unknown field${fieldMeant(type, field)}`,
  ],
  [/^Field "(\w+)" of required type/, ([, field], path) => `${path}${path && '.'}${field} is missing`],
  [
    /^(\w+) cannot represent (?:a )?non[^:]*: ([\s\S]+)$/,
    ([, type = '', value], path) => `${path}: ${value} is not accepted; accepted: ${KINDS[type] ?? type}`,
  ],
  [
    /^Value "(.*)" does not exist in "\w+" enum\.(?: Did you mean (?:the enum value )?(.*)\?)?$/,
    ([, value, near], path) =>
      `${path}: "${value}" is not accepted${near ? `; did you mean ${near.replaceAll('"', '')}?` : ''}`,
  ],
  [/^Expected type "\w+" to be an object/, (_, path) => `${path}: not accepted; accepted: an object`],
  [/^Expected non-nullable type/, (_, path) => `${path}: null is not accepted`],
];

function fieldMeant(type: string, field: string): string {
  if (type !== 'JobInput') return '';
  const fields = Object.entries(OPTIONS);
  const near =
    fields.find(([, option]) => option === `--${field}`)?.[0] ?? nearest(field, Object.keys(OPTIONS));
  return near ? `; did you mean ${near}?` : `; accepted: ${Object.keys(OPTIONS).join(', ')}`;
}

/** The same without words of GraphQL, which only a program's author knows. */
export function withoutGraphql(message: string): string {
  const [, where = '', what = ''] =
    /^Variable "\$\w+" got invalid value [\s\S]* at "([^"]+)"; ([\s\S]+)$/.exec(message) ?? [];
  const [, fault = '', more = ''] = /^([\s\S]*?)( \(and \d+ more\))?$/.exec(what) ?? [];
  const path = where.replace(/^\w+\.?/, '').replaceAll(/\[(\d+)\]/g, '.$1');
  for (const [shape, say] of SHAPES) {
    const found = shape.exec(fault);
    if (found) return say(found, path) + more;
  }
  return message;
}
