/** The slots of an agent: those in which runs take place, and those that wait for one. */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ProcessRun, upMs } from './run.js';
import { Slot } from './slot.js';

/** A lane without work goes after this. */
const LANE_IDLE_MS = 60_000;

export class Slots {
  readonly dir: string;
  private readonly idle: Slot[] = [];
  private readonly used = new Map<Slot, ProcessRun>();
  private next = 1;

  constructor(private readonly stateDir: string) {
    this.dir = join(stateDir, 'slots');
    mkdirSync(this.dir, { recursive: true, mode: 0o700 });
  }

  /** One that nobody uses. */
  take(): Slot {
    return this.idle.pop() ?? this.open(String(this.next));
  }

  /** The one of this name, which is made unless it is there. */
  open(name: string): Slot {
    const slot = new Slot(join(this.dir, name));
    this.next = Math.max(this.next, Number(name) + 1);
    return slot;
  }

  hold(run: ProcessRun): void {
    this.used.set(run.slot, run);
  }

  /** The run that takes place in a slot. */
  runIn(slot: Slot): ProcessRun | undefined {
    return this.used.get(slot);
  }

  /** Pids of lanes, also those of an earlier agent. */
  lanes(): number[] {
    return [...this.idle, ...this.used.keys()].map(({ lanePid }) => lanePid);
  }

  /** Pids of this agent's lanes. */
  ownLanes(): number[] {
    return [...this.idle, ...this.used.keys()].flatMap(({ ownLanePid }) => ownLanePid ?? []);
  }

  /** Of a run that was not started. The directories that have been put aside. */
  putBack(slot: Slot): string[] {
    let trash: string[] = [];
    try {
      trash = slot.clean(() => this.aside());
      slot.free(upMs());
      this.idle.push(slot);
    } catch {
      slot.remove();
    }
    return trash;
  }

  /**
   * The run is over and reported.
   *
   * @param held whether something of the run had the slot's files open
   * @param clean whether there may be something in its directories
   * @returns the directories that have been put aside
   */
  release({ slot, uid, ours }: ProcessRun, held: boolean, clean: boolean): string[] {
    this.used.delete(slot);
    let trash: string[] = [];
    try {
      if (clean) trash = slot.clean(() => this.aside());
      slot.free(upMs());
      // What the run left may still hold the slot's files, and a lane of an earlier agent takes no more orders.
      if (!held && ours) {
        this.idle.push(slot);
        return trash;
      }
    } catch {
      // It cannot be emptied, or there is no room to write that it is free.
    }
    if (uid === null) slot.remove();
    else trash.push(slot.putAside(this.aside()));
    return trash;
  }

  /** Lets lanes go that have had no work for long. */
  rest(now: number): void {
    for (const slot of this.idle) if (now - slot.idleSinceMs > LANE_IDLE_MS) slot.releaseLane();
  }

  close(): void {
    for (const slot of [...this.idle, ...this.used.keys()]) slot.close();
  }

  /** Where what is to be removed is put. */
  aside(): string {
    return join(this.stateDir, `trash-${randomUUID()}`);
  }
}
