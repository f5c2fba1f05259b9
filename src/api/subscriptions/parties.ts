/**
 * Subscribers who ask the same go along the event feed together: what comes next is looked at, executed and encoded once, and written to one
 * after another. Everybody begins alone, behind a cursor of their own, and joins the others where both wait for the same. Who takes too long
 * to take a message goes on alone from there: so the others do not wait for the slow, and nothing is kept for them but the message.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { type Account, turns } from '../../platform/turns.js';
import type { Cursor } from '../../store/store.js';
import type { Walk } from './loop.js';

/** How long the others wait for one who has not taken the last message. Over TLS even the quick take a moment. */
const PATIENCE_MS = 50;
/** To how many a message is written in a turn. */
const WRITTEN_AT_ONCE = 64;

/** What is told, with the cursor of its event. */
export interface Update {
  readonly cursor: Cursor;
}

/** How the answers go to one client. */
export interface Recipient {
  /** What of a result goes over the wire: errors in the form that clients are shown. */
  outward(result: ExecutionResult): object;
  /** Sends the JSON of an answer. Null: it has been taken; else that is waited for. */
  send(payload: string): Promise<void> | null;
}

/** One who has subscribed. */
export class Member {
  /** Resolves when the subscription is over, and rejects when it has failed. */
  readonly end: Promise<null>;
  ended!: () => void;
  failed!: (error: unknown) => void;

  constructor(
    readonly args: ExecutionArgs,
    readonly recipient: Recipient,
    /** Those it goes with. */
    public party: Party,
  ) {
    this.end = new Promise((resolve, reject) => {
      this.ended = () => resolve(null);
      this.failed = reject;
    });
    party.join(this);
  }

  leave(): void {
    this.party.leave(this);
    this.ended();
  }
}

export interface Answer {
  readonly payload: string;
  /** It is the same for all who ask the same. */
  readonly isForAll: boolean;
}

/** What all who ask the same have in common. */
export interface Asking {
  readonly account: Account;
  /** The answer to an update, as it is for this member. */
  answer(update: Update, member: Member): Promise<Answer>;
  /** Those who wait for news, by the cursor behind which they do. */
  readonly waiting: Map<Cursor, Party>;
}

export class Party {
  readonly members = new Set<Member>();
  /** Where it waits. */
  private at: Cursor | null = null;

  constructor(
    private readonly walk: Walk<Update>,
    private readonly asking: Asking,
  ) {
    if (walk.way) walk.way.onWait = (at) => this.waits(at);
  }

  join(member: Member): void {
    member.party = this;
    this.members.add(member);
  }

  leave(member: Member): void {
    this.members.delete(member);
    if (this.members.size === 0) void this.walk.return();
  }

  /** Tells the members what happens, until it ends or all have gone. */
  async go(): Promise<void> {
    try {
      for (;;) {
        const { value: update, done } = await this.walk.next();
        if (done) break;
        await this.tell(update);
      }
      for (const { ended } of this.members) ended();
    } catch (error) {
      void this.walk.return();
      for (const { failed } of this.members) failed(error);
    }
  }

  /** It joins those who wait at the same place, or waits there for others. */
  private waits(at: Cursor | null): void {
    const { waiting } = this.asking;
    if (this.at !== null) waiting.delete(this.at);
    this.at = null;
    if (at === null) return;
    const others = waiting.get(at);
    if (others) {
      for (const member of this.members) others.join(member);
      this.members.clear();
      void this.walk.return();
    } else {
      waiting.set(at, this);
      this.at = at;
    }
  }

  private async tell(update: Update): Promise<void> {
    const { answer, account } = this.asking;
    let told: Answer | null = null;
    const late = new Map<Member, Promise<void>>();
    let written = 0;
    for (const member of this.members) {
      if (!told?.isForAll) told = await answer(update, member);
      // It may have gone meanwhile.
      if (!this.members.has(member)) continue;
      const taking = member.recipient.send(told.payload);
      // One whose connection is broken will leave.
      const taken = taking?.catch(() => {}).then(() => void late.delete(member));
      if (taken) late.set(member, taken);
      if (++written % WRITTEN_AT_ONCE === 0) await turns.turn(account);
    }
    if (late.size > 0) await this.waitFor(late, update);
  }

  /** Who does not take the message soon is left behind. */
  private async waitFor(late: ReadonlyMap<Member, Promise<void>>, { cursor }: Update): Promise<void> {
    const { behind } = this.walk;
    const all = Promise.all(late.values());
    if (this.members.size === 1 || !behind) return void (await all);
    await Promise.race([all, sleep(PATIENCE_MS)]);
    for (const [member, taking] of late) {
      if (!this.members.has(member)) continue;
      const alone = new Party(behind(cursor), this.asking);
      alone.join(member);
      void taking.then(() => alone.go());
      this.leave(member);
    }
  }
}
