/** A researcher: docs/simulator.md, with a trace at hand and no service. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, it } from 'vitest';
import { blocksOf, commandsOf, mentionedIn } from '../docs/markdown.js';
import { newcomer, type Seen } from './newcomer.js';

const rika = newcomer('researcher');
afterAll(() => rika.leaves());

it('the README says where to look, without a service', async () => {
  await rika.follows(mentionedIn({ page: 'README.md', under: 'More to try' }, /^npx switchyard/), [
    ['switchyard simulate --help', /--policy/],
    ['switchyard whatif --help', /--candidate/],
    ['switchyard help', /simulate[\s\S]*compare|compare[\s\S]*simulate/],
    ['switchyard help submit', /--array/],
  ]);
});

it('the commands of the simulator, with fewer jobs and seeds', async () => {
  const page = 'docs/simulator.md';
  // As from the archive, by its name: users whose jobs come every hour.
  const jobs = Array.from(
    { length: 400 },
    (_, i) =>
      `${i + 1} ${i * 3600} -1 ${1800 + 600 * (i % 7)} 40 -1 -1 40 7200 -1 1 ${(i % 5) + 1} 1 1 1 1 -1 -1\n`,
  );
  writeFileSync(join(rika.here, 'KTH-SP2.swf.gz'), gzipSync(`; MaxProcs: 100\n${jobs.join('')}`));
  for (const { name, text } of blocksOf({ page }, 'ts')) rika.writes(name, text);
  const tasks = [{ id: 'a', name: 'a', parents: [], children: [] }];
  const execution = {
    makespanInSeconds: 10,
    executedAt: '',
    tasks: [{ id: 'a', runtimeInSeconds: 10, coreCount: 2 }],
  };
  rika.writes(
    'montage.json',
    JSON.stringify({
      name: 'montage',
      schemaVersion: '1.5',
      workflow: { specification: { tasks }, execution },
    }),
  );
  rika.writes(
    'flow.yaml',
    blocksOf({ page: 'docs/workflows.md', under: 'A workflow file' }, 'yaml')[0]!.text,
  );
  rika.writes('sites.csv', 'site,capacity,name\n1,4,alps\n2,8,jura\n');
  Object.assign(rika.names, { '1-10': '1-2', lublin: 'lublin --jobs 300', '--resample': '--resample 4' });
  const compared = (...policies: string[]) =>
    new RegExp(`^policy +.*\n${policies.map((one) => `${one} .*\n`).join('')}`);
  const table: [string, Seen][] = [
    [
      'switchyard simulate --trace',
      /^\d+ jobs of KTH-SP2\.swf\.gz on 100 processors at 1 site, policy easy\n/,
    ],
    ['switchyard compare --generate lublin', compared('fcfs', 'easy', 'conservative')],
    ['switchyard compare --trace', compared('easy', 'conservative')],
    ['switchyard simulate --workflow montage.json', /makespan 10s/],
    ['switchyard simulate --workflow flow.yaml', /critical path/],
    [
      'switchyard compare --generate lublin --jobs 2000',
      { with: { lublin: 'lublin' }, out: compared('easy', 'easy-sjbf', 'smallest-area') },
    ],
    ['switchyard compare --generate lublin', /local\.kind=conservative load=0\.9/],
    ['switchyard compare --generate lublin', /conservative load=0\.9/],
  ];
  const commands = commandsOf({ page }).filter(({ text }) => text.includes('switchyard'));
  await rika.follows(commands, table);
  for (const file of [
    'jobs.csv',
    'schedule.swf',
    'summary.json',
    'runs.parquet',
    'figures/by-load-bounded-slowdown.svg',
  ])
    expect([file, existsSync(join(rika.here, file))]).toEqual([file, true]);
});
