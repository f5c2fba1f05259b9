/**
 * Which sites can take jobs of a class (two-level.md: "up, and with a machine that satisfies the job's requirements and
 * licenses"), and why the others cannot.
 */
import type { SiteState } from '../model.js';
import { WaitingReason } from '../reasons.js';
import type { Requirement } from './requirements.js';
import { type Able, type SiteResources, tasksIn } from './site-resources.js';

export interface Eligibility {
  /** The topology of the grid for which this holds. */
  topology: number;
  /** Indices into the grid's sites in stable order, and their ids. */
  indices: number[];
  siteIds: number[];
  /** By site id. */
  ineligible: Record<number, WaitingReason>;
  /** Where no site is eligible: why its jobs wait. */
  waiting: WaitingReason | null;
}

/** What `eligibilityOf` wants to know of a site. */
export interface SiteView {
  site: { id: number; state: SiteState };
  resources: SiteResources;
}

/** The eligible sites for a class, remembered until the topology changes. */
export function eligibilityOf(
  requirement: Requirement,
  sites: readonly SiteView[],
  topology: number,
): Eligibility {
  if (requirement.eligibility?.topology === topology) return requirement.eligibility;
  const found: Eligibility = {
    topology,
    indices: [],
    siteIds: [],
    ineligible: {},
    waiting: null,
  };
  for (let i = 0; i < sites.length; i++) {
    const { site, resources } = sites[i] as SiteView;
    const reason = whyIneligible(requirement, site.state, resources);
    if (reason !== null) found.ineligible[site.id] = reason;
    else {
      found.indices.push(i);
      found.siteIds.push(site.id);
    }
  }
  if (found.indices.length === 0) found.waiting = whyNoSite(requirement, sites);
  requirement.eligibility = found;
  return found;
}

function whyNoSite(requirement: Requirement, sites: readonly SiteView[]): WaitingReason {
  if (!sites.some(({ site }) => site.state === 'UP')) return WaitingReason.NO_SITE_UP;
  return whyNowhere(requirement, sites) ?? WaitingReason.NO_ELIGIBLE_SITE;
}

/** Why a site cannot take jobs of the class, null when it can. Running jobs do not matter here. */
export function whyIneligible(
  requirement: Requirement,
  state: SiteState,
  resources: SiteResources,
): WaitingReason | null {
  if (state === 'DOWN') return WaitingReason.SITE_DOWN;
  if (state === 'DRAINING') return WaitingReason.SITE_DRAINING;
  return whyNeverFits(requirement, resources.able(requirement.signature));
}

/** Why not even the idle machines of `able` could run the class, null when they could. */
export function whyNeverFits(requirement: Requirement, able: Able): WaitingReason | null {
  for (const pools of able.pools) {
    if (!pools.some((pool) => pool.license.copies > 0)) return WaitingReason.NO_LICENSE_HERE;
  }
  return hasRoom(requirement, able) ? null : WaitingReason.NO_MACHINE_NOW;
}

/** Whether the machines, idle, have room for all tasks. */
export function hasRoom(requirement: Requirement, able: Able): boolean {
  if (requirement.cpusPerTask > able.mostCpus || requirement.memoryMbPerTask > able.mostMemoryMb)
    return false;
  let tasks = 0;
  for (const { machine } of able.machines) {
    const room = tasksIn(requirement, machine.cpus, machine.memoryMb);
    tasks += able.shared ? Math.min(1, room) : room;
    if (tasks >= requirement.tasks) return true;
  }
  return false;
}

/**
 * Why no site of the grid could ever run the class, whatever its state: only other machines or licenses would help.
 * Null when some site could.
 */
export function whyNowhere(requirement: Requirement, sites: readonly SiteView[]): WaitingReason | null {
  const bare = { ...requirement, cpusPerTask: 1, memoryMbPerTask: 0, tasks: 1 };
  const { signature } = requirement;
  const platform = {
    ...signature,
    licenses: [],
    key: JSON.stringify([signature.os, signature.architecture]),
  };
  const met = { platform: false, licenses: false, cpus: false, memory: false };
  for (const { resources } of sites) {
    const able = resources.everAble(signature);
    if (whyNeverFits(requirement, able) === null) return null;
    const ofPlatform = resources.everAble(platform);
    met.platform ||= hasRoom(bare, ofPlatform);
    met.licenses ||= whyNeverFits(bare, able) === null;
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
  if (!met.platform) return WaitingReason.NEVER_FITS_PLATFORM;
  if (!met.licenses) return WaitingReason.NEVER_FITS_LICENSES;
  if (!met.cpus) return WaitingReason.NEVER_FITS_CPUS;
  if (!met.memory) return WaitingReason.NEVER_FITS_MEMORY;
  return WaitingReason.NEVER_FITS_TOGETHER;
}
