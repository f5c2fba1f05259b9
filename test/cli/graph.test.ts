/** Workflows of random shapes and ends, by real processes that are killed while they run. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { withDatabase } from '../support/database.js';
import { asSubmitted, couldRunFrom, drawGraph, endsOf, type State } from '../support/graph.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { apart, endAll, until } from './service.js';

/** More by choice: GRAPH_JOBS=2000. */
const JOBS = Number(process.env.GRAPH_JOBS ?? 150);

const home = mkdtempSync(join(tmpdir(), 'switchyard-graph-'));
const database = withDatabase();
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('every job runs once, after what it needs, or is canceled, whoever is killed meanwhile', async () => {
  const shapes = drawGraph(new RandomStream(SEED, 'graph'), JOBS);
  const expected = endsOf(shapes);
  const log = join(home, 'log');
  const { start, ask } = await apart(home, database.url);
  const all = { api: start.api(), worker: start.worker(), agent: start.agent() };
  const jobs = asSubmitted(shapes).map((job, i) => {
    const code = shapes[i]?.fails ? 1 : 0;
    const script = `echo begins ${i} >> ${log}; echo ends ${i} >> ${log}; exit ${code}`;
    return { ...job, command: 'sh', arguments: ['-c', script], estimateS: 1 };
  });
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
  for (const [i, shape] of shapes.entries()) {
    const began = at.get(`begins ${i}`);
    expect(began !== undefined, `job ${i} has begun`).toBe(expected[i]?.state !== 'CANCELLED');
    if (began === undefined || !expected[i]?.met) continue;
    // What was canceled has left no line.
    const from = couldRunFrom(shape, expected, (on, what) => at.get(`${what} ${on}`) ?? -1);
    expect(began, `job ${i}`).toBeGreaterThan(from);
  }
  expect(await checkPromises(database.pool)).toEqual([]);
}, 600_000);
