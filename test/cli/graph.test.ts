/** Workflows of random shapes and ends, by real processes that are killed while they run. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { withDatabase } from '../support/database.js';
import { freePort } from '../support/ports.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { endAll, launch, run, until } from './service.js';

/** More by choice: GRAPH_JOBS=2000. */
const JOBS = Number(process.env.GRAPH_JOBS ?? 150);
const CONDITIONS = ['START', 'OK', 'OK', 'NOT_OK', 'ANY'] as const;

const home = mkdtempSync(join(tmpdir(), 'switchyard-graph-'));
const database = withDatabase();
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

interface Term {
  on: number;
  condition: (typeof CONDITIONS)[number];
}

interface Shape {
  onUnmet: 'RUN' | 'CANCEL';
  fails: boolean;
  clauses: { expression: 'ANY' | 'ALL'; of: Term[] }[];
}

function drawShapes(): Shape[] {
  const random = new RandomStream(SEED, 'graph');
  const draw = (n: number): number => random.integer(0, n - 1);
  const times = <T>(n: number, make: () => T): T[] => Array.from({ length: n }, make);
  return Array.from({ length: JOBS }, (_, i) => ({
    onUnmet: draw(3) === 0 ? 'RUN' : 'CANCEL',
    fails: draw(4) === 0,
    clauses: times(i === 0 ? 0 : draw(3), () => ({
      expression: draw(2) === 0 ? 'ANY' : 'ALL',
      of: times(1 + draw(3), () => ({
        on: Math.max(0, i - 1 - draw(20)),
        condition: CONDITIONS[draw(CONDITIONS.length)] as Term['condition'],
      })),
    })),
  }));
}

type State = 'COMPLETED' | 'FAILED' | 'CANCELLED';
interface Expected {
  state: State;
  met: boolean;
}

/** Each job needs earlier ones only: what becomes of it follows from theirs. */
function expectedOf(shapes: readonly Shape[]): Expected[] {
  const ends: Expected[] = [];
  for (const { onUnmet, fails, clauses } of shapes) {
    const met = clauses.every(({ expression, of }) => {
      const holds = (term: Term): boolean => isMet(term, ends);
      return expression === 'ALL' ? of.every(holds) : of.some(holds);
    });
    ends.push({ met, state: met || onUnmet === 'RUN' ? (fails ? 'FAILED' : 'COMPLETED') : 'CANCELLED' });
  }
  return ends;
}

function isMet({ on, condition }: Term, ends: readonly Expected[]): boolean {
  const { state } = ends[on] as Expected;
  if (condition === 'START') return state !== 'CANCELLED';
  return condition === 'ANY' || (state === 'COMPLETED') === (condition === 'OK');
}

it('every job runs once, after what it needs, or is canceled, whoever is killed meanwhile', async () => {
  const shapes = drawShapes();
  const expected = expectedOf(shapes);
  const log = join(home, 'log');
  const env = { SWITCHYARD_HOME: home, DATABASE_URL: database.url, LOG_LEVEL: 'warn' };
  await run(['migrate', '--site', 'here'], env);
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}/graphql`;
  const start = {
    api: () => launch(['api'], { ...env, PORT: port }),
    worker: () => launch(['worker'], env),
    agent: () =>
      launch(['agent', '--site', 'here'], { SWITCHYARD_HOME: home, SWITCHYARD_URL: url, LOG_LEVEL: 'warn' }),
  };
  const all = { api: start.api(), worker: start.worker(), agent: start.agent() };
  /** Undefined while the service is away. */
  async function ask<T>(query: string, variables: object = {}): Promise<T | undefined> {
    try {
      const key = readFileSync(join(home, 'admin.key'), 'utf8').trim();
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ query, variables });
      const answer = await fetch(url, { method: 'POST', headers, body });
      return ((await answer.json()) as { data?: T }).data ?? undefined;
    } catch {
      return undefined;
    }
  }
  const jobs = shapes.map(({ onUnmet, fails, clauses }, i) => ({
    ...{ command: 'sh', estimateS: 1, ref: `r${i}`, onUnmet },
    arguments: ['-c', `echo begins ${i} >> ${log}; echo ends ${i} >> ${log}; exit ${fails ? 1 : 0}`],
    needs: clauses.map(({ expression, of }) => ({
      expression,
      of: of.map(({ on, condition }) => ({ ref: `r${on}`, condition })),
    })),
  }));
  // Accepted once, though it may be asked for more than once.
  const input = { jobs, idempotencyKey: 'graph', allowUnfit: true };
  const accepted = await until(
    () =>
      ask<{ submitJobs: { jobIds: string[] } }>(
        'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
        { input },
      ),
    (answer) => answer !== undefined,
  );
  expect(accepted?.submitJobs.jobIds).toHaveLength(JOBS);
  const lines = (): string[] => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);
  const running = expected.filter(({ state }) => state !== 'CANCELLED').length;
  for (const [i, name] of (['agent', 'worker', 'api'] as const).entries()) {
    await until(
      async () => lines().length,
      (now) => now >= ((i + 1) * 2 * running) / 5,
    );
    await all[name].end('SIGKILL');
    all[name] = start[name]();
  }
  await until(
    () => ask<{ jobCount: number }>('{ jobCount(filter: { states: [COMPLETED, FAILED, CANCELLED] }) }'),
    (answer) => answer?.jobCount === JOBS,
  );

  const { rows } = await database.pool.query<{ state: State }>('SELECT state FROM jobs ORDER BY id');
  expect(rows.map(({ state }) => state)).toEqual(expected.map(({ state }) => state));
  const at = new Map(lines().map((line, place) => [line, place]));
  expect(at.size).toBe(lines().length);
  for (const [i, { clauses }] of shapes.entries()) {
    const began = at.get(`begins ${i}`);
    expect(began !== undefined, `job ${i} has begun`).toBe(expected[i]?.state !== 'CANCELLED');
    if (began === undefined || !expected[i]?.met) continue;
    for (const { expression, of } of clauses) {
      // What was canceled has left no line.
      const since = of
        .filter((term) => isMet(term, expected))
        .map(({ on, condition }) => at.get(`${condition === 'START' ? 'begins' : 'ends'} ${on}`) ?? -1);
      const from = expression === 'ALL' ? Math.max(...since) : Math.min(...since);
      expect(began, `job ${i}`).toBeGreaterThan(from);
    }
  }
  expect(await checkPromises(database.pool)).toEqual([]);
}, 600_000);
