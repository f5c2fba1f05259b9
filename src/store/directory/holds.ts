/** Maintenance windows and reservations. */
import { MAX } from '../../platform/limits.js';
import { TIMES_SHOWN } from '../constants.js';
import {
  type Admission,
  admitHold,
  cpuHours,
  type HoldFacts,
  type NewHold,
  reservedCpuHours,
} from '../holds.js';
import { instant, json, plain } from '../read-rows.js';
import type { HoldRow } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, found, Refusal, type Transaction, unique } from './changes.js';
import { lockSite } from './sites.js';

/** What became of a hold, or would. */
export interface HoldOutcome extends Omit<Admission, 'fault'> {
  /** null: of a dry run, or refused for the sake of what it names. */
  hold: HoldRow | null;
}

export const holdChanges = (change: Changes) => ({
  /**
   * Under the lock of the site, so that nothing starts there meanwhile. `bounded`: its CPU-hours count for what a user may reserve at the
   * site. `dry`: says what would be in the way, and does nothing.
   */
  createHold(
    hold: NewHold,
    { now, dry, bounded }: { now: number; dry: boolean; bounded: boolean },
    actor: Actor,
  ) {
    return change(actor, 'reserve', async (tx, note): Promise<HoldOutcome> => {
      const site = await lockSite(tx, hold.siteId);
      const facts = await factsOf(tx, hold.siteId);
      const { fault, ...admission } = admitHold(hold, facts, now);
      if (fault !== null) throw conflict(fault);
      if (bounded) {
        const reserved = reservedCpuHours(facts, hold.userId, now);
        const asked = cpuHours(admission.machines, hold.times, facts.machines, now);
        const { reservableCpuHours: limit } = site;
        if (reserved + asked > limit)
          throw new Refusal(
            'LIMIT_EXCEEDED',
            `${hours(asked)} CPU-hours requested and ${hours(reserved)} already reserved; site ${site.name} allows ${limit} per user`,
          );
      }
      const open = await tx.hold.count({ where: { siteId: hold.siteId, endedAt: null } });
      if (open >= MAX.siteHolds)
        throw new Refusal(
          'LIMIT_EXCEEDED',
          `site ${site.name} has ${open} holds; accepted: up to ${MAX.siteHolds}`,
        );
      const ahead = facts.open.length + hold.times.length;
      if (ahead > MAX.siteHoldTimes)
        throw new Refusal(
          'LIMIT_EXCEEDED',
          `holds of site ${site.name} would have ${ahead} occurrences; accepted: up to ${MAX.siteHoldTimes}`,
        );
      const refused =
        admission.holds.length > 0 || (hold.onConflict === 'REFUSE' && admission.runs.length > 0);
      if (dry || refused) return { ...admission, hold: null };
      const { kind, name, siteId, userId, onConflict, reason, times, recurrence, idleS, userIds } = hold;
      const made = await unique(`there is already a reservation or maintenance window named ${name}`, () =>
        tx.hold.create({
          data: {
            ...{ kind, name, siteId, userId, onConflict, reason, idleS, userIds: [...userIds] },
            ...(recurrence !== null && { recurrence: json(recurrence), madeAt: instant(now) }),
            ...(admission.machines !== null && { machines: json(admission.machines) }),
            times: {
              createMany: {
                data: times.map(({ from, to }) => ({
                  fromAt: instant(from),
                  toAt: to === null ? null : instant(to),
                })),
              },
            },
          },
        }),
      );
      const after = plain(made);
      await note(`hold_${after.id}`, null, { ...after, times: times.slice(0, TIMES_SHOWN) });
      return { ...admission, hold: after };
    });
  },

  /** What has begun ends now; what has not is gone. */
  cancelHold(id: number, now: number, actor: Actor) {
    return change(actor, 'cancelHold', async (tx, note): Promise<HoldRow> => {
      const { siteId } = found('hold', id, await tx.hold.findUnique({ where: { id } }));
      await lockSite(tx, siteId);
      const before = plain(await tx.hold.findUniqueOrThrow({ where: { id } }));
      if (before.endedAt !== null) throw conflict(`hold_${id} has ended`);
      await tx.holdTime.updateMany({ where: { holdId: id, over: false }, data: { over: true } });
      const after = plain(await tx.hold.update({ where: { id }, data: { endedAt: instant(now) } }));
      await note(`hold_${id}`, before, after);
      return after;
    });
  },
});

const hours = (value: number): string => String(Math.round(value * 10) / 10);

/** The site as an admission finds it, behind its lock. */
async function factsOf(tx: Transaction, siteId: number): Promise<HoldFacts> {
  const [{ facts }] = await tx.$queryRaw<[{ facts: HoldFacts }]>(sql`
SELECT json_build_object(
  'machines', (SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'available', state = 'UP',
        'has', resources || jsonb_build_object('cpus', cpus, 'memoryMb', memory_mb)) ORDER BY id), '[]')
     FROM machines WHERE site_id = ${siteId}::integer AND removed_at IS NULL),
  'open', (SELECT coalesce(json_agg(json_build_object('holdId', h.id, 'kind', h.kind, 'userId', h.user_id, 'machines', h.machines,
        'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at)) ORDER BY t.id), '[]')
     FROM holds h JOIN hold_times t ON t.hold_id = h.id AND NOT t.over WHERE h.site_id = ${siteId}::integer AND h.ended_at IS NULL),
  'runs', (SELECT coalesce(json_agg(json_build_object('jobId', r.job_id, 'machineIds', r.machine_ids, 'machineTasks', r.machine_tasks,
        'amounts', coalesce(r.resources_per_task, '{}') || jsonb_build_object('cpus', r.cpus_per_task, 'memoryMb', r.memory_mb_per_task), 'alone', r.whole_cpus IS NOT NULL OR r.keeps_machines,
        'until', extract(epoch FROM coalesce(r.started_at, r.assigned_at)) + j.run_time_limit_s) ORDER BY r.job_id), '[]')
     FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.site_id = ${siteId}::integer AND r.ended_at IS NULL)) AS facts`);
  return facts;
}
