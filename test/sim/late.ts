/**
 * What conservative backfilling promises, as it is kept from cycle to cycle: a job starts by the time that its site has promised it. Later only by as
 * much as what the promise counted on was not there: runs that go on behind their planned end, processes and ways between them that fail, machines
 * that are away. And of what people change a promise is made anew. A start for which none of these is found breaks the promise.
 *
 * Of a license of the whole grid a site claims copies for its first promise only, and the older claim wins: another site may take what a later one
 * counted on.
 */
import { poolsAskedBy } from '../../src/core/model.js';
import { LEASE_MS } from '../../src/engine/queue.js';
import type { MemoryStore } from '../store/memory.js';

/** What reports, cycles and timers take where nothing fails, seconds. */
const SLACK_S = 2;
/** What died in the middle of a cycle is in its way for so long after it. */
const RECOVERED_S = LEASE_MS / 1000 + 5;

/** Something that was in the way, epoch seconds. `siteId` null: in everybody's. */
interface Away {
  what: string;
  siteId: number | null;
  from: number;
  to: number;
}

interface Promised {
  siteId: number;
  epoch: number;
  dispatchedAt: number | null;
  at: number;
  /** Since when it is known. */
  since: number;
  /** When its site claimed the licenses of the whole grid for it, and when other sites knew; null: it has not. */
  claim: { madeAt: number; since: number } | null;
}

export class Late {
  /** How many started late, by what explains it. */
  readonly causes = new Map<string, number>();
  private readonly promised = new Map<number, Promised>();
  /** When claims for jobs were made, the last of each. */
  private readonly claimed = new Map<number, number>();
  private readonly away: Away[] = [];
  private readonly ongoing = new Map<string, Away>();

  constructor(
    private readonly store: MemoryStore,
    private readonly fail: (what: string) => void,
  ) {}

  /** Somebody has changed what promises are made of. */
  changed(what: string, now: number): void {
    this.away.push({ what, siteId: null, from: now, to: now });
  }

  /** Every second. `faults`: what does not work now, at which site; null: everywhere. */
  look(now: number, faults: readonly { what: string; siteId: number | null }[]): void {
    const { store } = this;
    const seen = [...faults];
    for (const site of store.sites.values())
      if (site.state !== 'UP') seen.push({ what: `${MACHINES}: site`, siteId: site.id });
    for (const { siteId, state, silent, problem } of store.machines.values())
      if (state !== 'UP' || silent || problem !== null) seen.push({ what: MACHINES, siteId });
    for (const { what, siteId } of seen) {
      const key = `${what}/${siteId}`;
      const known = this.ongoing.get(key);
      if (known !== undefined && now <= known.to + RECOVERED_S) known.to = Math.max(known.to, now);
      else {
        const begun = { what, siteId, from: now - 1, to: now };
        this.ongoing.set(key, begun);
        this.away.push(begun);
      }
    }
    this.judge();
    this.note(now);
  }

  private note(now: number): void {
    const { store } = this;
    for (const [siteId, { promises }] of store.promised)
      for (const { jobId, at } of promises?.jobs ?? []) {
        const job = store.jobs.get(jobId);
        if (job?.state !== 'DISPATCHED' || job.siteId !== siteId) continue;
        const known = this.promised.get(jobId);
        const isNew =
          known === undefined || known.dispatchedAt !== job.dispatchedAt || known.epoch !== job.epoch;
        if (isNew || at < known.at)
          this.promised.set(jobId, {
            siteId,
            epoch: job.epoch,
            dispatchedAt: job.dispatchedAt,
            at,
            since: now,
            claim: null,
          });
        const own = this.promised.get(jobId) as Promised;
        const claim = store.held.get(siteId);
        if (claim?.jobId !== jobId) own.claim = null;
        else own.claim ??= { madeAt: claim.madeAt, since: now };
        if (own.claim !== null) this.claimed.set(jobId, own.claim.madeAt);
      }
  }

  /** Whether another site has taken a copy of a license that the job asks for, and that was not claimed for it. */
  private isTaken(jobId: number, { siteId, since, claim }: Promised, start: number): boolean {
    const { store } = this;
    const job = store.jobs.get(jobId);
    const asked = job === undefined ? [] : poolsAskedBy(job);
    const shared = new Set(
      [...store.licenses.values()]
        .filter((one) => one.siteId === null && asked.some(({ kind }) => kind === one.kind))
        .map(({ id }) => id),
    );
    return [...store.runs.values()].some(
      (run) =>
        run.siteId !== siteId &&
        run.pools.some(({ id }) => shared.has(id)) &&
        run.assignedAt > since &&
        run.assignedAt < start &&
        (claim === null ||
          run.assignedAt < claim.since ||
          (this.claimed.get(run.jobId) ?? Infinity) <= claim.madeAt),
    );
  }

  /** Those that wait no more. */
  private judge(): void {
    const { store } = this;
    for (const [jobId, promised] of this.promised) {
      const job = store.jobs.get(jobId);
      const waits = job?.state === 'DISPATCHED' && job.dispatchedAt === promised.dispatchedAt;
      if (waits && job.siteId === promised.siteId && job.epoch === promised.epoch) continue;
      this.promised.delete(jobId);
      const run = store.runs.get(`${jobId}/${promised.epoch + 1}`);
      if (run?.siteId === promised.siteId && run.assignedAt > promised.at + SLACK_S)
        this.explain(jobId, promised, run.assignedAt);
    }
  }

  private explain(jobId: number, promised: Promised, start: number): void {
    const { siteId, at, since } = promised;
    const here = this.away.filter(
      (one) => (one.siteId ?? siteId) === siteId && one.to + RECOVERED_S > since && one.from < start,
    );
    const why = new Set(here.map(({ what }) => what));
    let overrunS = 0;
    for (const run of this.store.runs.values()) {
      // Where licenses of the whole grid are, all sites' runs count.
      const from = Math.max(since, run.assignedAt + run.plannedS);
      overrunS += Math.max(0, Math.min(start, run.endedAt ?? start) - from);
    }
    if (overrunS > 0) why.add('a run goes on behind its planned end');
    const taken = this.isTaken(jobId, promised, start);
    if (taken) why.add('another site has taken a license that was not claimed');
    const lateS = start - at;
    if (here.length === 0 && !taken && lateS > SLACK_S + overrunS)
      this.fail(
        `conservative: job ${jobId} starts ${lateS.toFixed(1)} s after the time promised at site ${siteId}, runs went on for ${overrunS.toFixed(1)} s longer than planned, and nothing else was in its way`,
      );
    for (const one of why) this.causes.set(one, (this.causes.get(one) ?? 0) + 1);
  }
}

const MACHINES = 'machines are away';
