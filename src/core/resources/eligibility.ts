/**
 * Which sites can take jobs of a class (two-level.md: "up, and with a machine that satisfies the job's requirements and
 * licenses"), and why the others cannot.
 */
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import { type EligibleMachines, tasksIn } from '../grid/site-resources.js';
import type { SiteState } from '../model.js';
import { ReasonCode, type WaitingReason } from '../reasons.js';
import { type FreeResources, hasCopies } from './free.js';

export interface Eligibility {
  /** Indices into the grid's sites in stable order, and their ids. */
  readonly indices: readonly number[];
  readonly siteIds: readonly number[];
  /** By site id. */
  readonly ineligible: Readonly<Record<number, WaitingReason>>;
  /** Where no site is eligible: why its jobs wait. */
  readonly waiting: WaitingReason | null;
}

/** Answers kept at most. */
const KEPT = 10_000;

/** The eligible sites of each class, worked out once for each topology of a grid. */
export class EligibleSites {
  private topology = -1;
  private readonly known = new Map<Requirement, Eligibility>();

  constructor(private readonly grid: Grid) {}

  of(requirement: Requirement): Eligibility {
    const { grid, known } = this;
    if (this.topology !== grid.topology || known.size > KEPT) {
      this.topology = grid.topology;
      known.clear();
    }
    let found = known.get(requirement);
    if (found === undefined) {
      found = eligibilityOf(requirement, grid.sites);
      known.set(requirement, found);
    }
    return found;
  }
}

function eligibilityOf(requirement: Requirement, sites: readonly SiteEntry[]): Eligibility {
  const indices: number[] = [];
  const siteIds: number[] = [];
  const ineligible: Record<number, WaitingReason> = {};
  sites.forEach((entry, i) => {
    const reason = whyIneligible(requirement, entry);
    if (reason !== null) ineligible[entry.site.id] = reason;
    else {
      indices.push(i);
      siteIds.push(entry.site.id);
    }
  });
  const waiting = indices.length === 0 ? whyNoSite(requirement, sites) : null;
  return { indices, siteIds, ineligible, waiting };
}

function whyNoSite(requirement: Requirement, sites: readonly SiteEntry[]): WaitingReason {
  if (!sites.some(({ site }) => site.state === 'UP')) return ReasonCode.NO_SITE_UP;
  return whyNowhere(requirement, sites) ?? ReasonCode.NO_ELIGIBLE_SITE;
}

/** Why a site that is not up takes and starts nothing; null for one that is. */
export const whyNotUp = (state: SiteState): 'SITE_DOWN' | 'SITE_DRAINING' | null =>
  state === 'UP' ? null : state === 'DOWN' ? ReasonCode.SITE_DOWN : ReasonCode.SITE_DRAINING;

/** Why a site cannot take jobs of the class, null when it can. Running jobs do not matter here. */
function whyIneligible(requirement: Requirement, { site, resources }: SiteEntry): WaitingReason | null {
  return whyNotUp(site.state) ?? whyNeverFits(requirement, resources.eligible(requirement.signature));
}

/** Why not even the idle machines could run the class, null when they could. */
export function whyNeverFits(requirement: Requirement, eligible: EligibleMachines): WaitingReason | null {
  for (const pools of eligible.pools) {
    if (!pools.some((pool) => pool.license.copies > 0)) return ReasonCode.NO_LICENSE_AT_SITE;
  }
  return hasRoom(requirement, eligible) ? null : ReasonCode.NO_MACHINE_NOW;
}

/** Whether the machines, idle, have room for all tasks. */
function hasRoom(requirement: Requirement, eligible: EligibleMachines): boolean {
  if (requirement.cpusPerTask > eligible.mostCpus || requirement.memoryMbPerTask > eligible.mostMemoryMb)
    return false;
  let tasks = 0;
  for (const { machine } of eligible.machines) {
    const room = tasksIn(requirement, machine.cpus, machine.memoryMb);
    tasks += eligible.shared ? Math.min(1, room) : room;
    if (tasks >= requirement.tasks) return true;
  }
  return false;
}

/**
 * Why no site of the grid could ever run the class, whatever its state: only other machines or licenses would help.
 * Null when some site could.
 */
export function whyNowhere(
  requirement: Requirement,
  sites: readonly Pick<SiteEntry, 'resources'>[],
): WaitingReason | null {
  const bare = { ...requirement, cpusPerTask: 1, memoryMbPerTask: 0, tasks: 1 };
  const { signature } = requirement;
  const platform = {
    ...signature,
    licenses: [],
    key: JSON.stringify([signature.os, signature.architecture]),
  };
  const met = { platform: false, licenses: false, cpus: false, memory: false };
  for (const { resources } of sites) {
    const ever = resources.everEligible(signature);
    if (whyNeverFits(requirement, ever) === null) return null;
    const ofPlatform = resources.everEligible(platform);
    met.platform ||= hasRoom(bare, ofPlatform);
    met.licenses ||= whyNeverFits(bare, ever) === null;
    met.cpus ||= hasRoom({ ...requirement, memoryMbPerTask: 0 }, ofPlatform);
    met.memory ||= hasRoom(
      {
        ...bare,
        memoryMbPerTask: requirement.memoryMbPerTask,
        tasks: requirement.tasks,
      },
      ofPlatform,
    );
  }
  if (!met.platform) return ReasonCode.NEVER_FITS_PLATFORM;
  if (!met.licenses) return ReasonCode.NEVER_FITS_LICENSES;
  if (!met.cpus) return ReasonCode.NEVER_FITS_CPUS;
  if (!met.memory) return ReasonCode.NEVER_FITS_MEMORY;
  return ReasonCode.NEVER_FITS_TOGETHER;
}

/** Which resource the class lacks now, null when it fits. */
export function whyBusy(
  requirement: Requirement,
  eligible: EligibleMachines,
  free: FreeResources,
): ReasonCode | null {
  const { cpusPerTask, memoryMbPerTask, tasks } = requirement;
  const { machines, shared } = eligible;
  let byCpus = 0;
  let byBoth = 0;
  for (let i = 0; i < machines.length && byBoth < tasks; i++) {
    const { position } = machines[i] as (typeof machines)[number];
    const cpus = free.cpus[position] as number;
    const memoryMb = free.memoryMb[position] as number;
    if (cpus < cpusPerTask) continue;
    byCpus += shared ? 1 : Math.floor(cpus / cpusPerTask);
    if (memoryMb >= memoryMbPerTask) byBoth += shared ? 1 : tasksIn(requirement, cpus, memoryMb);
  }
  if (byCpus < tasks) return shared ? ReasonCode.MAX_TASKS_REACHED : ReasonCode.CPUS_BUSY;
  if (byBoth < tasks) return ReasonCode.MEMORY_BUSY;
  return hasCopies(eligible, free) ? null : ReasonCode.LICENSES_BUSY;
}
