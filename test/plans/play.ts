/** The plans that a commit's simulator makes for a question, and the first line in which two commits differ. */
import * as fc from 'fast-check';
import type * as Core from '../../src/core/index.js';
import type * as Engine from '../../src/simulator/engine.js';
import { anyQuestion, type Question } from './draw.js';

/** What is asked of a commit: names that have not changed since the first simulator. */
export type Door = Pick<typeof Engine, 'runSimulation'> &
  Pick<typeof Core, 'plainJob' | 'parsePolicy' | 'DEFAULT_POLICY'> & {
    dispatchKinds: readonly { schema: { shape: { kind: { value: string } } } }[];
    localKinds: readonly { schema: { shape: { kind: { value: string } } } }[];
  };

/** Of the pools an entry for each copy, as earlier commits have it. */
const idsIn = ({
  licenseIds,
  pools,
}: Partial<Pick<Core.Run, 'pools'>> & { licenseIds?: number[] }): number[] =>
  licenseIds ?? (pools ?? []).flatMap(({ id, amount }) => new Array<number>(amount).fill(id));

/** A line for each move, reservation, start and end, in the order in which they happen; the last says how many jobs still wait. */
export function planned(door: Door, { world, jobs, policy, eventOrder, movesAtOnce }: Question): string[] {
  const lines: string[] = [];
  const say = (at: number, what: string, ...of: unknown[]): void => {
    lines.push(`${at} ${what} ${of.map((one) => JSON.stringify(one)).join(' ')}`);
  };
  // Documents are accepted by each commit, and keep its own defaults for what the other does not know.
  const document = door.parsePolicy({ ...door.DEFAULT_POLICY, ...policy });
  const { waiting } = door.runSimulation(
    // The older one reads what it knows of them.
    world as Engine.World,
    jobs.map((one) => ({ ...one, job: door.plainJob(one.job) })),
    { policy: document, eventOrder, movesAtOnce },
    [
      {
        moved: ({ jobId, from, to, queue, priority }, at) =>
          say(at, 'move', jobId, from, to, queue, priority),
        planned: ({ siteId, reservation: kept }, at) => {
          if (kept) say(at, 'reservation', siteId, kept.jobId, kept.at, kept.allocations, idsIn(kept));
        },
        started: (_job, _index, run) => {
          const { jobId, siteId, epoch, start, plannedEnd, allocations } = run;
          say(start, 'start', jobId, epoch, siteId, plannedEnd, allocations, idsIn(run));
        },
        ended: (_job, _index, { jobId, epoch }, at, how) => say(at, 'end', jobId, epoch, how),
      },
    ],
  );
  return [...lines, `${waiting} wait`];
}

/** The first line that is not the same, with the lines before it; null: there is none. */
export function difference(theirs: readonly string[], ours: readonly string[]): string | null {
  for (let i = 0; i < Math.max(theirs.length, ours.length); i++) {
    if (theirs[i] === ours[i]) continue;
    const before = theirs.slice(Math.max(0, i - 5), i).map((line) => `  ${line}`);
    return [...before, `- ${theirs[i] ?? '(nothing)'}`, `+ ${ours[i] ?? '(nothing)'}`].join('\n');
  }
  return null;
}

export interface Compared {
  /** Grids that were planned by both. */
  grids: number;
  /** Lines of their plans. */
  lines: number;
  /** By kind of policy, the grids that it planned. */
  kinds: Map<string, number>;
  /** The smallest question that is answered otherwise, and how; null: there is none. */
  broken: { question: Question; difference: string } | null;
}

/** Asks both the same questions; `endOnFailure`: the first that is answered otherwise is given as it is. */
export function compare(
  theirs: Door,
  ours: Door,
  grids: number,
  seed: number,
  endOnFailure = false,
): Compared {
  const kinds = new Map(
    [...theirs.dispatchKinds, ...theirs.localKinds].map(({ schema }) => [schema.shape.kind.value, 0]),
  );
  // Sites' own schedulers are not simulated.
  kinds.delete('external');
  let lines = 0;
  const answers = (question: Question): [string[], string[]] => [
    planned(theirs, question),
    planned(ours, question),
  ];
  const same = fc.property(anyQuestion, (question) => {
    const [they, we] = answers(question);
    lines += they.length;
    for (const { kind } of [question.policy.dispatch, question.policy.local])
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    return difference(they, we) === null;
  });
  const { counterexample, numRuns } = fc.check(same, { seed, numRuns: grids, endOnFailure });
  const [question] = counterexample ?? [];
  // Asked once more: where a simulator threw, it does so here.
  const broken = question ? { question, difference: difference(...answers(question)) as string } : null;
  return { grids: numRuns, lines, kinds, broken };
}
