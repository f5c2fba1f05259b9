/** The load of a site that schedules itself, as its agent has reported it, and how far it can be relied on. */
import type { SiteLoad as CoreSiteLoad } from '../../core/model.js';
import { parsePolicy } from '../../core/policy.js';
import type { SiteRow } from '../../store/rows.js';
import type { SiteDetails } from '../../store/store.js';
import type { SiteLoad } from '../generated/types.js';
import type { ServiceParts } from './parts.js';
import { remembered } from './remembered.js';

const idle: Readonly<CoreSiteLoad['busy'][number]> = { machineId: 0, cpus: 0, memoryMb: 0 };
/** By load, what is busy by machine: all machines of a site are asked about together. */
const byMachine = new WeakMap<object, ReadonlyMap<number, CoreSiteLoad['busy'][number]>>();

/** What of a machine is in use, as the site's agent reported it last; null: nothing was reported. */
export function busyOf({ load }: Pick<SiteRow, 'load'>, machineId: number) {
  if (load === null) return null;
  let known = byMachine.get(load as object);
  if (known === undefined) {
    // As `reportLoad` has stored it.
    known = new Map((load as object as CoreSiteLoad).busy.map((one) => [one.machineId, one]));
    byMachine.set(load as object, known);
  }
  return known.get(machineId) ?? idle;
}

export function createSiteLoads({ queries, now }: Pick<ServiceParts, 'queries' | 'now'>) {
  /** After how long an agent is silent, by the policy in force. */
  const silentS = remembered(1, now, async () => {
    const policy = await queries.policy();
    return policy === null ? 0 : parsePolicy(policy.document).timers.agentSilentS;
  });

  /** Since the load was measured, and whether the agent is silent. */
  async function ageOf({ loadAt, agentSeenAt }: Pick<SiteRow, 'loadAt' | 'agentSeenAt'>) {
    const isStale = now() - (agentSeenAt ?? 0) > (await silentS());
    return { ageS: now() - (loadAt ?? 0), isStale };
  }

  return {
    ageOf,

    /** null: nothing was reported. */
    async loadOf(site: SiteRow): Promise<SiteLoad | null> {
      if (site.load === null || site.loadAt === null) return null;
      // As `reportLoad` has stored it.
      const { busy, ...waiting } = site.load as object as CoreSiteLoad;
      const details = site.loadDetails as SiteDetails | null;
      return {
        ...waiting,
        longestS: waiting.longestS ?? null,
        partitions: [...(details?.partitions ?? [])],
        queue: details?.queue ? [...details.queue] : null,
        calls: details?.calls ?? null,
        takesParts: waiting.takesParts ?? false,
        takesDevices: waiting.takesDevices ?? false,
        waits: [...(waiting.waits ?? [])],
        at: new Date(site.loadAt * 1000),
        stale: (await ageOf(site)).isStale,
        busyCpus: busy.reduce((sum, { cpus }) => sum + cpus, 0),
        busyMemoryMb: busy.reduce((sum, { memoryMb }) => sum + memoryMb, 0),
      };
    },
  };
}
