/** What a site's own scheduler has for an agent, and whether jobs run there: asked before the site is set up (`switchyard agent --check`). */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Check, Trial } from './conformance.js';
import { type LocalScheduler, RefusedError } from './scheduler.js';

export interface CheckOptions {
  /** The state directory of the agent to be: the jobs begin there. */
  directory: string;
  /** How long a short job may wait, and run, ms. */
  patienceMs: number;
}

/** Something that was found, in words; `problem`: what will not work. */
export interface Finding extends Pick<Check, 'name' | 'problem'> {
  found: string;
}

/** Tells what there is, one thing after another, then runs a job in each partition; where nothing is found, nothing more is tried. */
export async function checkSite(
  scheduler: LocalScheduler,
  { directory, patienceMs }: CheckOptions,
  tell: (finding: Finding) => void,
): Promise<void> {
  const { label } = scheduler;
  let partitions: readonly (string | null)[] = [null];
  try {
    const { nodes, elementsMax, takesParts } = await scheduler.capacity();
    const cpus = nodes.reduce((sum, node) => sum + node.cpus, 0);
    const devices = new Map<string, number>();
    for (const { kind, amount } of nodes.flatMap((node) => node.devices))
      devices.set(kind, (devices.get(kind) ?? 0) + amount);
    const counted = [...devices].map(([kind, amount]) => `, ${amount} ${kind}`).join('');
    tell({ name: 'machines', found: `${nodes.length} nodes, ${cpus} CPUs${counted}`, problem: null });
    tell({ name: 'arrays', found: `up to ${elementsMax} elements`, problem: null });
    tell({ name: 'jobs of several parts', found: takesParts ? 'accepted' : 'not accepted', problem: null });
    const unfit = nodes.filter(({ problem }) => problem !== null);
    const fewest =
      unfit.length === nodes.length ? `none of the nodes accepts jobs: ${unfit[0]?.problem}` : null;
    if (unfit.length > 0)
      tell({
        name: 'nodes that accept no jobs',
        found: unfit.map(({ name, problem }) => `${name} (${problem})`).join(', '),
        problem: fewest,
      });
    for (const { partition, ...finding } of (await scheduler.survey?.()) ?? []) {
      tell(finding);
      if (partition !== undefined) partitions = [...partitions.filter((one) => one !== null), partition];
    }
  } catch (error) {
    return tell({ name: label, found: '', problem: (error as Error).message });
  }
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const root = mkdtempSync(join(realpathSync(directory), 'check-'));
  try {
    for (const [i, partition] of partitions.entries()) {
      const name = partition === null ? 'a job' : `a job in ${partition}`;
      const trial = new Trial(
        scheduler,
        join(root, String(i)),
        `sy-test-${randomBytes(4).toString('hex')}-`,
        patienceMs,
      );
      tell({ name, ...(await trialJob(trial, partition, label)) });
      await trial.end();
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function trialJob(
  trial: Trial,
  partition: string | null,
  label: string,
): Promise<Omit<Finding, 'name'>> {
  const job = { ...trial.prepare('echo it runs'), partition };
  let words = 'nothing';
  try {
    const [id] = await trial.submit(job);
    const begunMs = Date.now();
    const { code } = await trial.until('its end', async () => {
      const listed = (await trial.scheduler.list(trial.prefix)).find(({ name }) => name === job.name);
      words = listed?.words ?? words;
      if (listed?.hopeless) throw new Error(`it would wait forever: ${label} reports ${words}`);
      return trial.marks.ended(job.name);
    });
    const nodes = trial.marks.where(job.name)?.nodes.join(' ') ?? '';
    const said = trial.output(job.name).trim();
    const took = `${((Date.now() - begunMs) / 1000).toFixed(1)} s, as ${id} on ${nodes}`;
    const problem =
      code === 0 && said === 'it runs' ? null : `it ended with ${code}, and wrote ${JSON.stringify(said)}`;
    return { found: took, problem };
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof RefusedError) return { found: '', problem: `${label} rejects it: ${message}` };
    const shared = /ENDED|COMPLETED|FAILED/.test(words)
      ? ` Is ${job.directory} visible to the nodes under that path?`
      : '';
    return { found: '', problem: `${message}; ${label} reports ${words}.${shared}` };
  }
}
