/**
 * What the machines of the sites add up to: "processing power" in job-ratio.md, "site power" in diana.md. Worked out once for
 * each signature in a pass, for all sites.
 */

import type { Signature } from '../grid/requirements.js';
import type { MachineState, SiteResources } from '../grid/site-resources.js';
import { cpusOf, type Job } from '../model.js';

/** Work of a job over all its processors, in units of power·seconds: divided by a site's power it is seconds. */
export const workOf = (job: Job): number => job.estimateS * job.benchmark * cpusOf(job);

/** Σ CPUs·benchmark. */
export const powerOf = (machines: readonly MachineState[]): number =>
  machines.reduce((sum, { machine }) => sum + machine.cpus * machine.benchmark, 0);

/**
 * Share of the CPUs of the available machines that live runs hold, or tasks share, or that the site's own scheduler has given away, 0 to 1; 0 for a site without any.
 */
export function busyShare({ machines, busyCpus }: Pick<SiteResources, 'machines' | 'busyCpus'>): number {
  let cpus = 0;
  let used = busyCpus;
  for (const { machine, usedCpus } of machines) {
    if (!machine.available) continue;
    cpus += machine.cpus;
    used += Math.min(usedCpus, machine.cpus);
  }
  return cpus === 0 ? 0 : Math.min(1, used / cpus);
}

/** Of the available machines that are able to run jobs of a signature, a value for each site. */
export interface Powers {
  /** Σ CPUs·benchmark. */
  total: Float64Array;
  /** The mean benchmark of a CPU; 0 for none. */
  benchmark: Float64Array;
}

export class SitePowers {
  private readonly bySignature = new Map<Signature, Powers>();

  constructor(private readonly sites: readonly { resources: SiteResources }[]) {}

  /** By position in the stable site order. */
  of(signature: Signature): Powers {
    let powers = this.bySignature.get(signature);
    if (powers === undefined) {
      powers = this.add(signature);
      this.bySignature.set(signature, powers);
    }
    return powers;
  }

  private add(signature: Signature): Powers {
    const { length } = this.sites;
    const powers = { total: new Float64Array(length), benchmark: new Float64Array(length) };
    this.sites.forEach(({ resources }, i) => {
      const { machines } = resources.eligible(signature);
      const cpus = machines.reduce((sum, { machine }) => sum + machine.cpus, 0);
      const total = powerOf(machines);
      powers.total[i] = total;
      powers.benchmark[i] = cpus === 0 ? 0 : total / cpus;
    });
    return powers;
  }
}
