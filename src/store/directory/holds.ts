/** Maintenance windows and reservations. */
import { MAX } from '../../platform/limits.js';
import { list } from '../columns.js';
import { TIMES_SHOWN } from '../constants.js';
import { Prisma } from '../generated/client.js';
import {
  beside,
  type ChangingHold,
  type EditedTime,
  editHold,
  type HoldChange,
  type HoldEdit,
} from '../hold-changes.js';
import {
  type Admission,
  admitHold,
  cpuHours,
  type HeldMachines,
  type HeldPools,
  type HeldThere,
  type HoldFacts,
  type HoldTime,
  isRefused,
  type NewHold,
  overlaidBy,
  reservedCpuHours,
} from '../holds.js';
import { heldElsewhere, holdersElsewhere, poolsAt, poolsOfRun, untilLimit } from '../images.js';
import { holdNotices } from '../mails.js';
import { instant, json, plain } from '../read-rows.js';
import type { HoldRow, SiteRow } from '../rows.js';
import { raw, sql } from '../sql.js';
import type { KeptTime } from '../upkeep.js';
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
      await lockPools(tx, hold.siteId, hold.shared);
      const facts = await factsOf(tx, hold.siteId);
      const { fault, ...admission } = admitHold(hold, facts, now);
      if (fault !== null) throw conflict(fault);
      if (bounded) checkReserved(site, facts, { ...hold, machines: admission.machines }, now);
      const open = await tx.hold.count({ where: { siteId: hold.siteId, endedAt: null } });
      if (open >= MAX.siteHolds)
        throw new Refusal(
          'LIMIT_EXCEEDED',
          `site ${site.name} has ${open} holds; accepted: up to ${MAX.siteHolds}`,
        );
      checkTimes(site, facts, hold.times);
      if (dry || isRefused(hold.onConflict, admission)) return { ...admission, hold: null };
      const after = await insertHold(tx, hold, admission, now);
      await tellOverlaid(tx, after, overlaidBy({ ...hold, ...admission }, facts), now);
      await note(`hold_${after.id}`, null, { ...after, times: shown(hold.times) });
      return { ...admission, hold: after };
    });
  },

  /** Under the lock of the site, too. `bounded`: as of a new one. Throws TimesFault. */
  updateHold(
    id: number,
    changes: HoldChange,
    { now, bounded }: { now: number; bounded: boolean },
    actor: Actor,
  ) {
    return change(actor, 'updateHold', async (tx, note): Promise<HoldOutcome> => {
      const { siteId } = found('hold', id, await tx.hold.findUnique({ where: { id } }));
      const site = await lockSite(tx, siteId);
      const { before, kept } = await openHold(tx, id);
      await lockPools(tx, siteId, changes.shared ?? [], before.pools as object as HeldPools);
      const facts = await factsOf(tx, siteId);
      // As the directory has written them.
      const stored = before as object as Pick<
        ChangingHold,
        'machines' | 'pools' | 'recurrence' | 'onConflict'
      >;
      const edit = editHold({ ...before, ...stored, times: kept }, changes, facts, now);
      const { fault, ...admission } = edit.admission;
      if (fault !== null) throw conflict(fault);
      const others = beside(id, facts);
      if (bounded) checkReserved(site, others, { ...edit, userId: before.userId }, now);
      checkTimes(site, others, edit.times);
      if (edit.refused) return { ...admission, hold: null };
      const after = await applyEdit(tx, before, changes, edit, now);
      await writeTimes(tx, id, kept, edit.times);
      const known = overlaidBy({ kind: before.kind, ...stored, times: kept }, others);
      const overlaid = overlaidBy({ kind: before.kind, ...edit }, others);
      const fresh = overlaid.filter(({ holdId }) => known.every((one) => one.holdId !== holdId));
      await tellOverlaid(tx, after, fresh, now);
      await note(`hold_${id}`, { ...before, times: shown(kept) }, { ...after, times: shown(edit.times) });
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

const shown = (times: readonly HoldTime[]): HoldTime[] =>
  times.slice(0, TIMES_SHOWN).map(({ from, to }) => ({ from, to }));

async function insertHold(
  tx: Transaction,
  { kind, name, siteId, userId, onConflict, reason, times, recurrence, idleS, userIds }: NewHold,
  { machines, pools }: HeldThere,
  now: number,
): Promise<HoldRow> {
  return unique(`there is already a reservation or maintenance window named ${name}`, async () =>
    plain(
      await tx.hold.create({
        data: {
          ...{ kind, name, siteId, userId, onConflict, reason, idleS, userIds: [...userIds] },
          ...(recurrence !== null && { recurrence: json(recurrence), madeAt: instant(now) }),
          ...(machines !== null && { machines: json(machines) }),
          pools: json(pools),
          times: { createMany: { data: times.map(rowOf) } },
        },
      }),
    ),
  );
}

/** One that has not ended, with its times that are not over, in order. */
async function openHold(tx: Transaction, id: number): Promise<{ before: HoldRow; kept: KeptTime[] }> {
  const { times, ...row } = await tx.hold.findUniqueOrThrow({
    where: { id },
    include: { times: { where: { over: false }, orderBy: [{ fromAt: 'asc' }, { id: 'asc' }] } },
  });
  const before = plain(row);
  if (before.endedAt !== null || (times.length === 0 && before.recurrence === null))
    throw conflict(`hold_${id} has ended`);
  const kept = times.map(plain).map(({ id, fromAt, toAt }) => ({ id, from: fromAt, to: toAt }));
  return { before, kept };
}

/** Owners of reservations are told of maintenance that lies over them. */
async function tellOverlaid(
  tx: Transaction,
  { id, name }: HoldRow,
  overlaid: readonly { holdId: number; from: number }[],
  now: number,
): Promise<void> {
  if (overlaid.length === 0) return;
  const told = overlaid.map(({ holdId, from }) => ({
    holdId,
    note: `maintenance ${name ?? `hold_${id}`} closes machines of it from ${new Date(1000 * from).toISOString()} on`,
  }));
  await tx.$executeRaw(holdNotices(told, now));
}

/** A user may have reserved so many CPU-hours of the site. */
function checkReserved(
  { name, reservableCpuHours: limit }: Pick<SiteRow, 'name' | 'reservableCpuHours'>,
  others: HoldFacts,
  hold: Pick<NewHold, 'userId' | 'times'> & { machines: HeldMachines },
  now: number,
): void {
  const reserved = reservedCpuHours(others, hold.userId, now);
  const asked = cpuHours(hold.machines, hold.times, others.machines, now);
  if (reserved + asked > limit)
    throw new Refusal(
      'LIMIT_EXCEEDED',
      `${hours(asked)} CPU-hours requested and ${hours(reserved)} already reserved; site ${name} allows ${limit} per user`,
    );
}

function checkTimes({ name }: Pick<SiteRow, 'name'>, others: HoldFacts, times: readonly HoldTime[]): void {
  const ahead = others.open.length + times.length;
  if (ahead > MAX.siteHoldTimes)
    throw new Refusal(
      'LIMIT_EXCEEDED',
      `holds of site ${name} would have ${ahead} occurrences; accepted: up to ${MAX.siteHoldTimes}`,
    );
}

async function applyEdit(
  tx: Transaction,
  { id, name: named }: HoldRow,
  { name, reason, idleS, userIds, when }: HoldChange,
  { onConflict, machines, pools, recurrence }: HoldEdit,
  now: number,
): Promise<HoldRow> {
  const isRemade = when !== undefined && recurrence !== null;
  return unique(`there is already a reservation or maintenance window named ${name ?? named}`, async () =>
    plain(
      await tx.hold.update({
        where: { id },
        data: {
          ...{ ...(name !== undefined && { name }), ...(reason !== undefined && { reason }) },
          ...{ ...(idleS !== undefined && { idleS }), ...(userIds && { userIds: [...userIds] }) },
          ...{ onConflict, machines: machines === null ? Prisma.DbNull : json(machines), pools: json(pools) },
          ...(isRemade && { recurrence: json(recurrence), madeAt: instant(now) }),
          // Of times alone nobody would be told.
          revision: { increment: 1 },
        },
      }),
    ),
  );
}

const rowOf = ({ from, to }: HoldTime) => ({ fromAt: instant(from), toAt: to === null ? null : instant(to) });

/** Deletes those that are no more: they have not begun. */
async function writeTimes(
  tx: Transaction,
  holdId: number,
  before: readonly KeptTime[],
  after: readonly EditedTime[],
): Promise<void> {
  const stay = new Set(after.map(({ id }) => id));
  const gone = before.filter(({ id }) => !stay.has(id)).map(({ id }) => id);
  if (gone.length > 0) await tx.holdTime.deleteMany({ where: { id: { in: gone } } });
  for (const time of after)
    if (
      time.id !== null &&
      before.some(({ id, from, to }) => id === time.id && (from !== time.from || to !== time.to))
    )
      await tx.holdTime.update({ where: { id: time.id }, data: rowOf(time) });
  const fresh = after.filter(({ id }) => id === null);
  if (fresh.length > 0)
    await tx.holdTime.createMany({ data: fresh.map((time) => ({ holdId, ...rowOf(time) })) });
}

const hours = (value: number): string => String(Math.round(value * 10) / 10);

/** So that nothing takes any of them meanwhile, at other sites either. */
async function lockPools(
  tx: Transaction,
  siteId: number,
  shared: NewHold['shared'],
  held: HeldPools = [],
): Promise<void> {
  if (shared.length + held.length === 0) return;
  const kinds = list(
    'text',
    shared.map(({ kind }) => kind),
  );
  const ids = list(
    'integer',
    held.map(({ id }) => id),
  );
  await tx.$executeRaw(sql`
SELECT 1 FROM licenses WHERE id = ANY (${ids}) OR kind = ANY (${kinds}) AND coalesce(site_id, ${siteId}::integer) = ${siteId}::integer
 ORDER BY id FOR NO KEY UPDATE`);
}

/** The site as an admission finds it, behind its lock. */
async function factsOf(tx: Transaction, siteId: number): Promise<HoldFacts> {
  const [{ facts }] = await tx.$queryRaw<
    [{ facts: HoldFacts & { elsewhere: HoldFacts['open']; holders: HoldFacts['runs'] } }]
  >(sql`
SELECT json_build_object(
  'machines', (SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'available', state = 'UP',
        'has', resources || jsonb_build_object('cpus', cpus, 'memoryMb', memory_mb)) ORDER BY id), '[]')
     FROM machines WHERE site_id = ${siteId}::integer AND removed_at IS NULL),
  'open', (SELECT coalesce(json_agg(json_build_object('holdId', h.id, 'kind', h.kind, 'userId', h.user_id, 'machines', h.machines, 'pools', h.pools,
        'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at)) ORDER BY t.id), '[]')
     FROM holds h JOIN hold_times t ON t.hold_id = h.id AND NOT t.over WHERE h.site_id = ${siteId}::integer AND h.ended_at IS NULL),
  'runs', (SELECT coalesce(json_agg(json_build_object('jobId', r.job_id, 'machineIds', r.machine_ids, 'machineTasks', r.machine_tasks,
        'amounts', coalesce(r.resources_per_task, '{}') || jsonb_build_object('cpus', r.cpus_per_task, 'memoryMb', r.memory_mb_per_task), 'alone', (r.whole_cpus IS NOT NULL AND r.taken IS NULL) OR r.keeps_machines, 'taken', r.taken,
        'until', ${raw(untilLimit)}, 'reservationId', j.reservation_id, 'pools', ${raw(poolsOfRun)}) ORDER BY r.job_id), '[]')
     FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.site_id = ${siteId}::integer AND r.ended_at IS NULL),
  'pools', ${raw(poolsAt(String(siteId)))}, 'elsewhere', ${raw(heldElsewhere(String(siteId)))},
  'holders', ${raw(holdersElsewhere(String(siteId)))}) AS facts`);
  const { elsewhere, holders, open, runs, ...rest } = facts;
  return { ...rest, open: [...open, ...elsewhere], runs: [...runs, ...holders] };
}
