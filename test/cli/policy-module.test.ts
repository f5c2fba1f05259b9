import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { run } from './service.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const docs = readFileSync(join(root, 'docs/simulator.md'), 'utf8');
/** The example of the docs, word for word. The cast: without a match every test fails anyway. */
const [, name, example] = /^```ts (\S+)\n([\s\S]*?)^```$/m.exec(docs) as unknown as [string, string, string];
const WORKLOAD = ['--generate', 'lublin', '--jobs', '300', '--processors', '64', '--load', '0.9'];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'policy-module-'));
  mkdirSync(join(folder, 'own'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function written(file: string, text: string): string {
  const path = join(folder, file);
  writeFileSync(path, text);
  return path;
}

const switchyard = (command: string, ...args: string[]) => run([command, '--json', ...WORKLOAD, ...args], {});

it('the example of the docs runs, in several threads too, and its command is one that there is', async () => {
  const module = written(name, example);
  const command = new RegExp(`^npx switchyard compare .*--policy-module ${name} --policy (\\S+)$`, 'm');
  // It matches, or what follows fails.
  const [, policies] = command.exec(docs) as unknown as [string, string];
  const settings = written('long.json', '{"local": {"kind": "smallest-area", "maxWaitS": 1}}');
  const { code, stdout, stderr } = await switchyard(
    ...['compare', '--policy-module', module, '--policy', `${policies},${settings}`, '--seeds', '1-2'],
  );
  expect([code, stderr]).toEqual([0, '']);
  const compared = JSON.parse(stdout) as {
    policy: string;
    runs: { jobs: number; local: object; boundedSlowdown: { mean: number } }[];
  }[];
  expect(compared.map(({ policy }) => policy)).toEqual([...policies.split(','), settings]);
  const [easy, , smallest, impatient] = compared.map(({ runs }) => runs[0]);
  expect(smallest?.local).toEqual({ kind: 'smallest-area', maxWaitS: 86_400 });
  expect(impatient?.local).toEqual({ kind: 'smallest-area', maxWaitS: 1 });
  expect(smallest?.jobs).toBe(300);
  // It does what it says: small jobs first costs their users least; and its setting matters.
  expect(smallest?.boundedSlowdown.mean).toBeLessThan(easy?.boundedSlowdown.mean as number);
  expect(impatient?.boundedSlowdown.mean).not.toBe(smallest?.boundedSlowdown.mean);
});

it('the example of the docs agrees with the types of switchyard/policy', () => {
  const exported = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports['./policy'];
  const paths = {
    'switchyard/policy': [join(root, exported.types)],
    zod: [join(dirname(createRequire(import.meta.url).resolve('zod/package.json')), 'index.d.ts')],
  };
  const compilerOptions = {
    ...{ strict: true, noEmit: true, module: 'nodenext', target: 'es2022', skipLibCheck: true },
    ...{ types: [], paths },
  };
  const check = (text: string): string => {
    written('checked.mts', text);
    const config = written('tsconfig.json', JSON.stringify({ compilerOptions, files: ['checked.mts'] }));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    return spawnSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' }).stdout;
  };
  expect(check(example)).toBe('');
  expect(check(example.replace('pass.work(slot)', 'pass.wrok(slot)'))).toContain("'wrok'");
});

const DISPATCH = `import { type Choice, type DispatchPass, type Job, dispatchKind, forEachAtRoot } from 'switchyard/policy';
import { z } from 'zod';
import { pick } from './pick.js';
export default [dispatchKind({
  schema: z.strictObject({ kind: z.literal('last-site') }),
  begin({ grid }): DispatchPass {
    const choose = (job: Job, { indices, siteIds, ineligible }): Choice => ({
      site: grid.sites[pick(indices)]!, priority: 0, reason: 'HEAD' as never,
      explanation: { sites: siteIds, terms: {}, candidates: [], ineligible, level: null, priorityTerms: null },
    });
    return { choose, decide: (plan) => forEachAtRoot(grid, plan, 'NONE', (job, eligibility) => plan.take(job, choose(job, eligibility))) };
  },
  localOrder: () => 'ARRIVAL',
})];`;

it('a dispatch policy chooses the sites, and may import files of its own', async () => {
  written('own/pick.ts', 'export const pick = (indices: number[]): number => indices.at(-1) as number;');
  const module = written('own/last.ts', DISPATCH);
  const sites = written('sites.csv', 'site,capacity,name\n1,64,first\n2,64,second\n');
  const args = ['simulate', '--json', '--generate', 'lublin', '--jobs', '50', '--sites', sites];
  const summary = join(folder, 'summary.json');
  const { code, stderr } = await run([...args, '--policy-module', module, '--summary', summary], {});
  expect([code, stderr]).toEqual([0, '']);
  const { dispatch, local, bySite } = JSON.parse(readFileSync(summary, 'utf8'));
  expect([dispatch.kind, local.kind]).toEqual(['last-site', 'easy']);
  expect(bySite).toMatchObject([{ name: 'second', jobs: 50 }]);
});

it.each([
  ['syntax.ts', 'const a: number = ;', /syntax\.ts:1:19: Unexpected ";"/],
  ['import.ts', "import './nowhere.js';", /import\.ts:1:8: Could not resolve "\.\/nowhere\.js"/],
  [
    'load.ts',
    'const nothing: any = null;\nnothing.x;\nexport default 1;',
    /load\.ts:2:9: Cannot read properties/,
  ],
  ['none.js', 'export default { scheduler: 1 };', /none\.js: its default export is not accepted; accepted:/],
  [
    'taken.ts',
    example.replace("'smallest-area'", "'easy'"),
    /taken\.ts: there is a local policy "easy" already/,
  ],
  [
    'throws.ts',
    example.replace('return new', "throw new Error('no order');\n return new"),
    /throws\.ts:18:\d+: no order/,
  ],
])('says what is wrong with %s, and where', async (file, text, message) => {
  const { code, stdout, stderr } = await switchyard('simulate', '--policy-module', written(file, text));
  expect([code, stdout]).toEqual([file === 'throws.ts' ? 1 : 2, '']);
  expect(stderr).toMatch(message);
  expect(stderr.trim().split('\n')).toHaveLength(1);
});

it('names a file that is not there, and a setting that the policy does not take', async () => {
  const absent = await switchyard('simulate', '--policy-module', join(folder, 'absent.ts'));
  expect(absent.stderr).toContain('absent.ts: no such file');
  const settings = written('bad.json', '{"local": {"kind": "smallest-area", "maxWaitS": -1}}');
  const bad = await switchyard('simulate', '--policy-module', written(name, example), '--policy', settings);
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('local.maxWaitS: -1 is not accepted')]);
});
