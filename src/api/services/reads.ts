/** What jobs of a submission read of what other jobs keep: from names to jobs, and whether these keep it. */
import type { AskedTerm, NeedTarget } from '../../core/needs/check.js';
import type { Clause } from '../../core/needs/model.js';
import { fits, keptPath } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import { turns } from '../../platform/turns.js';
import type { ReadTarget } from '../../store/needs.js';
import type { Queries } from '../../store/queries.js';
import { notAccepted } from '../errors.js';
import type { JobInput } from '../generated/types.js';
import { globalId, parseGlobalId } from '../ids.js';

/** A job of the submission, or all jobs of its template. */
export interface AskedJob {
  input: Pick<JobInput, 'ref' | 'needs' | 'onUnmet' | 'notBefore' | 'groupName' | 'inputs' | 'outputs'>;
  /** First and last index in an array; null: not in one. */
  array: readonly [number, number] | null;
}

/** A bulk group stands for itself: no group name is written like that. */
export const bulk = (id: string): string => `${id} (bulk group)`;

/** An input of a job that another one keeps, or each member of a group. */
export interface Read {
  /** Place among the job's inputs. */
  place: number;
  /** That it has to have been kept. */
  term: AskedTerm;
}

const NOTHING: readonly Read[] = [];
/** Outputs in a message. */
const SHOWN = 10;
const LOOK_UP_MAX = 10_000;

/** `refs`: those of the submission. */
export function readsOf({ input, array }: AskedJob, refs: ReadonlySet<string>): readonly Read[] {
  if (!input.inputs.some(({ from }) => typeof from === 'string')) return NOTHING;
  return input.inputs.flatMap(({ from }, place) => {
    if (typeof from !== 'string') return [];
    const target = named(from, refs);
    const condition = 'group' in target && array !== null ? 'CORRESPONDING' : 'OK';
    return [{ place, term: { ...target, condition, minDelayS: 0 } }];
  });
}

function named(from: string, refs: ReadonlySet<string>): NeedTarget {
  const type = refs.has(from) ? null : parseGlobalId(from)?.type;
  if (type === 'job') return { job: from };
  if (type === 'group') return { group: bulk(from) };
  return from.startsWith('group:') ? { group: from.slice('group:'.length) } : { ref: from };
}

/** What a job reads it needs. */
export const neededToRead = (reads: readonly Read[]): Clause<AskedTerm>[] =>
  reads.length === 0 ? [] : [{ expression: 'ALL', of: reads.map(({ term }) => term) }];

/** Whether all that is read is an output of the jobs that it is read from. `membersOf`: those jobs, for the job at an index. */
export async function checkReads(
  queries: Pick<Queries, 'outputsOf'>,
  jobs: readonly AskedJob[],
  reads: readonly (readonly Read[])[],
  membersOf: (term: AskedTerm, index: number | null) => readonly ReadTarget[],
  refuse: (item: number, field: string, message: string) => void,
): Promise<void> {
  const all = jobs.flatMap(({ array }, item) => {
    const of = reads[item] as readonly Read[];
    const indices = array === null ? [null] : span(array);
    return of.length === 0
      ? []
      : indices.map((index) => ({
          item,
          reads: of.map(({ place, term }) => ({ place, targets: membersOf(term, index) })),
        }));
  });
  const ids = new Set(
    all.flatMap((one) =>
      one.reads.flatMap(({ targets }) => targets.flatMap((of) => ('job' in of ? of.job : []))),
    ),
  );
  const stored = new Map<number, readonly Output[]>();
  const pending = [...ids];
  for (let i = 0; i < pending.length; i += LOOK_UP_MAX)
    for (const { id, outputs } of await queries.outputsOf(pending.slice(i, i + LOOK_UP_MAX)))
      stored.set(id, outputs);
  await turns.pause();
  for (const { item, reads } of all) {
    const { inputs } = (jobs[item] as AskedJob).input;
    const count = reads.reduce((sum, { targets }) => sum + targets.length - 1, inputs.length);
    if (count > MAX.jobInputs)
      refuse(
        item,
        'inputs',
        notAccepted('inputs', count, `up to ${MAX.jobInputs} inputs, one for each member of a group`),
      );
    for (const { place, targets } of reads)
      for (const of of targets) {
        const outputs = 'item' in of ? (jobs[of.item] as AskedJob).input.outputs : (stored.get(of.job) ?? []);
        const path = inputs[place]?.output as string;
        if (outputs.some((output) => includes(output, keptPath(path)))) continue;
        const kept = outputs
          .slice(0, SHOWN)
          .map((output) => output.path)
          .join(', ');
        const who = 'job' in of ? globalId('job', of.job) : `jobs[${of.item}]`;
        const field = `inputs[${place}].output`;
        refuse(item, field, notAccepted(field, path, `an output of ${who}: ${kept || 'it has none'}`));
      }
  }
}

const span = ([first, last]: readonly [number, number]): number[] =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i);

interface Output {
  path: string;
  dataset?: string | null;
}

/** Whether the file can be among what an output keeps: it, all below it, or all that its pattern fits. A dataset is read as a whole. */
function includes({ path, dataset }: Output, file: string): boolean {
  const root = keptPath(path.replace(/\/$/, '')).split('/');
  const names = file.split('/');
  if (dataset) return root.join('/') === names.join('/');
  return root.length <= names.length && root.every((pattern, i) => fits(names[i] as string, pattern));
}
