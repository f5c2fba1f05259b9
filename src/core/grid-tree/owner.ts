/**
 * The owner of jobs (grid-tree.md, "Hybrid"): it submits their requests to its root and decides who runs them. However many
 * trees a request waits in and whatever becomes of messages, an attempt is granted to one leaf.
 */
import { isGranted } from './hybrid.js';
import { request } from './machines.js';
import type { Address, Effects, Message, Request } from './messages.js';

/** What is asked for a job; see `Request`. */
export type Wish = Pick<Request, 'requirement'> & Partial<Pick<Request, 'preferences' | 'origin'>>;

interface Owned {
  wish: Wish;
  sequence: number | null;
  /** Counts the attempts. */
  epoch: number;
  /** Of the attempt. */
  id: string;
  /** Who was granted it; null: nobody. */
  leaf: Address | null;
}

export class Owner {
  private readonly owned = new Map<string, Owned>();
  /** By id of the attempt. */
  private readonly jobs = new Map<string, string>();

  constructor(
    readonly id: Address,
    private readonly effects: Effects,
    private readonly root: Address,
  ) {}

  /** `job`: unique for the owner. `sequence`: see SUBMIT. */
  submit(job: string, wish: Wish, sequence: number | null = null): void {
    if (this.owned.has(job)) throw new Error(`${this.id} has submitted job ${job} already`);
    this.attempt(job, { wish, sequence, epoch: 0, id: '', leaf: null });
  }

  /** The job's attempt that counts, and who runs it. */
  find(job: string): { readonly epoch: number; readonly leaf: Address | null } | null {
    return this.owned.get(job) ?? null;
  }

  /** The run was lost with its leaf: another attempt, with a new epoch. */
  lost(job: string): void {
    const one = this.owned.get(job);
    if (one === undefined) return;
    this.forget(one);
    this.attempt(job, one);
  }

  /** Cancelled, or ended: no claim is granted any more. */
  end(job: string): void {
    const one = this.owned.get(job);
    if (one === undefined) return;
    this.forget(one);
    this.owned.delete(job);
  }

  receive(from: Address, message: Message): void {
    if (message.kind === 'CLAIM') {
      const one = this.owned.get(this.jobs.get(message.id) ?? '');
      if (one === undefined || !isGranted({ isOpen: one.leaf === null, isTheirs: one.leaf === from })) {
        this.effects.send(from, { kind: 'REFUSED', id: message.id });
        return;
      }
      this.effects.send(from, { kind: 'GRANTED', id: message.id });
      if (one.leaf === null) this.effects.send(this.root, { kind: 'TAKEN', id: message.id });
      one.leaf = from;
    } else if (message.kind === 'DECLINED') {
      const job = this.jobs.get(message.id);
      if (job !== undefined && this.owned.get(job)?.leaf === from) this.lost(job);
    }
  }

  private attempt(job: string, { wish, sequence, epoch }: Owned): void {
    const id = `${this.id}/${job}/${epoch + 1}`;
    this.owned.set(job, { wish, sequence, epoch: epoch + 1, id, leaf: null });
    this.jobs.set(id, job);
    const made = request({ id, owner: this.id, ...wish });
    this.effects.send(this.root, { kind: 'SUBMIT', request: made, sequence });
  }

  private forget(one: Owned): void {
    this.jobs.delete(one.id);
    if (one.leaf === null) this.effects.send(this.root, { kind: 'TAKEN', id: one.id });
  }
}
