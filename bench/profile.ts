/**
 * The availability profile with promises in it: what one of its operations costs as promises grow in number. What each is
 * said to cost is in src/core/resources/profile.ts.
 */

import type { Requirement } from '../src/core/grid/requirements.js';
import type { EligibleMachines } from '../src/core/grid/site-resources.js';
import { DEFAULT_POLICY, Grid, type Policy, RandomStream, siteCycle } from '../src/core/index.js';
import { SitePass } from '../src/core/local/pass.js';
import type { Opening } from '../src/core/resources/future.js';
import { holdOf } from '../src/core/resources/placement.js';
import { Profile } from '../src/core/resources/profile.js';
import { addSite, anyJob } from './core.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';

const SIZES = [1_000, 10_000];
const MACHINES = 20;
const JOBS = sized(200, 20);
const ROUNDS = 9;

interface Wanted {
  requirement: Requirement;
  eligible: EligibleMachines;
  work: number;
}

/** A site whose machines are promised to so many jobs, each in its earliest opening, and jobs that ask for one more. */
class Promising {
  private readonly grid = new Grid();
  private readonly random = new RandomStream(4, 'profile');
  private readonly profile: Profile;
  private readonly asking: Wanted[];
  private readonly found: Opening[];
  private jobs = 0;

  constructor(promises: number) {
    addSite(this.grid, 1, MACHINES, this.random);
    this.profile = new Profile(this.grid.siteEntry(1).resources, 0);
    for (let i = 0; i < promises; i++) {
      const wanted = this.next();
      this.take(wanted, this.earliest(wanted));
    }
    this.asking = Array.from({ length: JOBS }, () => this.next());
    this.found = this.asking.map((wanted) => this.earliest(wanted));
  }

  /** Seconds of finding one earliest opening. */
  readonly finding = (): Promise<number> => this.each((wanted) => this.earliest(wanted));

  /** Seconds of taking one and giving it back. */
  readonly taking = (): Promise<number> =>
    this.each((wanted, i) => {
      const opening = this.found[i] as Opening;
      this.take(wanted, opening);
      this.profile.give(hold(wanted, opening), opening.at, opening.end);
    });

  private async each(operation: (wanted: Wanted, i: number) => void): Promise<number> {
    return (await seconds(() => this.asking.forEach(operation))) / JOBS;
  }

  private next(): Wanted {
    const job = { ...anyJob(++this.jobs, this.random), licenses: [] };
    const requirement = this.grid.requirementOf(job);
    const eligible = this.grid.siteEntry(1).resources.eligible(requirement.signature);
    return { requirement, eligible, work: job.estimateS * job.benchmark };
  }

  private earliest({ requirement, eligible, work }: Wanted): Opening {
    const found = this.profile.earliestOpening(requirement, eligible, work);
    if (found === null) throw new Error('the largest machine has room for every job, some time');
    return found;
  }

  private take(wanted: Wanted, opening: Opening): void {
    this.profile.take(hold(wanted, opening), opening.at, opening.end);
  }
}

const hold = ({ requirement }: Wanted, { placement, pools }: Opening) =>
  holdOf(requirement, placement, pools);

const OPERATIONS = {
  earliest: 'find the earliest opening of one more job',
  take: 'take an opening and give it back',
} as const;
type Operation = keyof typeof OPERATIONS;
const nameOf = (operation: Operation, size: number): string => `profile-${operation}-${size}`;
const operations = Object.keys(OPERATIONS) as Operation[];

const WALK = 'profile-walk';

/** A site that is full, and a job that waits: when does it start? Answered so many times in two ways. */
async function walkAgainstProfile(): Promise<Measured> {
  const grid = new Grid();
  const random = new RandomStream(5, 'walk');
  addSite(grid, 1, MACHINES, random);
  for (let id = 1; id <= JOBS; id++)
    grid.placeAtSite({ ...anyJob(id, random), licenses: [], priority: 0 }, 1);
  const policy: Policy = { ...DEFAULT_POLICY, local: { kind: 'first-fit', ageBoundS: null } };
  for (const start of siteCycle(grid, 1, { now: 0, policy, policyVersion: 1, maxStarts: JOBS }).starts)
    grid.startRun({ ...start, epoch: 1, start: 0, plannedEnd: start.plannedDuration });
  const entry = grid.siteEntry(1);
  const { resources } = entry;
  const pass = new SitePass(grid, entry).begin(0, 1, false);
  const asking = [...entry.queue.slots()].map((slot): Wanted => {
    const requirement = pass.requirement(slot);
    return { requirement, eligible: pass.eligible(requirement), work: pass.work(slot) };
  });
  const walk = () => {
    for (const { requirement, eligible, work } of asking)
      pass.free.earliestOpening(requirement, eligible, work);
  };
  const profile = () => {
    for (const { requirement, eligible, work } of asking)
      Profile.of(resources, 0).earliestOpening(requirement, eligible, work);
  };
  return sideBySide(
    {
      name: WALK,
      unit: 's',
      aim: null,
      what: `the first start of one job at a site with ${resources.runs.length} runs, ${asking.length} times, by walking over their planned ends as EASY does; against a profile made of them`,
    },
    ROUNDS,
    () => seconds(walk),
    () => seconds(profile),
  );
}

export const profileBench: Bench = {
  names: [...SIZES.flatMap((size) => operations.map((operation) => nameOf(operation, size))), WALK],
  async run(only) {
    const results: Measured[] = [];
    for (const size of SIZES) {
      const wanted = operations.filter((operation) => only(nameOf(operation, size)));
      if (wanted.length === 0) continue;
      const large = new Promising(size);
      const small = new Promising(size / 10);
      for (const operation of wanted) {
        const of = (one: Promising) => (operation === 'earliest' ? one.finding : one.taking);
        results.push(
          await sideBySide(
            {
              name: nameOf(operation, size),
              unit: 's',
              aim: null,
              what: `${OPERATIONS[operation]} in the availability profile of ${MACHINES} machines with ${size} promises; against ${size / 10} (ratio 10: linear)`,
            },
            ROUNDS,
            of(large),
            of(small),
          ),
        );
      }
    }
    if (only(WALK)) results.push(await walkAgainstProfile());
    return results;
  },
};
