/**
 * Whole services in virtual time, one or several that are peers of one another. A history is played, then all faults stop, and everything has to end.
 *
 * What happens depends on the history alone: the same one again makes the same again.
 */
import { T0 } from '../store/world.js';
import { Between } from './between.js';
import type { Deed, History } from './history.js';
import { Service } from './service.js';
import { Time } from './time.js';

/** All has to end within so long after the last fault. */
const END_WITHIN_MS = 7_200_000;
/** And agents and peers have said so. */
const AFTERWARDS_MS = 60_000;
const LOOK_EVERY_MS = 1_000;
/** Far more than any history takes. */
const MAX_STEPS = 2_000_000;

export class Simulation {
  readonly time = new Time(T0 * 1000);
  readonly services: readonly Service[];
  private readonly between: Between;
  private steps = 0;

  constructor(private readonly history: History) {
    const count = history.services ?? 1;
    this.services = Array.from({ length: count }, (_, i) => new Service(history, this.time, i));
    for (const one of this.services) for (const other of this.services) if (one !== other) one.peer(other);
    this.between = new Between(this.services);
  }

  /** Plays the history, and answers with what of the promises was broken, the first only; null: nothing. */
  async run(): Promise<string | null> {
    const { services, history } = this;
    for (const service of services) service.start();
    let at = 0;
    for (const deed of history.deeds) {
      at += deed.afterMs;
      this.time.after(at, () => this.serviceOf(deed).happen(deed));
    }
    const look = (): void => {
      for (const service of services) service.look();
      this.between.look();
      this.time.after(LOOK_EVERY_MS, look);
    };
    look();
    await this.until(this.time.now + at + history.lastMs + 1);
    for (const service of services) service.heal();
    const allEnded = (): boolean => services.every((service) => service.allEnded);
    const limit = this.time.now + END_WITHIN_MS;
    let ended = false;
    // A request that was on its way may still come meanwhile.
    do {
      ended = await this.until(limit, allEnded);
      await this.until(this.time.now + AFTERWARDS_MS);
    } while (ended && !allEnded());
    if (this.broken === null && !ended)
      return `liveness: ${services.flatMap(({ left }) => left ?? []).join('; ')}`;
    for (const service of services) await service.atEnd();
    this.between.atEnd();
    return this.broken;
  }

  private get broken(): string | null {
    return this.services.map(({ promises }) => promises.broken).find((what) => what !== null) ?? null;
  }

  /** Whom it concerns. People submit to one more than to others, so that it has jobs to give away. */
  private serviceOf({ kind, n }: Deed): Service {
    const some = kind === 'submit' && n % 4 > 0 ? 0 : (n >> 6) % this.services.length;
    return this.services[some] as Service;
  }

  private async until(limit: number, done: () => boolean = () => false): Promise<boolean> {
    let looked = 0;
    const [first] = this.services;
    while (this.broken === null) {
      if (++this.steps > MAX_STEPS * this.services.length) first?.promises.fail('9: it goes on and on');
      if (!(await this.time.step(limit))) return false;
      if (this.time.now - looked >= LOOK_EVERY_MS) {
        looked = this.time.now;
        if (done()) return true;
      }
    }
    return false;
  }
}
