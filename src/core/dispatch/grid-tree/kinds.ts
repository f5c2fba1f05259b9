/** Classes of jobs and kinds of machines as the tree knows them, kept from cycle to cycle: each is worked out once. */
import { amountOf, MEMORY } from '../../grid/amounts.js';
import type { Grid, SiteEntry } from '../../grid/grid.js';
import type { Requirement as GridRequirement, Signature } from '../../grid/requirements.js';
import { labelsOf, runsLicense } from '../../grid/site-resources.js';
import {
  kindKey,
  type MachineKind,
  type Preference,
  preference,
  type Requirement,
  requirement,
} from '../../grid-tree/index.js';
import type { JobPreference, Machine } from '../../model.js';
import { parseAsked, satisfies } from '../../resources/constraint.js';
import { longestAt, whyNeverFits } from '../../resources/eligibility.js';
import { shareOfPower } from '../../terms/waiting-there.js';
import type { Rules } from './rules.js';

/** Kinds of machines, and how many there are of each. */
export type CountedKinds = readonly { kind: MachineKind; count: number }[];

export const siteAddress = (siteId: number): string => `site ${siteId}`;

export class TreeKinds {
  /** And by the limit that their jobs' are longer than. */
  private readonly classes = new WeakMap<GridRequirement, Map<number | null, Requirement>>();
  private readonly preferences = new WeakMap<readonly JobPreference[], readonly Preference[]>();
  /** Classes of several parts, by what the tree asks of machines for them. */
  private readonly ofParts = new Map<string, GridRequirement>();

  constructor(private readonly grid: Grid) {}

  /** The longest limit among those of sites that bound them that is shorter than a job's; null: it is too long for none of them. */
  boundBelow(limitS: number | null): number | null {
    if (limitS === null) return null;
    const bounds = this.grid.sites.map(({ site }) => longestAt(site));
    const shorter = bounds.filter((bound) => bound < limitS);
    return shorter.length === 0 ? null : Math.max(...shorter);
  }

  /** `longerThanS`: sites that allow no longer runs than that are not for its jobs. */
  classOf(of: GridRequirement, longerThanS: number | null): Requirement {
    let byBound = this.classes.get(of);
    if (byBound === undefined) {
      byBound = new Map();
      this.classes.set(of, byBound);
    }
    let found = byBound.get(longerThanS);
    if (found === undefined) {
      const asked = of.parts === null ? this.askedBy(of) : this.askedByParts(of, of.parts);
      const licenses = longerThanS === null ? asked.licenses : [...asked.licenses, LONGER + longerThanS];
      found = requirement({ ...asked, licenses });
      byBound.set(longerThanS, found);
    }
    if (of.parts !== null)
      this.ofParts.set(found.licenses.find((name) => name.startsWith(PARTS)) as string, of);
    return found;
  }

  private askedBy({ signature, tasks, cpusPerTask, task }: GridRequirement) {
    const memoryMbPerTask = amountOf(task, MEMORY);
    const resourcesPerTask = this.grid.kinds.further(task);
    return {
      ...platformOf({ ...signature, licenses: conditionsOf(signature) }),
      ...{ tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask },
    };
  }

  /** Whether all parts fit a site is no question of machines one by one: it is asked as a condition that all machines of a site satisfy, or none. */
  private askedByParts(of: GridRequirement, parts: readonly GridRequirement[]) {
    const asked = parts.map((part) => [
      ...[part.signature.key, part.tasks, part.cpusPerTask, amountOf(part.task, MEMORY)],
      ...[this.grid.kinds.further(part.task), part.spread, part.whole],
    ]);
    return { licenses: [PARTS + JSON.stringify([of.signature.key, asked])] };
  }

  preferencesOf(of: readonly JobPreference[]): readonly Preference[] {
    let found = this.preferences.get(of);
    if (found === undefined) {
      found = of.map(({ siteId, ...machine }) => preferenceOf(siteId, machine));
      this.preferences.set(of, found);
    }
    return found;
  }

  /**
   * Of the machines of a site that take jobs. `licenses`: kinds that somebody asks for, sorted.
   *
   * Decision on the paper, where a leaf's machines are its own: where a site schedules itself and others wait, a CPU is worth as much less
   * as they leave of it (`shareOfPower`), so that the portion of its branch is.
   */
  machinesOf(entry: SiteEntry, licenses: readonly string[], power: Rules['power']): CountedKinds {
    const { resources } = entry;
    const share = shareOfPower(entry);
    const tests = licenses.map((name) => this.conditionOf(name, entry));
    if (this.ofParts.size > PARTS_KEPT)
      for (const name of this.ofParts.keys()) if (!licenses.includes(name)) this.ofParts.delete(name);
    const counted = new Map<string, { kind: MachineKind; count: number }>();
    for (const { machine } of resources.machines) {
      if (!machine.available) continue;
      const kind: MachineKind = {
        ...{ os: machine.os, architecture: machine.architecture },
        licenses: licenses.filter((_, i) => tests[i]?.(machine)),
        ...{ cpus: machine.cpus, memoryMb: machine.memoryMb, resources: machine.resources ?? {} },
        ...(resources.shared ? { tasksOfJob: 1 } : {}),
        ...(power === 'BENCHMARK' || share < 1
          ? { cpuPower: (power === 'BENCHMARK' ? machine.benchmark : 1) * share }
          : {}),
      };
      const key = kindKey(kind);
      const alike = counted.get(key);
      if (alike === undefined) counted.set(key, { kind, count: 1 });
      else alike.count++;
    }
    return [...counted.values()];
  }

  private conditionOf(name: string, { site, resources }: SiteEntry): (machine: Machine) => boolean {
    if (name.startsWith(LONGER)) {
      const allows = longestAt(site) > Number(name.slice(LONGER.length));
      return () => allows;
    }
    const of = this.ofParts.get(name);
    if (of !== undefined) {
      const fits = whyNeverFits(of, resources.eligible(of.signature)) === null;
      return () => fits;
    }
    if (!name.startsWith(CONSTRAINT)) return (machine) => this.canUse(machine, name);
    const constraint = parseAsked(name.slice(CONSTRAINT.length));
    return (machine) => satisfies(labelsOf(machine, site.name), constraint);
  }

  private canUse(machine: Machine, kind: string): boolean {
    const [name, copies = '1'] = kind.split(COPIES) as [string, string?];
    const there = this.grid
      .licensePools(name)
      .filter(
        ({ license }) =>
          (license.siteId === null || license.siteId === machine.siteId) && runsLicense(machine, license.id),
      );
    return there.reduce((sum, { license }) => sum + license.copies, 0) >= Number(copies);
  }
}

/** No kind of license has these in its name. */
const CONSTRAINT = '\0where ';
const COPIES = '\0';
const PARTS = '\0parts ';
const LONGER = '\0longer ';
/** Classes of several parts; with more, those that no job asks for are forgotten. */
const PARTS_KEPT = 1_000;

/** What the tree asks of a machine by name: licenses, with the number of copies, and a constraint as if it were one, which machines that satisfy it have. */
const conditionsOf = ({ pools, constraint }: Pick<Signature, 'pools' | 'constraint'>): readonly string[] => [
  ...pools.map(({ kind, amount }) => (amount === 1 ? kind : kind + COPIES + amount)),
  ...(constraint === null ? [] : [CONSTRAINT + constraint.text]),
];

const platformOf = ({
  os,
  architecture,
  licenses,
}: Pick<Signature, 'os' | 'architecture'> & { licenses: readonly string[] }) => ({
  os: os === null ? [] : [os],
  architecture,
  licenses,
});

function preferenceOf(siteId: number | undefined, machine: Omit<JobPreference, 'siteId'>): Preference {
  const { os = null, architecture = null, licenses = [], cpusPerTask = 1, memoryMbPerTask = 0 } = machine;
  const asks = Object.keys(machine).length > 0;
  return preference({
    leaf: siteId === undefined ? null : siteAddress(siteId),
    requirement: asks
      ? requirement({ ...platformOf({ os, architecture, licenses }), cpusPerTask, memoryMbPerTask })
      : null,
  });
}
