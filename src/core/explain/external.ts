/**
 * What is known of a site that schedules itself, where a job is or may go: others' queue, what is taken, and how long jobs like it lately
 * waited there. Its agent tells the first two; how long ago, and whether it is silent, only the driver knows.
 */
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Job, Site } from '../model.js';
import { EligibleSites } from '../resources/eligibility.js';
import { observedFor, observedMeanS } from '../terms/observed-waits.js';
import { observedWaitS } from '../terms/waiting-there.js';
import type { PredictedStart } from './ahead.js';

/** Sites in one explanation. */
const TOLD_MAX = 3;

/** Those among the sites that hold the job, or that it could go to: of these at most three, the one that it would be sent to first. */
export function externalSites(grid: Grid, job: Job, bestSiteId: number | null): SiteEntry[] {
  const place = grid.placeOf(job.id);
  const at = place !== null && place.at !== 'ROOT' ? [place.siteId] : null;
  const { siteIds } = grid.index(EligibleSites).of(grid.requirementOf(job), job);
  return (at ?? [...siteIds].sort((a, b) => Number(b === bestSiteId) - Number(a === bestSiteId)))
    .map((siteId) => grid.siteEntry(siteId))
    .filter(({ site }) => site.load != null)
    .slice(0, TOLD_MAX);
}

/** Of a site with a load. `ageS`: since it was measured; `isStale`: its agent is silent. */
export function figuresOf(entry: SiteEntry, job: Job, { ageS, isStale }: { ageS: number; isStale: boolean }) {
  const { site, resources, handedOver } = entry;
  const load = site.load as NonNullable<typeof site.load>;
  const numbers: Record<string, number> = {
    loadAgeS: Math.max(0, Math.round(ageS)),
    othersWaiting: load.waitingJobs,
    othersWaitingCpuS: load.waitingCpuS,
    oursWaiting: handedOver.jobs,
    busyCpus: load.busy.reduce((sum, { cpus }) => sum + cpus, 0),
    siteCpus: resources.machines.reduce((sum, { machine }) => sum + machine.cpus, 0),
  };
  const said = [
    `The scheduler of site ${site.name}, as of ${spoken(numbers.loadAgeS as number)} ago: ${jobs(load.waitingJobs, 'other job')} waiting${
      load.waitingJobs === 0 ? '' : ` (${rounded(load.waitingCpuS / 3600)} CPU-hours by their limits)`
    }, ${jobs(handedOver.jobs, 'job')} of ours waiting, ${numbers.busyCpus} of ${numbers.siteCpus} CPUs in use.`,
  ];
  const observed = observedFor(site, job);
  if (observed === null) said.push('No job of ours has lately started there.');
  else {
    numbers.observedWaitS = observed.waitS;
    numbers.observedRuns = observed.runs;
    said.push(`Jobs of this size lately waited ${spoken(observed.waitS)} there (mean of ${observed.runs}).`);
  }
  if (isStale) said.push('These figures are outdated: the agent of the site is silent.');
  return { numbers, message: said.join(' ') };
}

/** When a job of the site's queue, or a new one, starts by what was observed; null: nothing was. */
export function startByWaits(entry: SiteEntry, job: Job, now: number): PredictedStart | null {
  const waitS = observedWaitS(entry, job);
  if (waitS === null) return null;
  return {
    siteId: entry.site.id,
    at: now + waitS,
    // Of those that are not handed over yet, nobody knows how long they will wait here before.
    expected: entry.queue.length === 0,
    ...{ allocations: [], pools: [] },
    plannedDuration: (job.estimateS * job.benchmark) / entry.resources.bestBenchmark,
  };
}

/** What a simulation takes for what the scheduler of a site would do. */
export interface SimulatedWaits {
  message: string;
  /** Observed; 0: none, and jobs begin as soon as there is room. */
  runs: number;
  /** Of these; null: there are none. */
  waitMeanS: number | null;
}

/**
 * `seenS`: how far back starts are looked at. `ageS`: since the load was measured; null: none ever was. `isStale`: the agent is silent.
 */
export function simulatedWaits(
  { name, load }: Pick<Site, 'name' | 'load'>,
  { seenS, ageS, isStale }: { seenS: number; ageS: number | null; isStale: boolean },
): SimulatedWaits {
  const waits = load?.waits ?? [];
  const runs = waits.reduce((sum, wait) => sum + wait.runs, 0);
  const waitMeanS = load ? observedMeanS(load) : null;
  const of = `in the ${spoken(seenS)} before`;
  const said =
    load == null || ageS === null
      ? [
          `The agent of ${name} has never reported how busy it is: jobs are assumed to start there as soon as its machines have room.`,
        ]
      : waitMeanS === null
        ? [
            `No start of a job was observed at ${name} ${of} its last report, ${spoken(ageS)} ago: jobs are assumed to start there as soon as its machines have room beside other users' jobs.`,
          ]
        : [
            `Waits at ${name} are those observed ${of} its last report, ${spoken(ageS)} ago: ${jobs(runs, 'run')}, ${spokenRange(waits.map(({ waitS }) => waitS))}, by CPUs and time limit. Other users' jobs are taken to stay as they were then.`,
          ];
  if (isStale && load != null) said.push(`They are outdated: the agent of ${name} is silent.`);
  return { message: said.join(' '), runs, waitMeanS };
}

function spokenRange(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? spoken(least) : `${spoken(least)} to ${spoken(most)}`;
}

const jobs = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
const rounded = (value: number): string => String(Number(value.toPrecision(2)));

/** `40 s`, `12 min`, `3.5 h`. */
function spoken(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${rounded(seconds / 3600)} h`;
}
