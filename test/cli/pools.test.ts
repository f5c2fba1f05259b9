/** What is counted for a site or the grid, from the command line to the processes of jobs that have some of it. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endAll, type Service, serve, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-pools-'));
let service: Service;

interface Job {
  id: string;
  state: string;
  resources: object[];
  runs: { pools: object[] }[];
}
const submit = async (...args: string[]): Promise<string> =>
  (await service.json<{ id: string }[]>('submit', ...args))[0]!.id;
const job = (id: string) => service.json<Job>('job', id);
const reaches = (id: string, state: string): Promise<Job> =>
  until(
    () => job(id),
    (one) => one.state === state,
  );
const kinds = async (name: string) =>
  (await service.json<{ name: string }[]>('resources')).find((kind) => kind.name === name);

beforeAll(async () => {
  service = await serve(home);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('is declared with its unit, asked for by amount, and waited for when others have it', async () => {
  const declared = (...args: string[]) => service.json('resources', 'add', ...args);
  await declared('tape-drive', '--site', 'local', '--amount', '4', '--unit', 'drives');
  await declared('scratch-gb', '--amount', '5000', '--unit', 'GB');
  expect(await kinds('tape-drive')).toMatchObject({
    ...{ countedOn: 'SITE', unit: 'drives', total: 4, free: 4, largest: 4 },
    sites: [{ name: 'local' }],
  });
  expect(await kinds('scratch-gb')).toMatchObject({ countedOn: 'GRID', unit: 'GB', total: 5000 });

  const told = join(home, 'told');
  const first = await submit(
    ...['--resource', 'tape-drive=3', '--gres', 'scratch-gb:500', '--cpus', '1', '--estimate', '60'],
    ...['--', 'sh', '-c', `echo "$SWITCHYARD_RESOURCES" > ${told}; while :; do sleep 1; done`],
  );
  const had = await reaches(first, 'RUNNING');
  const asked = [
    { kind: 'scratch-gb', amount: 500 },
    { kind: 'tape-drive', amount: 3 },
  ];
  expect(had.resources).toEqual(asked);
  expect(had.runs[0]?.pools).toMatchObject(asked.map(({ kind, amount }) => ({ pool: { kind }, amount })));
  await until(async () => existsSync(told) && readFileSync(told, 'utf8') !== '', Boolean);
  expect(readFileSync(told, 'utf8')).toBe('scratch-gb=500,tape-drive=3\n');
  expect(await kinds('scratch-gb')).toMatchObject({ inUse: 500, free: 4500 });

  const second = await submit('--resource', 'tape-drive=2', '--cpus', '1', '--estimate', '60', '--', 'true');
  const why = await until(
    async () => (await service.cli('why', second)).stdout,
    (output) => output.includes('tape-drive'),
  );
  expect(why).toContain('(2 tape-drive; 1 free)');
  // What runs have cannot be taken away; more can be added.
  const set = (...args: string[]) =>
    service.cli('resources', 'set', 'tape-drive', '--site', 'local', ...args);
  expect(await set('--amount', '2')).toMatchObject({ code: 1, stderr: expect.stringContaining('in use') });
  expect(await set('--amount', '5', '--unit', 'none')).toMatchObject({ code: 0 });
  await reaches(second, 'COMPLETED');
  expect(await service.cli('cancel', first)).toMatchObject({ code: 0 });
  await reaches(first, 'CANCELLED');
  expect(await kinds('tape-drive')).toMatchObject({ unit: null, total: 5, inUse: 0, free: 5 });

  const never = await service.cli('submit', '--resource', 'tape-drive=6', '--', 'true');
  expect(never).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/tape-drive: 6 can never run.*nearest: 5 at site local/s),
  });
  for (const [kind, ...at] of [['tape-drive', '--site', 'local'], ['scratch-gb']] as const)
    expect(await service.cli('resources', 'remove', kind, ...at)).toMatchObject({ code: 0 });
  expect(await service.cli('resources', 'remove', 'scratch-gb')).toMatchObject({
    stderr: expect.stringContaining('counted for the whole grid'),
  });
  expect(await kinds('tape-drive')).toBeUndefined();
});
