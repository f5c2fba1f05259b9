import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { marks } from '../plots/svg.js';
import { run } from './service.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-sweep-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const WORKLOAD = ['compare', '--generate', 'lublin', '--jobs', '150', '--processors', '16', '--seeds', '1-6'];
const SWEEP = [...WORKLOAD, '--vary', 'local.kind=fcfs,easy', '--vary', 'load=0.7..0.9:0.2'];
const found = async (args: string[]) => {
  const { code, stdout, stderr } = await run(args, {});
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
};

describe('switchyard compare --vary', () => {
  it('writes a tidy table of all runs, the same as CSV and as Parquet', async () => {
    const [csv, parquet] = [join(folder, 'runs.csv'), join(folder, 'runs.parquet')];
    const json = JSON.parse(await found([...SWEEP, '--table', csv, '--json']));
    await found([...SWEEP, '--table', parquet]);
    expect(json.map(({ policy }: { policy: string }) => policy)).toEqual([
      'easy local.kind=fcfs load=0.7',
      'easy local.kind=fcfs load=0.9',
      'easy local.kind=easy load=0.7',
      'easy local.kind=easy load=0.9',
    ]);
    const [header, ...lines] = readFileSync(csv, 'utf8').trimEnd().split('\n');
    expect(header).toBe('trace,policy,local.kind,load,seed,metric,value');
    const bytes = readFileSync(parquet);
    const rows = await parquetReadObjects({
      file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    });
    expect(rows.map((row) => Object.values(row).join(','))).toEqual(lines);
    expect(rows[0]!.load).toBe(0.7);
    const wait = rows.filter(
      (row) => row['local.kind'] === 'easy' && row.load === 0.9 && row.metric === 'wait.mean',
    );
    expect(wait.map(({ value }) => value)).toEqual(
      json[3].runs.map((one: { wait: { mean: number } }) => one.wait.mean),
    );
    // Each is compared with the first policy of the same load.
    const [first, , easy, busier] = json;
    expect(first.significance.wait).toBeNull();
    expect(easy.toFirst.wait.mean).toBeCloseTo(easy.means.wait.mean - first.means.wait.mean, 6);
    const { difference, low, high, p, pHolm } = busier.significance.wait;
    expect(difference).toBeCloseTo(busier.toFirst.wait.mean, 6);
    expect(low <= difference && difference <= high && p <= pHolm && pHolm <= 1).toBe(true);
  });

  it('goes on where it was interrupted: what is kept is not run again, and what has changed is', async () => {
    const kept = join(folder, 'kept');
    const all = await found([...SWEEP, '--resume', kept, '--json']);
    const names = readdirSync(kept);
    expect(names).toHaveLength(2 * 2 * 6);
    // What an interruption leaves: some are missing, one was being written; and one says whether it is read.
    const [missing, cut, marked] = names as [string, string, string];
    rmSync(join(kept, missing));
    writeFileSync(join(kept, cut), '{"jobs":');
    const told = readFileSync(join(kept, marked), 'utf8');
    writeFileSync(join(kept, marked), JSON.stringify({ ...JSON.parse(told), trace: 'kept' }));
    const again = await found([...SWEEP, '--resume', kept, '--json']);
    expect(again.split('"kept"')).toHaveLength(2);
    writeFileSync(join(kept, marked), told);
    expect(await found([...SWEEP, '--resume', kept, '--json'])).toBe(all);
    await found([...SWEEP, '--resume', kept, '--tau', '20s']);
    expect(readdirSync(kept)).toHaveLength(2 * 2 * 2 * 6);
  });

  it('draws bands and boxes of several seeds, and measures over what varies', async () => {
    const plots = join(folder, 'plots');
    const args = [...WORKLOAD, '--vary', 'load=0.7,0.8,0.9', '--policy', 'fcfs,easy', '--plots', plots];
    await found(args);
    const measures = ['bounded-slowdown', 'turnaround', 'utilization', 'wait'];
    expect(readdirSync(plots).sort()).toEqual(
      [...measures.flatMap((one) => [`box-${one}.svg`, `by-load-${one}.svg`]), 'wait-band.svg'].sort(),
    );
    const read = (file: string) => readFileSync(join(plots, file), 'utf8');
    expect(marks(read('by-load-wait.svg'), 'line')).toHaveLength(2);
    expect(marks(read('wait-band.svg'), 'area')).toHaveLength(6);
    expect(marks(read('box-wait.svg'), 'rect').length).toBeGreaterThanOrEqual(6);
  });

  it.each([
    [['--vary', 'loud=1'], /--vary: "loud=1" is not accepted; accepted: FIELD=VALUES/],
    [['--vary', 'load=9..1'], /a range from low to high/],
    [['--vary', 'local.kind=esy'], /--vary local.kind=esy: .*accepted: fcfs/],
    [['--vary', 'local.knd.x=1'], /the policy has no knd; accepted: kind/],
    [
      ['--table', 'runs.xlsx'],
      /--table: "runs.xlsx" is not accepted; accepted: a file that ends in .csv or .parquet/,
    ],
    [['--repair', '1h'], /only together with --mtbf/],
  ])('says what is accepted instead of %j', async (args, message) => {
    const { code, stderr } = await run([...WORKLOAD, ...args], {});
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  it('lets machines fail at random: the same for a seed, and for all policies', async () => {
    const sites = join(folder, 'sites.csv');
    writeFileSync(sites, 'site,capacity,machines\n1,16,16\n');
    const args = [
      'compare',
      '--generate',
      'lublin',
      '--jobs',
      '300',
      '--sites',
      sites,
      '--policy',
      'fcfs,easy',
      '--json',
    ];
    const failing = [...args, '--mtbf', '2d', '--repair', '1h'];
    const [calm, stormy] = await Promise.all([found(args), found(failing)]);
    const lost = (text: string) => JSON.parse(text).map((one: { lost: number }) => one.lost);
    expect(lost(calm)).toEqual([0, 0]);
    for (const runs of lost(stormy)) expect(runs).toBeGreaterThan(0);
    expect(await found(failing)).toBe(stormy);
  });
});
