/** Policies: versioned, append-only. And what-ifs about them, as people ask for them and call them off. */
import type { Policy as PolicyDocument } from '../../core/policy.js';
import { instant, json, plain } from '../read-rows.js';
import type { PolicyRow, SimulationRow } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, found, isUniqueViolation, Refusal } from './changes.js';
import { lockUser } from './users.js';

export interface NewPolicy {
  /** Checked already (core/policy.ts, parsePolicy). */
  document: PolicyDocument;
  expectedVersion: number;
  reason: string;
  revertsTo?: number | null;
}

export interface NewSimulation {
  userId: number;
  /** Checked already (core/policy.ts, parsePolicy). */
  candidate: PolicyDocument;
  /** Of the jobs' submission, epoch seconds: from (included) to (not included); null with a trace. */
  window: { from: number; to: number } | null;
  /** Text in a workload format; null with a window. */
  trace: string | null;
  /** Compare whatever the distance to what happened. */
  acceptDistance: boolean;
  reason: string | null;
  now: number;
}

const latest = { orderBy: { version: 'desc' } } as const;
const withoutLease = { omit: { trace: true, worker: true, workerSeenAt: true, attempts: true } } as const;

export const policyChanges = (change: Changes) => ({
  /** Puts a policy in force as the version after `expectedVersion`, which must be the one in force. */
  addPolicy({ document, expectedVersion, reason, revertsTo = null }: NewPolicy, actor: Actor) {
    return change({ ...actor, reason }, 'updatePolicy', async (tx, note): Promise<PolicyRow> => {
      const stale = (current: number) =>
        new Refusal(
          'VERSION_CONFLICT',
          `the policy is at version ${current}; expectedVersion: ${expectedVersion}`,
        );
      const before = await tx.policy.findFirst(latest);
      if (before?.version !== expectedVersion) throw stale(before?.version ?? 0);
      const version = expectedVersion + 1;
      const data = { version, document: json(document), reason, authorId: actor.userId, revertsTo };
      const made = await tx.policy.create({ data }).catch((error: unknown) => {
        throw isUniqueViolation(error) ? stale(version) : error;
      });
      await note(`policy_${version}`, before.document, made.document);
      return plain(made);
    });
  },

  /** Asks for a what-if against the policy in force. Refused when `openMax` of the user's have not ended. */
  addSimulation({ candidate, window, now, ...given }: NewSimulation, openMax: number, actor: Actor) {
    return change(
      { ...actor, reason: given.reason },
      'simulate',
      async (tx, note): Promise<SimulationRow> => {
        // Of the user's requests at one time, one after another counts.
        await lockUser(tx, given.userId);
        const open = await tx.simulation.count({ where: { userId: given.userId, endedAt: null } });
        if (open >= openMax)
          throw conflict(`${open} simulations of this user have not ended; accepted: up to ${openMax}`);
        const { version: policyVersion } = await tx.policy.findFirstOrThrow({
          ...latest,
          select: { version: true },
        });
        const times = {
          ...(window && { from: instant(window.from), to: instant(window.to) }),
          createdAt: instant(now),
        };
        const data = { ...given, ...times, policyVersion, candidate: json(candidate) };
        const made = plain(await tx.simulation.create({ data, ...withoutLease }));
        await note(`simulation_${made.id}`, null, { candidate, ...(window ?? { trace: true }) });
        return made;
      },
    );
  },

  /** Ends a simulation that has not ended; who computes it notices within a second or so. */
  cancelSimulation(id: number, now: number, actor: Actor) {
    return change(actor, 'cancelSimulation', async (tx, note): Promise<SimulationRow> => {
      await tx.$queryRaw(sql`SELECT 1 FROM simulations WHERE id = ${id} FOR NO KEY UPDATE`);
      const { state, endedAt } = found('simulation', id, await tx.simulation.findUnique({ where: { id } }));
      if (endedAt !== null) throw conflict(`simulation ${id} has ended already: it is ${state}`);
      const data = { state: 'CANCELLED', endedAt: instant(now), trace: null } as const;
      const after = plain(await tx.simulation.update({ where: { id }, data, ...withoutLease }));
      await note(`simulation_${id}`, { state }, { state: after.state });
      return after;
    });
  },
});
