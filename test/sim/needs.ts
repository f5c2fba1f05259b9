/**
 * What jobs that wait for others are promised, asked of the events alone: none can be scheduled before what it needs has happened, none is
 * canceled for what may still come. Another reading of jobs.md than the product's: by the order of events, without times.
 */
import type { JobInput, NeedTermInput } from '../../src/api/generated/types.js';
import { localId } from '../../src/api/ids.js';
import { isTerminal } from '../../src/core/states.js';
import type { EventRow } from '../../src/store/rows.js';
import type { MemoryStore } from '../store/memory.js';

interface Asked {
  onUnmet: JobInput['onUnmet'];
  clauses: { any: boolean; of: { members: readonly number[]; condition: NeedTermInput['condition'] }[] }[];
}

/** true: it has happened; false: it cannot any more; null: it may. */
type Verdict = boolean | null;

export class NeedsJudge {
  private readonly asked = new Map<number, Asked>();

  constructor(private readonly store: MemoryStore) {}

  /** What a submission was answered. Later jobs have higher ids: who is a member of a group can be seen now. */
  submitted(jobs: readonly JobInput[], ids: readonly number[], userId: number): void {
    const last = ids.at(-1) as number;
    const membersOf = ({ ref, job, group }: NeedTermInput): number[] => {
      if (ref) return [ids[jobs.findIndex((one) => one.ref === ref)] as number];
      if (job) return [localId('job', job, 'job')];
      const all = [...this.store.jobs.values()];
      return all
        .filter((one) => one.userId === userId && one.groupName === group && one.id <= last)
        .map(({ id }) => id);
    };
    for (const [i, { needs, onUnmet }] of jobs.entries()) {
      if (needs.length === 0) continue;
      const clauses = needs.map(({ expression, of }) => ({
        any: expression === 'ANY',
        of: of.map((term) => ({ members: membersOf(term), condition: term.condition })),
      }));
      this.asked.set(ids[i] as number, { onUnmet, clauses });
    }
  }

  /** The database is as it was: ids of jobs that are gone are given to others. */
  restored(): void {
    for (const id of this.asked.keys()) if (!this.store.jobs.has(id)) this.asked.delete(id);
  }

  /** What is broken, when all has ended; null: nothing. */
  atEnd(): string | null {
    const { events, jobs } = this.store;
    const ofJob = new Map<number, EventRow[]>();
    for (const event of events)
      if (event.seq !== null) ofJob.set(event.entityId, [...(ofJob.get(event.entityId) ?? []), event]);
    const copies = new Map<number, number>();
    // A copy needs what its job needed.
    for (const { id, rerunOf } of jobs.values()) {
      if (rerunOf === null) continue;
      copies.set(rerunOf, id);
      const asked = this.asked.get(rerunOf);
      if (asked) this.asked.set(id, asked);
    }
    for (const [id, { onUnmet, clauses }] of this.asked) {
      const own = ofJob.get(id) ?? [];
      const decided = own.find(
        ({ fromState, toState, cause }) =>
          (fromState === 'BLOCKED' && toState === 'QUEUED') || cause === 'DEPENDENCY_FAILED',
      );
      const ran = own.find(({ toState }) => toState === 'ASSIGNED');
      if (ran && (decided === undefined || decided.id > ran.id))
        return `job ${id} has run, and was never let go`;
      if (decided === undefined) continue;
      /** In whose place a member stood then. */
      const latest = (member: number): number => {
        const copy = copies.get(member);
        const made = copy === undefined ? undefined : ofJob.get(copy)?.[0];
        return copy === undefined || made === undefined || made.id > decided.id ? member : latest(copy);
      };
      const before = (member: number): EventRow[] =>
        (ofJob.get(member) ?? []).filter((event) => event.id < decided.id);
      const verdicts = clauses.map(({ any, of }): Verdict => {
        const terms = of.map(({ members, condition }) =>
          this.verdict(condition, [...new Set(members.map(latest))], before),
        );
        if (terms.some((verdict) => verdict === any)) return any;
        return terms.includes(null) ? null : !any;
      });
      const said = JSON.stringify({ onUnmet, clauses, verdicts });
      if (decided.cause === 'DEPENDENCY_FAILED') {
        if (onUnmet !== 'CANCEL' || !verdicts.includes(false))
          return `job ${id} was canceled too soon: ${said}`;
      } else if (verdicts.includes(null)) return `job ${id} was let go too soon: ${said}`;
      else if (onUnmet === 'CANCEL' && verdicts.includes(false))
        return `job ${id} was let go, and should have been canceled: ${said}`;
    }
    return null;
  }

  private verdict(
    condition: NeedTermInput['condition'],
    members: readonly number[],
    before: (member: number) => EventRow[],
  ): Verdict {
    const ends = members.map((id) =>
      before(id).find(({ toState }) => toState !== null && isTerminal(toState)),
    );
    const good = ends.map((end) => end?.toState === 'COMPLETED');
    if (condition === 'START') {
      const started = members.map((id, i) => {
        if (before(id).some(({ toState }) => toState === 'RUNNING')) return true;
        if (ends[i] === undefined) return null;
        return [...this.store.runs.values()].some((run) => run.jobId === id && run.startedAt !== null);
      });
      return started.includes(false) ? false : started.includes(null) ? null : true;
    }
    if (condition === 'OK' && ends.some((end, i) => end !== undefined && !good[i])) return false;
    if (ends.includes(undefined)) return null;
    if (condition === 'NOT_OK') return good.includes(false);
    return true;
  }
}
