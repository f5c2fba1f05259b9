/** The rules of two-level.md. */

import { meanOf, msPriority } from '../dispatch/two-level/priority.js';
import { leastLoaded } from '../dispatch/two-level/two-level.js';
import { ResourceKinds } from '../grid/amounts.js';
import { JobQueue } from '../grid/queue.js';
import { Requirements } from '../grid/requirements.js';
import { OwnPriorityWalk } from '../local/flexible/own-priority-walk.js';
import type { LocalWeights } from '../local/flexible/priorities.js';
import type { Job, UserClass } from '../model.js';
import { requestRatio } from '../resources/license-requests.js';
import { RankedSums } from '../structures/ranked-sums.js';
import { anyJob, type Rules } from './rule.js';

export const twoLevelRules: Rules = {
  ms_priority: (input: MsInput) => {
    const { deadline, estimate: estimateS, submit: submittedAt, userClass, licenses } = input.job;
    const job = {
      deadline,
      estimateS,
      submittedAt,
      userClass,
      licenses,
      resources: null,
      project: null,
      application: '',
    };
    const policy = {
      maxDelta: input.max,
      // The paper's own terms.
      weights: { ...input.weights, project: 0, service: 0 },
      userClassDelta: null,
      projectDelta: {},
      serviceDelta: {},
    };
    const {
      project: _,
      service: __,
      ...of
    } = msPriority(job, meanOf(input.window), input.licenseKinds, policy);
    return of;
  },

  dispatch: (input: DispatchInput) => {
    const sums = new RankedSums(input.sites.length);
    input.sites.forEach(({ queued }, site) => {
      for (const job of queued) sums.add(site, job.priority, job.estimate * job.benchmark, 1);
    });
    const loads = new Float64Array(input.sites.length);
    const counts = new Float64Array(input.sites.length);
    sums.valuesFrom(input.priority, loads);
    sums.countsFrom(input.priority, counts);
    const sites = input.sites.map(({ id, eligible }, i) => ({
      id,
      eligible,
      load: loads[i] as number,
      count: counts[i] as number,
    }));
    const eligible = sites.filter((site) => site.eligible);
    const { left } = leastLoaded(
      eligible.map((site) => site.load),
      eligible.map((site) => site.count),
    );
    return {
      load: Object.fromEntries(sites.map((site) => [site.id, site.load])),
      count: Object.fromEntries(sites.map((site) => [site.id, site.count])),
      candidates: left.map((i) => eligible[i]?.id),
    };
  },

  ls_priorities: (input: LsInput) => {
    const requirements = new Requirements(new ResourceKinds());
    const queue = new JobQueue('LOCAL', 1, null);
    const requests = new Map<string, number>();
    const slots = input.queue.map(({ licenses, submit, estimate, benchmark, deadline }, id) => {
      const job: Job = {
        ...anyJob,
        submittedAt: submit,
        estimateS: estimate,
        benchmark,
        deadline,
        id,
        licenses: [...licenses].sort(),
      };
      for (const kind of licenses) requests.set(kind, (requests.get(kind) ?? 0) + 1);
      return queue.add(job, requirements.enter(job), 0);
    });
    const walk = new OwnPriorityWalk(queue, {
      now: input.now,
      weights: input.weights,
      bestBenchmark: Math.max(...input.machines.map((machine) => machine.benchmark)),
      ratios: new Map(
        [...requests].map(([kind, jobs]) => [kind, requestRatio(jobs, input.licenseTotals[kind] ?? 0)]),
      ),
    });
    return slots.map((slot, i) => ({
      id: input.queue[i]?.id,
      ...walk.termsOf(slot),
      priority: walk.valueOf(slot),
    }));
  },
};

interface MsInput {
  max: number;
  licenseKinds: number;
  weights: { deadline: number; licenses: number; user: number };
  window: number[];
  job: {
    submit: number;
    estimate: number;
    userClass: UserClass;
    deadline: number | null;
    licenses: string[];
  };
}

interface DispatchInput {
  priority: number;
  sites: {
    id: string;
    eligible: boolean;
    queued: { priority: number; estimate: number; benchmark: number }[];
  }[];
}

interface LsInput {
  now: number;
  licenseTotals: Record<string, number>;
  machines: { id: string; benchmark: number }[];
  weights: LocalWeights;
  queue: {
    id: string;
    submit: number;
    estimate: number;
    benchmark: number;
    deadline: number | null;
    licenses: string[];
  }[];
}
