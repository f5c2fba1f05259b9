/** The rules of diana.md. */
import { Shares } from '../data/shares.js';
import { congestionOf } from '../terms/congestion.js';
import { QuotaLedger, quotaKey } from '../terms/quota.js';
import { anyJob, type Rules } from './rule.js';

export const dianaRules: Rules = {
  diana_priorities: ({ quotas, jobs }: PrioritiesInput) => {
    const users = Object.keys(quotas);
    const ledger = new QuotaLedger();
    const counted = jobs.map(({ user, processors }) => {
      return { ...anyJob, userId: users.indexOf(user), cpusPerTask: processors };
    });
    for (const job of counted) ledger.add(job);
    const shares = new Shares();
    users.forEach((user, userId) => {
      shares.set(userId, quotas[user] as number);
    });
    const { groups } = ledger.standings(shares);
    return counted.map((job, i) => {
      const standing = groups.get(quotaKey(job));
      return {
        id: jobs[i]?.id,
        threshold: standing?.threshold,
        priority: standing?.priority,
        queue: standing?.queue,
      };
    });
  },

  diana_congested: ({ arrivalRate, serviceRate, threshold }: CongestedInput) => {
    const { value, congested } = congestionOf({ arrival: arrivalRate, service: serviceRate }, threshold);
    return { value, congested };
  },
};

interface PrioritiesInput {
  quotas: Record<string, number>;
  jobs: { id: string; user: string; processors: number }[];
}

interface CongestedInput {
  arrivalRate: number;
  serviceRate: number;
  threshold: number;
}
