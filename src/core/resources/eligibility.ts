/**
 * Which sites can take jobs of a class (two-level.md: "up, and with a machine that satisfies the job's requirements and
 * licenses"), and why the others cannot.
 */
import { type Amounts, CPUS, MEMORY, PLACES, pairsOf } from '../grid/amounts.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import { type Requirement, type Signature, signatureKey } from '../grid/requirements.js';
import {
  askedOn,
  type EligibleMachines,
  type Free,
  labelsOf,
  type MachineState,
} from '../grid/site-resources.js';
import type { Job, Site, SiteState } from '../model.js';
import { ReasonCode, type WaitingReason } from '../reasons.js';
import { shownConstraint, unsatisfiedPart } from './constraint.js';
import { areThere, hasCopies } from './licenses.js';
import {
  hasRoom,
  type LackingPart,
  lackingPart,
  lackingSpread,
  placeAnywhere,
  someInSpace,
} from './placement.js';
import type { Timeline } from './timeline.js';

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

/**
 * The eligible sites of each class, worked out once for each topology of a grid. Limits are no part of a class: where sites bound them, what
 * is left for a job with a long one is worked out once for each set of sites that it is too long for.
 */
export class EligibleSites {
  private topology = -1;
  private readonly known = new Map<Requirement, Eligibility>();
  private readonly shorter = new Map<Eligibility, Map<string, Eligibility>>();
  /** Some site bounds the limits of its jobs. */
  private limited = false;

  constructor(private readonly grid: Grid) {}

  /** `job`: of the class; null: for one without a limit, which ends with the site's. */
  of(requirement: Requirement, job: Pick<Job, 'runTimeLimitS'> | null): Eligibility {
    const { grid, known } = this;
    if (this.topology !== grid.topology || known.size > KEPT) {
      this.topology = grid.topology;
      known.clear();
      this.shorter.clear();
      this.limited = grid.sites.some(({ site }) => longestAt(site) < Infinity);
    }
    let found = known.get(requirement);
    if (found === undefined) {
      found = eligibilityOf(requirement, grid.sites);
      known.set(requirement, found);
    }
    return this.limited && job !== null ? this.within(found, job.runTimeLimitS) : found;
  }

  private within(eligibility: Eligibility, limitS: number | null): Eligibility {
    const { sites } = this.grid;
    const isOut = (index: number): boolean => isTooLong((sites[index] as SiteEntry).site, limitS);
    const out = eligibility.indices.filter(isOut);
    if (out.length === 0) return eligibility;
    const key = out.join();
    let known = this.shorter.get(eligibility);
    if (known === undefined) {
      known = new Map();
      this.shorter.set(eligibility, known);
    }
    let found = known.get(key);
    if (found === undefined) {
      const indices = eligibility.indices.filter((index) => !out.includes(index));
      const ineligible = { ...eligibility.ineligible };
      for (const index of out) ineligible[(sites[index] as SiteEntry).site.id] = ReasonCode.LIMIT_TOO_LONG;
      found = {
        indices,
        siteIds: indices.map((index) => (sites[index] as SiteEntry).site.id),
        ineligible,
        waiting: indices.length === 0 ? ReasonCode.LIMIT_TOO_LONG : null,
      };
      known.set(key, found);
    }
    return found;
  }
}

/** The longest limit of a job that the site takes, as its operator has set it and its own scheduler allows; Infinity: any. */
export const longestAt = ({ maxLimitS, load }: Pick<Site, 'maxLimitS' | 'load'>): number =>
  Math.min(maxLimitS ?? Infinity, load?.longestS ?? Infinity);

/** Whether the site runs no job for as long; one without a limit gets the longest there is. */
export const isTooLong = (site: Pick<Site, 'maxLimitS' | 'load'>, limitS: number | null): boolean =>
  limitS !== null && limitS !== Infinity && limitS > longestAt(site);

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

/** Whether the site's own scheduler can be asked for the devices: for whole ones by kind and model, of whose memory it knows nothing. */
const canAskFor = (
  { devices, parts }: Pick<Requirement, 'devices' | 'parts'>,
  eligible: Pick<EligibleMachines, 'takesDevices'>,
): boolean =>
  (devices === null ||
    (eligible.takesDevices &&
      devices.requests.every(({ minMemoryMb, share }) => share === null && (minMemoryMb ?? 0) === 0))) &&
  (parts?.every((part) => canAskFor(part, eligible)) ?? true);

/** Why not even the idle machines could run the class, null when they could. */
export function whyNeverFits(requirement: Requirement, eligible: EligibleMachines): WaitingReason | null {
  if (requirement.parts !== null && !eligible.takesParts) return ReasonCode.SITE_TAKES_NO_PARTS;
  if (eligible.ownScheduler && !canAskFor(requirement, eligible)) return ReasonCode.SITE_TAKES_NO_DEVICES;
  for (const pools of eligible.pools) {
    if (!areThere(pools, ({ license }) => license.copies)) return ReasonCode.NO_LICENSE_AT_SITE;
  }
  return hasRoom(requirement, eligible) ? null : ReasonCode.NO_MACHINE_NOW;
}

/**
 * Why no site of the grid could ever run the class, whatever its state: only other machines or licenses would help.
 * Null when some site could.
 */
export function whyNowhere(
  requirement: Requirement,
  sites: readonly Pick<SiteEntry, 'resources'>[],
): WaitingReason | null {
  if (requirement.parts !== null) return whyPartsNowhere(requirement, requirement.parts, sites)?.why ?? null;
  const { signature, task, spread } = requirement;
  const anyhow = { ...requirement, spread: null, whole: false };
  const bare = { ...anyhow, tasks: 1, task: ONE_CPU, devices: null };
  const platform = without(signature, 'pools', 'constraint');
  const labeled = without(signature, 'pools');
  const unlike = spread && { ...requirement, spread: { ...spread, allAlike: [] } };
  const met = {
    ...{ platform: false, constraint: false, licenses: false, room: false, unlike: false },
    /** Some site can be asked for its devices. */
    asked: false,
    devices: requirement.devices === null,
  };
  const devicesAlone = { ...anyhow, task: ONE_CPU, devices: requirement.devices?.besides(ONE_CPU) ?? null };
  /** For each kind that is asked for, whether some site has enough of it, with a CPU for each task. */
  const asked = pairsOf(task);
  const enough = asked.map(() => false);
  for (const { resources } of sites) {
    const ever = resources.everEligible(signature);
    if (whyNeverFits(requirement, ever) === null) return null;
    met.asked ||= !ever.ownScheduler || canAskFor(requirement, ever);
    const ofPlatform = resources.everEligible(platform);
    met.platform ||= hasRoom(bare, ofPlatform);
    met.constraint ||= hasRoom(bare, resources.everEligible(labeled));
    met.licenses ||= whyNeverFits(bare, ever) === null;
    met.room ||= whyNeverFits(anyhow, ever) === null;
    met.unlike ||= unlike !== null && whyNeverFits(unlike, ever) === null;
    asked.forEach(([kind, amount], i) => {
      const alone = kind === CPUS ? [CPUS, amount] : [CPUS, 1, kind, amount];
      enough[i] ||= hasRoom({ ...anyhow, task: alone, devices: null }, ofPlatform);
    });
    met.devices ||= hasRoom(devicesAlone, ofPlatform);
  }
  if (!met.platform) return ReasonCode.NEVER_FITS_PLATFORM;
  if (!met.constraint) return ReasonCode.NEVER_FITS_CONSTRAINT;
  if (!met.licenses) return ReasonCode.NEVER_FITS_LICENSES;
  const lacking = enough.indexOf(false);
  if (lacking === -1 && !met.asked && sites.length > 0) return ReasonCode.SITE_TAKES_NO_DEVICES;
  if (lacking === -1 && !met.devices) return ReasonCode.NEVER_FITS_RESOURCES;
  if (lacking === -1 && met.unlike) return ReasonCode.NEVER_FITS_ALL_ALIKE;
  if (lacking === -1)
    return met.room ? ReasonCode.NEVER_FITS_TASKS_PER_MACHINE : ReasonCode.NEVER_FITS_TOGETHER;
  return NEVER_FITS[asked[lacking]?.[0] as number] ?? ReasonCode.NEVER_FITS_RESOURCES;
}

/** Of a job of several parts the one that fits nowhere. */
interface PartNowhere {
  readonly why: WaitingReason;
  /** null: no site takes jobs of several parts. */
  readonly part: { readonly at: number; readonly of: Requirement; readonly besideOthers: boolean } | null;
}

/** Null when some site could run all parts. A part that fits nowhere by itself goes before one that does not beside the others. */
export function whyPartsNowhere(
  { signature }: Requirement,
  parts: readonly Requirement[],
  sites: readonly Pick<SiteEntry, 'resources'>[],
): PartNowhere | null {
  const able = sites.filter(({ resources }) => resources.takesParts);
  if (able.length === 0 && sites.length > 0) return { why: ReasonCode.SITE_TAKES_NO_PARTS, part: null };
  for (const [at, of] of parts.entries()) {
    const why = whyNowhere(of, able);
    if (why !== null) return { why, part: { at, of, besideOthers: false } };
  }
  let furthest: LackingPart | null = null;
  for (const { resources } of able) {
    const lacking = lackingPart(parts, resources.everEligible(signature), null);
    if (lacking === null) return null;
    if (furthest === null || lacking.at > furthest.at) furthest = lacking;
  }
  if (furthest === null) return { why: ReasonCode.NEVER_FITS_TOGETHER, part: null };
  const { at, part: of, eligible, room } = furthest;
  const kind = of.whole ? null : lackingKind(of, eligible, { room });
  const why =
    kind === null ? ReasonCode.NEVER_FITS_TOGETHER : (NEVER_FITS[kind] ?? ReasonCode.NEVER_FITS_RESOURCES);
  return { why, part: { at, of, besideOthers: true } };
}

/** The same machines, and those that lack what is left out. */
function without(signature: Signature, ...left: ('pools' | 'constraint')[]): Signature {
  const { os, architecture } = signature;
  const pools = left.includes('pools') ? [] : signature.pools;
  const constraint = left.includes('constraint') ? null : signature.constraint;
  return {
    ...{ os, architecture, pools, constraint, avoids: null, parts: null },
    key: signatureKey(os, architecture, pools, constraint?.text ?? null),
  };
}

/** What of the constraint of a class no machine satisfies, as it could be written; null: some machine satisfies it all. */
export function unsatisfied(
  { signature: { constraint } }: Pick<Requirement, 'signature'>,
  sites: readonly Pick<SiteEntry, 'site' | 'resources'>[],
): string | null {
  if (constraint === null) return null;
  const labels = sites.flatMap(({ site, resources }) =>
    resources.machines.map(({ machine }) => labelsOf(machine, site.name)),
  );
  const part = unsatisfiedPart(constraint.parsed, labels);
  return part && shownConstraint(part);
}

const ONE_CPU: Amounts = [CPUS, 1];
const NEVER_FITS: Partial<Record<number, WaitingReason>> = {
  [CPUS]: ReasonCode.NEVER_FITS_CPUS,
  [MEMORY]: ReasonCode.NEVER_FITS_MEMORY,
};

/** Which resource the class lacks now, null when it fits. */
export function whyBusy(
  requirement: Requirement,
  eligible: EligibleMachines,
  free: Timeline,
): ReasonCode | null {
  if (requirement.parts === null) {
    const why = whyNoRoom(requirement, eligible, free);
    if (why !== null) return why;
  } else {
    const lacking = lackingPart(requirement.parts, eligible, free.room);
    if (lacking !== null)
      return whyNoRoom(lacking.part, lacking.eligible, lacking) ?? ReasonCode.RESOURCES_BUSY;
  }
  if (free.lacksDevices(requirement, eligible)) return ReasonCode.RESOURCES_BUSY;
  return hasCopies(eligible, free) ? null : ReasonCode.LICENSES_BUSY;
}

/** The same of machines alone. */
function whyNoRoom(
  requirement: Requirement,
  eligible: EligibleMachines,
  free: Pick<Free, 'room'>,
): ReasonCode | null {
  const lacking = requirement.whole ? null : lackingKind(requirement, eligible, free);
  // Where tasks share CPUs, one that could have none lacks a place.
  if (lacking === CPUS && eligible.shared && !someInSpace(eligible.machines))
    return ReasonCode.MAX_TASKS_REACHED;
  if (lacking !== null) return BUSY[lacking] ?? ReasonCode.RESOURCES_BUSY;
  if (
    requirement.devices !== null &&
    !requirement.whole &&
    placeAnywhere(requirement, eligible, free) === null
  )
    return ReasonCode.RESOURCES_BUSY;
  const together = lackingSpread(requirement, eligible, free);
  if (together === 'exclusive')
    return requirement.onlyUser === null ? ReasonCode.MACHINES_BUSY : ReasonCode.OTHER_USERS_BUSY;
  if (together === 'allAlike') return ReasonCode.ALL_ALIKE_BUSY;
  return together === null ? null : ReasonCode.TASKS_PER_MACHINE_BUSY;
}

const BUSY: Partial<Record<number, WaitingReason>> = {
  [CPUS]: ReasonCode.CPUS_BUSY,
  [MEMORY]: ReasonCode.MEMORY_BUSY,
  [PLACES]: ReasonCode.MAX_TASKS_REACHED,
};

/**
 * The first kind of resource, in the order in which the class asks for them, with which too few tasks are left that fit, each machine having
 * been narrowed by the ones before; null: all fit.
 */
export function lackingKind(
  requirement: Requirement,
  { machines, shared }: EligibleMachines,
  free: Pick<Free, 'room'>,
): number | null {
  const { tasks, task, sharedTask } = requirement;
  const all = shared ? sharedTask : task;
  /** Tasks that fit, by the kinds so far. */
  const fitting = new Array<number>(all.length / 2).fill(0);
  const last = fitting.length - 1;
  for (let m = 0; m < machines.length && (fitting[last] as number) < tasks; m++) {
    const state = machines[m] as MachineState;
    const asked = askedOn(requirement, state);
    let times = state.shared ? 1 : Infinity;
    let k = 0;
    // Beside time-shared machines there may be others, which have no places: there the order begins with the second kind.
    if (shared && !state.shared) fitting[k] = (fitting[k++] as number) + tasks;
    for (let a = 0; k <= last && times > 0; a += 2, k++) {
      const room = free.room[state.offset + (asked[a] as number)] as number;
      times = Math.min(times, Math.max(0, Math.floor(room / (asked[a + 1] as number))));
      fitting[k] = (fitting[k] as number) + times;
    }
  }
  const lacking = fitting.findIndex((fits) => fits < tasks);
  return lacking === -1 ? null : (all[lacking * 2] as number);
}
