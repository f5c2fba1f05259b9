/** What simulated jobs wait for: the rules of the core on needs, and where what they read is. */
import { type JobData, jobData, type NeedsChange, NeedsGraph } from '../core/index.js';
import type { SimJob } from './workload.js';

/** The jobs of a simulation that wait, as they go on. */
export class Waits {
  private readonly graph = new NeedsGraph();
  /** By job: where its last run was; 0: nowhere. */
  private readonly sites: Int32Array;
  private readonly begun: Uint8Array;
  /** Whether they wait no longer. */
  private readonly gone: Uint8Array;

  /** Ids are positions, from 1. */
  constructor(private readonly jobs: readonly SimJob[]) {
    this.sites = new Int32Array(jobs.length + 1);
    this.begun = new Uint8Array(jobs.length + 1);
    this.gone = new Uint8Array(jobs.length + 1);
    this.graph.add(
      jobs.map(({ job: { id, submittedAt }, wait }) => ({
        id,
        submittedAt: wait?.since ?? submittedAt,
        notBefore: null,
        onUnmet: wait?.onUnmet ?? 'CANCEL',
        needs: wait?.needs ?? [],
      })),
    );
  }

  /** What follows for jobs that wait, once for each instant that is news. */
  settle(): NeedsChange[] {
    return this.graph.settle().filter(({ id }) => this.jobs[id - 1]?.wait !== undefined);
  }

  started(id: number, siteId: number, at: number): void {
    this.sites[id] = siteId;
    if (this.begun[id] === 1) return;
    this.begun[id] = 1;
    this.graph.started(id, at);
  }

  /** For good. */
  ended(id: number, at: number, ok: boolean): void {
    this.graph.ended(id, at, ok);
  }

  /** The job as it is submitted at `at`, when nothing is missing any more; null: its time was told again and came sooner, so it is. */
  submitted(one: SimJob, at: number): SimJob | null {
    if (this.gone[one.job.id] === 1) return null;
    this.gone[one.job.id] = 1;
    return { ...one, job: { ...one.job, submittedAt: at, data: this.dataOf(one) } };
  }

  private dataOf({ job: { data }, wait }: SimJob): JobData | null {
    const inputs = (wait?.reads ?? []).flatMap(({ job, sizeMb }) => {
      const siteId = this.sites[job] as number;
      return siteId === 0 ? [] : [{ siteId, sizeMb }];
    });
    if (inputs.length === 0) return data;
    return { ...jobData(data ?? {}), inputs: [...(data?.inputs ?? []), ...inputs] };
  }
}
