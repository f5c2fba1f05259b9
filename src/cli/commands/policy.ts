/** `switchyard weights` and `policy`: the rules in force, and how they came to be. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import { parseNumber } from '../../words/values.js';
import { addCommand, readJson, show } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode, usage } from '../errors.js';
import { table, time } from '../format.js';

type Weights = Record<string, number>;
/** Those of DIANA are by kind of job: `both.network`. */
type NestedWeights = Record<string, number | Weights>;

/** Of its document the weights only are looked at here. */
type Policy = documents.PolicyFieldsFragment;
interface Weighted {
  dispatch: { weights?: NestedWeights };
  local: { weights?: NestedWeights };
}

interface ChangeOptions {
  reason: string;
  expectedVersion?: string;
}

export function addPolicy(program: Command): void {
  addWeights(program);
  addPolicies(program);
}

function addWeights(program: Command): void {
  const weights = addCommand(program, 'weights', 'show or change the weights of the policy');
  weights.action(async () => {
    const policy = await inForce(connect());
    show(weights, { version: policy.version, ...weightsOf(policy) }, () => weightTable(policy));
  });

  const set = changeOptions(
    addCommand(weights, 'set <name=value...>', 'change weights, from the next scheduling cycle on (ADMIN)'),
  );
  set.addHelpText(
    'after',
    '\nExample: switchyard weights set dispatch.deadline=2 aging=0.05 --reason "deadlines matter more"',
  );
  set.action(async (assignments: string[], options: ChangeOptions) => {
    const client = connect();
    const before = await inForce(client);
    const input = {
      ...mapped(weightChanges(assignments, weightsOf(before)), nested),
      expectedVersion: expected(options, before),
      reason: options.reason,
    };
    const data = await client.request(documents.SetWeightsDocument, { input });
    show(set, data.updateWeights.policy, weightTable);
  });
}

function addPolicies(program: Command): void {
  const current = addCommand(program, 'policy', 'show or change the policy').option(
    '--version <n>',
    'show this version (default: the current one)',
  );
  current.action(async (options: { version?: string }) => {
    const version =
      options.version === undefined
        ? undefined
        : parseNumber('--version', options.version, { min: 1, integer: true });
    const policy = await inForce(connect(), version);
    show(current, policy, (one) => `${headline(one)}\n${JSON.stringify(one.document, null, 2)}`);
  });

  const history = addCommand(current, 'history', 'list all versions, newest first');
  history.action(async () => {
    const client = connect();
    const all = await client.all(documents.PolicyHistoryDocument, 'policyHistory', {});
    show(history, all, (policies) =>
      table(
        ['VERSION', 'SINCE (UTC)', 'BY', 'RESTORES', 'REASON'],
        policies.map((policy) => [
          policy.version,
          time(policy.createdAt),
          policy.author?.name,
          policy.revertsTo,
          policy.reason,
        ]),
      ),
    );
  });

  const set = changeOptions(
    addCommand(
      current,
      'set <file>',
      'put a new policy into effect: a JSON file, - for standard input (ADMIN)',
    ),
  );
  set.action(async (file: string, options: ChangeOptions) => {
    const document = await readJson('policy', file);
    const client = connect();
    const expectedVersion = expected(
      options,
      options.expectedVersion === undefined ? await inForce(client) : null,
    );
    const input = { document, expectedVersion, reason: options.reason };
    const data = await client.request(documents.UpdatePolicyDocument, { input });
    show(set, data.updatePolicy.policy, headline);
  });

  const revert = changeOptions(addCommand(current, 'revert <version>', 'restore an earlier version (ADMIN)'));
  revert.action(async (version: string, options: ChangeOptions) => {
    const client = connect();
    const variables = {
      version: parseNumber('version', version, { min: 1, integer: true }),
      expectedVersion: expected(
        options,
        options.expectedVersion === undefined ? await inForce(client) : null,
      ),
      reason: options.reason,
    };
    const data = await client.request(documents.RevertPolicyDocument, variables);
    show(revert, data.revertPolicy.policy, headline);
  });
}

function changeOptions(command: Command): Command {
  return command
    .requiredOption('--reason <text>', 'reason for the policy history')
    .option('--expected-version <n>', 'fail if the policy is not at this version (default: the current one)');
}

function expected(options: ChangeOptions, policy: Policy | null): number {
  return options.expectedVersion === undefined
    ? policy!.version
    : parseNumber('--expected-version', options.expectedVersion, { min: 1, integer: true });
}

async function inForce(client: Client, version?: number): Promise<Policy> {
  const { policy } = await client.request(documents.PolicyDocument, { version });
  if (!policy) throw new CliError(`there is no policy version ${version} (NOT_FOUND)`, ExitCode.NOT_FOUND);
  return policy;
}

/** By level, under names with dots. */
function weightsOf(policy: Policy): { dispatch: Weights; local: Weights } {
  const document = policy.document as Weighted;
  return { dispatch: flat(document.dispatch.weights ?? {}), local: flat(document.local.weights ?? {}) };
}

const flat = (weights: NestedWeights): Weights =>
  Object.fromEntries(
    Object.entries(weights).flatMap(([name, value]) =>
      typeof value === 'number'
        ? [[name, value]]
        : Object.entries(value).map(([inner, weight]) => [`${name}.${inner}`, weight]),
    ),
  );

function nested(weights: Weights): NestedWeights {
  const found: NestedWeights = {};
  for (const [name, value] of Object.entries(weights)) {
    const [outer, inner] = name.split('.') as [string, string | undefined];
    found[outer] = inner === undefined ? value : { ...(found[outer] as Weights | undefined), [inner]: value };
  }
  return found;
}

const mapped = <A, B>(values: Record<string, A>, change: (value: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));

/** `dispatch.deadline=2 aging=0.1 both.network=3` by level; a name that both levels have needs its level. */
export function weightChanges(
  assignments: readonly string[],
  known: { dispatch: Weights; local: Weights },
): Record<string, Weights> {
  const changes: Record<string, Weights> = {};
  for (const assignment of assignments) {
    const [, level, name, value] = /^(?:(dispatch|local)\.)?(\w+(?:\.\w+)?)=(.+)$/.exec(assignment) ?? [];
    const levels = (['dispatch', 'local'] as const).filter(
      (one) => (level === undefined || level === one) && name! in known[one],
    );
    if (name === undefined || value === undefined || levels.length !== 1) {
      const names = (['dispatch', 'local'] as const).flatMap((one) =>
        Object.keys(known[one]).map((each) => `${one}.${each}`),
      );
      throw usage('weight', assignment, `NAME=VALUE with a name of ${names.join(', ')}`);
    }
    const target = levels[0]!;
    changes[target] = { ...changes[target], [name]: parseNumber(name, value, { min: 0 }) };
  }
  return changes;
}

function weightTable(policy: Policy): string {
  const levels = Object.entries(weightsOf(policy));
  const rows = levels.flatMap(([level, weights]) =>
    Object.entries(weights).map(([name, value]) => [`${level}.${name}`, value]),
  );
  return `${headline(policy)}\n${table(['WEIGHT', 'VALUE'], rows)}`;
}

function headline(policy: Policy): string {
  const restores = policy.revertsTo ? `, restores version ${policy.revertsTo}` : '';
  return `policy version ${policy.version} since ${time(policy.createdAt)} UTC${policy.author ? ` by ${policy.author.name}` : ''}${restores}: ${policy.reason}`;
}
