/** What is promised across services that are peers: asked from outside, of all at once. */
import { meantRun, toldEpoch } from '../../src/store/rules.js';
import type { ForeignJob } from '../store/memory-federation.js';
import type { Service } from './service.js';

/** A copy, where it is. */
interface Copy extends ForeignJob {
  at: Service;
}

/** Asked from outside, of all services at once; the numbers are those of promises.ts. */
export class Between {
  constructor(private readonly services: readonly Service[]) {}

  private get copies(): Copy[] {
    return this.services.flatMap((at) =>
      [...at.store.federation.foreign.values()].map((copy) => ({ ...copy, at })),
    );
  }

  /** Whose job it is a copy of. */
  private ownerOf({ at, siteId }: Copy): Service {
    const { name } = at.store.sites.get(siteId)!;
    return this.services.find((service) => service.name === name)!;
  }

  look(): void {
    if (this.services.length < 2) return;
    const runners = new Map<string, string>();
    for (const copy of this.copies) {
      const { at, jobId, epoch } = copy;
      const { store, promises } = at;
      const started = promises.startsOf(jobId);
      if (at.wasRestored) continue;
      if (epoch === null && started > 0)
        promises.fail(`2: ${at.name} runs job ${jobId}, which its owner has not granted`);
      if (started > 1)
        promises.fail(`2: ${at.name} has run job ${jobId} ${started} times, the copy of a peer's`);
      if (epoch === null) continue;
      const run = `${this.ownerOf(copy).name}/${copy.ownerJobId}/${epoch}`;
      const other = runners.get(run);
      if (other !== undefined) promises.fail(`2: run ${run} was granted to ${other} and ${at.name}/${jobId}`);
      runners.set(run, `${at.name}/${jobId}`);
      if (store.jobs.get(jobId)?.restartable) promises.fail(`2: ${at.name} would run job ${jobId} again`);
    }
  }

  /** When all has ended: what one says of a run the other has seen. */
  atEnd(): void {
    const granted = new Map<string, Copy>();
    for (const copy of this.copies) {
      const owner = this.ownerOf(copy);
      const { at, jobId, ownerJobId, epoch, told, offer } = copy;
      if (told < 2) at.promises.fail(`1: ${at.name} has not told what became of job ${jobId}`);
      if (epoch === null) continue;
      const meant = meantRun(epoch);
      granted.set(`${owner.name}/${ownerJobId}/${epoch}`, copy);
      const run = owner.store.runs.get(`${ownerJobId}/${meant.epoch}`);
      // What a restored database has forgotten.
      if (owner.wasRestored || at.wasRestored) continue;
      if (run === undefined || run.siteId !== this.siteAt(owner, at))
        owner.promises.fail(
          `2: ${at.name} was granted run ${ownerJobId}/${epoch} (offer ${offer}), which is not there`,
        );
      const here = at.store.jobs.get(jobId)!;
      if (
        run?.cause === 'MACHINE_FAILED' &&
        at.promises.startsOf(jobId) > 0 &&
        here.cause !== 'MACHINE_FAILED'
      )
        owner.promises.fail(
          `2: run ${ownerJobId}/${epoch} counts as one that has not begun, and has run at ${at.name}`,
        );
    }
    for (const service of this.services) this.ofRuns(service, granted);
    if (!this.services.some(({ wasRestored }) => wasRestored)) this.ofRepeats();
  }

  /** What may not run twice has not, wherever it ran. */
  private ofRepeats(): void {
    for (const { name, store, promises } of this.services)
      for (const { id, restartable, retry } of store.jobs.values()) {
        if (restartable || retry !== null || store.federation.foreign.has(id)) continue;
        const runs = [...store.runs.values()].filter(({ jobId }) => jobId === id);
        // Those that were stopped for another job are meant to run again.
        if (runs.some(({ cause }) => cause === 'PREEMPTED')) continue;
        const away = this.copies.filter(({ request }) => request.startsWith(`${name}/${id}/`));
        const starts = away.reduce(
          (sum, { at, jobId }) => sum + at.promises.startsOf(jobId),
          promises.startsOf(id),
        );
        if (starts > 1) promises.fail(`2: job ${id} may not run twice, and was started ${starts} times`);
      }
  }

  private siteAt(owner: Service, guest: Service): number {
    return [...owner.store.sites.values()].find(({ name }) => name === guest.name)!.id;
  }

  private ofRuns(owner: Service, granted: ReadonlyMap<string, Copy>): void {
    const { store, promises, files } = owner;
    for (const { jobId, epoch, placedBy, cause, assignedAt, siteId, endedAt } of store.runs.values()) {
      if (placedBy !== 'PEER') continue;
      if (endedAt === null) promises.fail(`1: run ${jobId}/${epoch} at a peer has no end`);
      const copy = granted.get(`${owner.name}/${jobId}/${toldEpoch(epoch, assignedAt)}`);
      const guest = this.services.find(({ name }) => name === store.sites.get(siteId)?.name)!;
      if (guest.wasRestored || cause !== 'EXITED_ZERO') continue;
      const there = copy?.at.store.jobs.get(copy.jobId);
      if (copy === undefined || there?.state !== 'COMPLETED') {
        promises.fail(`1: run ${jobId}/${epoch} ended well, and no peer has run it (${there?.state})`);
        continue;
      }
      for (const { path } of store.jobs.get(jobId)!.outputs) {
        const theirs = copy.at.files.ofRuns([{ jobId: copy.jobId, epoch: there.epoch }]);
        for (const one of theirs.filter((file) => file.path === path)) {
          const ours = files
            .ofRuns([{ jobId, epoch }])
            .find((file) => file.path === path && file.task === one.task);
          if (ours?.keptAt == null || ours.sha256 !== one.sha256)
            promises.fail(`1: file ${path} of run ${jobId}/${epoch} is not kept by its owner`);
        }
      }
    }
  }
}
