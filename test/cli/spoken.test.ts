import { readFileSync } from 'node:fs';
import { buildSchema, graphqlSync } from 'graphql';
import { describe, expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';
import { inOptions, saidOfFile, saidOfOptions, withoutGraphql } from '../../src/cli/spoken.js';
import { DEFAULT_POLICY, parsePolicy } from '../../src/core/policy.js';
import { nearest } from '../../src/words/nearest.js';
import { parseWord } from '../../src/words/values.js';

describe('what the service says of a job', () => {
  test.each([
    ['cpusPerTask: 500 can never run', '--cpus: 500 can never run'],
    [
      'jobs.0: needs.0.of.0 names job job_77, which does not exist',
      '--after names job job_77, which does not exist',
    ],
    ['environment.2.name: "" is not accepted', '--env: "" is not accepted'],
    ['template.runTimeLimitS: 0 is not accepted', '--time: 0 is not accepted'],
    ['retry.factor: 20 is not accepted', '--retry-factor: 20 is not accepted'],
    ['set.retry.rules[0].exitCodes[0].to: 2 is not accepted', '--retry-rule: 2 is not accepted'],
    ['siteTerms.qos: "" is not accepted', '--qos: "" is not accepted'],
    ['parts[1].cpusPerTask: 9 can never run', '--part, part 1, cpus: 9 can never run'],
    ['parts: 0 is not accepted', '--part: 0 is not accepted'],
    ['command: "" is not accepted', 'command: "" is not accepted'],
    ['there is no such job: job_3', 'there is no such job: job_3'],
  ])('%s', (message, said) => expect(inOptions(message)).toBe(said));

  test('what no machine can run tells the option that accepts it, and no word of GraphQL', () => {
    const fault = { message: 'cpusPerTask: 500 can never run', code: 'NEVER_FITS' };
    for (const said of [saidOfOptions(fault), saidOfFile(fault)]) expect(said).toContain('--allow-unfit');
    expect(saidOfOptions({ ...fault, code: 'BAD_USER_INPUT' })).toBe('--cpus: 500 can never run');
  });

  test('each option that it names is one of submit', async () => {
    const submit = (await buildProgram('submit')).commands.find((command) => command.name() === 'submit');
    const long = submit?.options.map((option) => option.long);
    const fields =
      [...readFileSync('schema.graphql', 'utf8').matchAll(/^input JobInput \{\n([\s\S]*?)^\}/gm)][0]?.[1] ??
      '';
    const named = [...fields.matchAll(/^ {2}(\w+):/gm)].flatMap(([, field]) =>
      inOptions(`${field}: x`).split(':')[0]!.split(', '),
    );
    const parts = ['retry.maxRetries', 'retry.backoffS', 'retry.factor', 'retry.maxBackoffS', 'retry.rules']
      .concat(['siteTerms.partition', 'siteTerms.account', 'siteTerms.qos', 'checkpoint.signal'])
      .map((part) => inOptions(`${part}: x`).split(':')[0]!);
    for (const part of parts) expect(part).toMatch(/^--[a-z-]+$/);
    const options = [...named.filter((name) => name.startsWith('--')), ...parts];
    expect(options.length).toBeGreaterThan(30);
    for (const option of options) expect(long).toContain(option);
  });
});

describe('values of a file that GraphQL refuses', () => {
  const schema = buildSchema(`
    enum Launch { ONCE EACH }
    input JobInput { command: String!, cpusPerTask: Int, estimateS: Float, launch: Launch, held: Boolean, memoryMbPerTask: Int }
    input Input { jobs: [JobInput!]! }
    type Query { submit(input: Input!): Int }
  `);
  const refusal = (job: unknown): string =>
    graphqlSync({
      schema,
      source: 'query ($input: Input!) { submit(input: $input) }',
      variableValues: { input: { jobs: [job] } },
    }).errors![0]!.message;

  test.each([
    [{ command: 'x', cpus: 2 }, 'jobs.0.cpus: unknown field; did you mean cpusPerTask?'],
    [
      { command: 'x', memoryMbPerTaks: 2 },
      'jobs.0.memoryMbPerTaks: unknown field; did you mean memoryMbPerTask?',
    ],
    [{ command: 'x', cpusPerTask: '2' }, 'jobs.0.cpusPerTask: "2" is not accepted; accepted: a whole number'],
    [
      { command: 'x', estimateS: 'long; "very"' },
      'jobs.0.estimateS: "long; \\"very\\"" is not accepted; accepted: a number',
    ],
    [{ command: 5 }, 'jobs.0.command: 5 is not accepted; accepted: a text'],
    [{ command: 'x', held: 1 }, 'jobs.0.held: 1 is not accepted; accepted: true or false'],
    [{ command: 'x', launch: 'ONC' }, 'jobs.0.launch: "ONC" is not accepted; did you mean ONCE?'],
    [{}, 'jobs.0.command is missing'],
    [{ command: null }, 'jobs.0.command: null is not accepted'],
    [5, 'jobs.0: not accepted; accepted: an object'],
  ])('%j', (job, said) => expect(withoutGraphql(refusal(job))).toBe(said));

  test('a field that resembles none: all are named', () => {
    expect(withoutGraphql(refusal({ command: 'x', zzzzzzzz: 2 }))).toMatch(
      /unknown field; accepted: command, arguments, .*notBefore$/,
    );
  });

  test('other messages stay as they are', () => {
    expect(withoutGraphql('there is no job job_3')).toBe('there is no job job_3');
  });
});

describe('a policy document', () => {
  const { seed: _, ...rest } = DEFAULT_POLICY;
  test.each([
    [rest, 'seed is missing; accepted: a number'],
    [{ ...DEFAULT_POLICY, dispatch: 3 }, 'dispatch: 3 is not accepted; accepted: an object'],
    [
      { ...DEFAULT_POLICY, dispatch: { kind: 'foo' } },
      /^dispatch\.kind: "foo" is not accepted; accepted: two-level, /,
    ],
    [{ ...DEFAULT_POLICY, seed: 1.5 }, 'seed: 1.5 is not accepted; accepted: a whole number'],
    [{ ...DEFAULT_POLICY, seed: -1 }, 'seed: -1 is not accepted; accepted: at least 0'],
    [{ ...DEFAULT_POLICY, referencePower: 0 }, 'referencePower: 0 is not accepted; accepted: more than 0'],
    [{ ...DEFAULT_POLICY, x: 1 }, 'x: 1 is not accepted; accepted: nothing, because the field is unknown'],
    [
      { ...DEFAULT_POLICY, timers: { ...DEFAULT_POLICY.timers, onDeadlinePassed: 'x' } },
      'timers.onDeadlinePassed: "x" is not accepted; accepted: RECORD, CANCEL',
    ],
  ])('%#', (document, said) => {
    expect(() => parsePolicy(document)).toThrow(said);
  });
});

describe('what may have been meant', () => {
  test.each([
    ['locl', ['cern', 'local'], 'local'],
    ['FAILD', ['FAILED', 'HELD'], 'FAILED'],
    ['Alps', ['alps'], 'alps'],
    ['sbumit', ['submit', 'suspend'], 'submit'],
    ['x', ['local'], null],
    ['a'.repeat(10_000), ['a'.repeat(10_000)], null],
    ['local', [], null],
  ])('%s of %j', (written, words, word) => expect(nearest(written, words)).toBe(word));

  test('a word of a few', () => {
    expect(() => parseWord('--state', 'FAILD', ['FAILED', 'HELD'])).toThrow(
      '--state: "FAILD" is not accepted; accepted: FAILED, HELD; did you mean FAILED?',
    );
  });

  test('a command of a list', async () => {
    let told = '';
    const program = (await buildProgram('sites')).configureOutput({ writeErr: (text) => (told += text) });
    const sites = program.commands.find((command) => command.name() === 'sites')!;
    sites.configureOutput({ writeErr: (text) => (told += text) });
    await expect(program.parseAsync(['sites', 'ad', 'alps'], { from: 'user' })).rejects.toMatchObject({
      exitCode: 1,
    });
    expect(told).toContain("unknown command 'sites ad'; accepted: sites alone, or with add, ");
    expect(told).toContain('did you mean add?');
  });
});
