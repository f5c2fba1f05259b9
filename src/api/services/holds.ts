/** Maintenance windows and reservations: who may make and cancel them, and what they would move. */
import {
  type Held,
  keepsPromises,
  localPolicyOf,
  type MovedStart,
  movedStarts,
  promisesFrom,
} from '../../core/index.js';
import { MAX } from '../../platform/limits.js';
import type { HoldOutcome } from '../../store/directory.js';
import type { HeldOf, NewHold } from '../../store/holds.js';
import { heldFromArray } from '../../store/images.js';
import type { HoldRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { atMost, clearable, plainName, reason, within } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { ReserveInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import type { ReservePayloadModel } from '../models.js';
import { amountsGiven } from '../resources.js';
import { guarded, handlesAll } from './access.js';
import { type Asker, actor, done, type ServiceParts, wakeAfter } from './parts.js';

/** Jobs that a message names. */
const NAMED_MAX = 10;

export function createHoldsService(parts: ServiceParts) {
  const { store, directory, queries, mirror, shares, limits, now } = parts;

  /** What the site has promised and would promise otherwise beside the hold, as far as that is worked out. */
  async function moved(hold: NewHold, { machines }: HoldOutcome): Promise<MovedStart[]> {
    await mirror.sync();
    const { grid } = mirror;
    const policy = mirror.policy.document;
    const entry = grid.sites.find(({ site }) => site.id === hold.siteId);
    if (entry === undefined) return [];
    const local = localPolicyOf(entry.site, policy);
    if (keepsPromises(local)) {
      const { promises } = await store.promises(hold.siteId);
      grid.keepMemory(hold.siteId, promises && promisesFrom(grid, hold.siteId, local, promises));
    }
    // Ids of stored ones are above 0.
    const held = hold.times.map(
      ({ from, to }, i): Held => heldFromArray([-1 - i, hold.siteId, hold.kind, machines, from, to, -1]),
    );
    return movedStarts(grid, entry, held, { now: now(), policy }).slice(0, MAX.heldShown);
  }

  return guarded({
    async holds(
      _viewer: Viewer,
      { site, ended, first, after }: ForwardArguments & { site?: string | null; ended: boolean },
    ): Promise<Connection<HoldRow>> {
      const size = pageSize('first', first, limits);
      const behind = after ? decodeCursor('after', after, 'hold', ['number'])[0] : 0;
      const siteId = site ? localId('site', site, 'site') : null;
      const rows = await queries.holds(siteId, ended, behind, size + 1);
      return connection(rows, size, ({ id }) => encodeCursor('hold', [id]), { continued: behind > 0 });
    },

    async reserve(
      viewer: Viewer,
      input: ReserveInput,
      dryRun: boolean,
      { requestId, ...asker }: Omit<Asker, 'viewer'> & { requestId: string },
    ): Promise<ReservePayloadModel> {
      const hold = holdOf(viewer, input, now());
      const bounded = !handlesAll(viewer);
      const known = dryRun ? await admit(true) : null;
      const starts = known && (await shares.explain({ viewer, ...asker }, () => moved(hold, known)));
      const outcome = known ?? (await admit(false));
      if (!dryRun && outcome.hold === null) throw inTheWay(outcome);
      if (!dryRun) await wakeAfter(parts, { of: 'MACHINE', siteId: hold.siteId });
      return { ...outcome, moved: starts ?? [] };

      async function admit(dry: boolean): Promise<HoldOutcome> {
        return done(await directory.createHold(hold, { now: now(), dry, bounded }, actor(viewer, requestId)));
      }
    },

    async cancelHold(viewer: Viewer, id: string, requestId: string): Promise<HoldRow> {
      const holdId = localId('hold', id, 'hold');
      const [hold] = await queries.holdsByIds([holdId]);
      if (!hold) throw notFound('hold', id);
      const own = hold.userId === viewer.userId && hold.kind !== 'MAINTENANCE';
      if (!own && !handlesAll(viewer))
        throw new ApiError('FORBIDDEN', `cancelHold: ${id} is another user's; only an OPERATOR can end it`);
      const ended = done(await directory.cancelHold(holdId, now(), actor(viewer, requestId)));
      await wakeAfter(parts, { of: 'MACHINE', siteId: ended.siteId });
      return ended;
    },
  });
}

/** Everything is checked but whether the site has room. */
function holdOf(viewer: Viewer, input: ReserveInput, now: number): NewHold {
  const { kind, site, name, onConflict } = input;
  if (kind === 'STANDING') throw badInput('kind', kind, 'MAINTENANCE or USER');
  if (kind === 'MAINTENANCE' && !handlesAll(viewer))
    throw new ApiError('FORBIDDEN', 'reserve: only an OPERATOR can make a maintenance window');
  if (onConflict === 'PREEMPT')
    throw badInput('onConflict', onConflict, 'REFUSE or AFTER_JOBS: runs cannot be preempted yet');
  const from = Math.max(now, input.from ? input.from.getTime() / 1000 : now);
  const to = input.to ? input.to.getTime() / 1000 : null;
  if (to === null && !handlesAll(viewer))
    throw badInput('to', null, 'a time: only an OPERATOR can leave it open');
  if (to !== null && to <= from)
    throw badInput('to', input.to, `a time behind ${new Date(from * 1000).toISOString()}`);
  return {
    kind,
    name: clearable('name', name, plainName) ?? null,
    siteId: localId('site', site, 'site'),
    userId: viewer.userId,
    held: heldOf(input),
    onConflict,
    reason: clearable('reason', input.reason, (_, text) => reason(text)) ?? null,
    times: [{ from, to }],
  };
}

function heldOf({ kind, machines, tasks, cpus, memoryMb, resources }: ReserveInput): HeldOf {
  const amounts = {
    ...amountsGiven('resources', resources, MAX.jobResources, (field, value, accepted) => {
      throw badInput(field, value, accepted);
    }),
    ...(cpus != null && { cpus: within('cpus', cpus, 1, MAX.machineCpus) }),
    ...(memoryMb != null && { memoryMb: within('memoryMb', memoryMb, 1, MAX.integer) }),
  };
  const some = Object.keys(amounts).length > 0;
  if (machines != null) {
    if (tasks != null) throw badInput('tasks', tasks, 'either machines or tasks');
    if (machines.length === 0) throw badInput('machines', machines, 'at least one machine');
    const ids = atMost('machines', machines, MAX.holdMachines).map((id) =>
      localId('machine', id, 'machines'),
    );
    return { of: 'MACHINES', machineIds: [...new Set(ids)], amounts: some ? amounts : null };
  }
  if (tasks != null) {
    if (!some) throw badInput('tasks', tasks, 'with cpus, memoryMb or resources of each');
    return { of: 'TASKS', tasks: within('tasks', tasks, 1, MAX.tasks), amounts };
  }
  if (kind !== 'MAINTENANCE' || some)
    throw badInput('machines', null, 'machines, or tasks with what each takes');
  return { of: 'SITE' };
}

/** The error that names what is in the way. */
function inTheWay({ holds, runs }: HoldOutcome): ApiError {
  const named = (type: 'hold' | 'job', ids: readonly number[]): string =>
    ids
      .slice(0, NAMED_MAX)
      .map((id) => globalId(type, id))
      .join(', ') + (ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : '');
  const parts = [
    ...(holds.length > 0 ? [`${named('hold', holds)} would share machines with it`] : []),
    ...(runs.length > 0
      ? [`${named('job', runs)} may still run when it begins (onConflict AFTER_JOBS lets them end)`]
      : []),
  ];
  return new ApiError('CONFLICT', `reserve: ${parts.join('; ')}`);
}
