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
import { TIMES_KNOWN } from '../../store/constants.js';
import type { HoldOutcome } from '../../store/directory.js';
import type { HoldChange, WhenChange } from '../../store/hold-changes.js';
import type { HeldOf, HoldTime, NewHold } from '../../store/holds.js';
import { heldFromArray } from '../../store/images.js';
import { MADE_AHEAD_S, type Recurrence, TimesFault, timesOf } from '../../store/recurrence.js';
import type { HoldRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { atMost, clearable, patch, plainName, reason, textFault, within } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { CreateHoldInput, HoldConflict, UpdateHoldInput } from '../generated/types.js';
import { globalId, localId, parseGlobalId } from '../ids.js';
import type { ReservePayloadModel } from '../models.js';
import { amountsGiven } from '../resources.js';
import { guarded, handlesAll } from './access.js';
import { type Asker, actor, done, type ServiceParts, wakeAfter } from './parts.js';

/** Jobs that a message names. */
const NAMED_MAX = 10;

export function createHoldsService(parts: ServiceParts) {
  const { directory, queries, shares, limits, now } = parts;

  return guarded({
    async holds(
      _viewer: Viewer,
      { siteId: site, ended, first, after }: ForwardArguments & { siteId?: string | null; ended: boolean },
    ): Promise<Connection<HoldRow>> {
      const size = pageSize('first', first, limits);
      const behind = after ? decodeCursor('after', after, 'hold', ['number'])[0] : 0;
      const siteId = site ? localId('site', site, 'siteId') : null;
      const rows = await queries.holds(siteId, ended, behind, size + 1);
      return connection(rows, size, ({ id }) => encodeCursor('hold', [id]), { continued: behind > 0 });
    },

    async createHold(
      viewer: Viewer,
      input: CreateHoldInput,
      { requestId, ...asker }: Omit<Asker, 'viewer'> & { requestId: string },
    ): Promise<ReservePayloadModel> {
      const { dryRun } = input;
      const hold = { ...holdOf(viewer, input, now()), ...(await usersOf(queries, viewer, input)) };
      const bounded = !handlesAll(viewer);
      const known = dryRun ? await admit(true) : null;
      const starts = known && (await shares.explain({ viewer, ...asker }, () => movedBy(parts, hold, known)));
      const outcome = known ?? (await admit(false));
      if (!dryRun && outcome.hold === null) throw inTheWay(outcome);
      if (!dryRun) await wakeAfter(parts, { of: 'MACHINE', siteId: hold.siteId });
      return { ...outcome, moved: starts ?? [] };

      async function admit(dry: boolean): Promise<HoldOutcome> {
        return done(await directory.createHold(hold, { now: now(), dry, bounded }, actor(viewer, requestId)));
      }
    },

    async updateHold(viewer: Viewer, input: UpdateHoldInput, requestId: string): Promise<HoldRow> {
      const hold = await handled(queries, viewer, input.holdId, 'updateHold');
      const change = await changeOf(queries, viewer, hold, input);
      const bounded = !handlesAll(viewer);
      const outcome = done(
        await directory
          .updateHold(hold.id, change, { now: now(), bounded }, actor(viewer, requestId))
          .catch((error: unknown) => {
            throw asInput(error);
          }),
      );
      if (outcome.hold === null) throw inTheWay(outcome);
      await wakeAfter(parts, { of: 'MACHINE', siteId: hold.siteId });
      return outcome.hold;
    },

    async cancelHold(viewer: Viewer, id: string, requestId: string): Promise<HoldRow> {
      const hold = await handled(queries, viewer, id, 'cancelHold');
      const ended = done(await directory.cancelHold(hold.id, now(), actor(viewer, requestId)));
      await wakeAfter(parts, { of: 'MACHINE', siteId: ended.siteId });
      return ended;
    },
  });
}

/** What the site has promised and would promise otherwise beside the hold, as far as that is worked out. */
async function movedBy(
  { store, mirror, now }: Pick<ServiceParts, 'store' | 'mirror' | 'now'>,
  hold: NewHold,
  { machines, pools }: HoldOutcome,
): Promise<MovedStart[]> {
  await mirror.sync();
  const { grid } = mirror;
  const context = { now: now(), policy: mirror.policy.document };
  const entry = grid.sites.find(({ site }) => site.id === hold.siteId);
  if (entry === undefined) return [];
  const local = localPolicyOf(entry.site, context.policy);
  if (keepsPromises(local)) {
    const { promises } = await store.promises(hold.siteId);
    grid.keepMemory(hold.siteId, promises && promisesFrom(grid, hold.siteId, local, promises, context.now));
  }
  // Ids of stored ones are above 0.
  const held = hold.times
    .slice(0, TIMES_KNOWN)
    .map(
      ({ from, to }, i): Held =>
        heldFromArray([-1 - i, hold.siteId, hold.kind, machines, from, to, -1, pools]),
    );
  return movedStarts(grid, entry, held, context).slice(0, MAX.heldShown);
}

/** The hold, if the viewer may change and end it. */
async function handled(
  queries: ServiceParts['queries'],
  viewer: Viewer,
  id: string,
  operation: string,
): Promise<HoldRow> {
  const [hold] = await queries.holdsByIds([localId('hold', id, 'holdId')]);
  if (!hold) throw notFound('hold', id);
  const own = hold.userId === viewer.userId && hold.kind !== 'MAINTENANCE';
  if (!own && !handlesAll(viewer))
    throw new ApiError(
      'FORBIDDEN',
      `${operation}: ${id} is another user's; only an OPERATOR can ${operation === 'cancelHold' ? 'end' : 'change'} it`,
    );
  return hold;
}

/** Whose it is, and who else may run jobs in it. */
async function usersOf(
  queries: ServiceParts['queries'],
  viewer: Viewer,
  { kind, user, users }: CreateHoldInput,
): Promise<Pick<NewHold, 'userId' | 'userIds'>> {
  const named = atMost('users', users, MAX.holdUsers);
  if (kind === 'MAINTENANCE' && (user != null || named.length > 0))
    throw badInput('users', user ?? named, 'nobody: no jobs run in a maintenance window');
  if (user != null && !handlesAll(viewer))
    throw new ApiError('FORBIDDEN', 'createHold: only an OPERATOR can reserve for another user');
  const userId = user == null ? viewer.userId : ((await usersNamed(queries, 'user', [user]))[0] as number);
  const others = (await usersNamed(queries, 'users', named)).filter((id) => id !== userId);
  return { userId, userIds: [...new Set(others)].sort((a, b) => a - b) };
}

/** Their ids, in this order. */
async function usersNamed(
  queries: ServiceParts['queries'],
  field: string,
  named: readonly string[],
): Promise<number[]> {
  if (named.length === 0) return [];
  const faulty = named.find((one) => textFault(one, MAX.nameChars, 1) !== null);
  if (faulty !== undefined) throw badInput(field, faulty, 'name or id of a user');
  const idOf = (one: string): number | null => {
    const parsed = parseGlobalId(one);
    return parsed?.type === 'user' ? parsed.id : null;
  };
  const ids = named.flatMap((one) => idOf(one) ?? []);
  const found = await queries.usersNamed(ids, named);
  return named.map((one) => {
    const user = found.find(({ name }) => name === one) ?? found.find(({ id }) => id === idOf(one));
    if (user === undefined) throw badInput(field, one, 'name or id of a user');
    return user.id;
  });
}

/** Everything is checked but whether the site has room, and who the users are. */
function holdOf(viewer: Viewer, input: CreateHoldInput, now: number): Omit<NewHold, 'userId' | 'userIds'> {
  const { kind, siteId, name, onConflict, releaseIdleS } = input;
  if (kind === 'MAINTENANCE' && !handlesAll(viewer))
    throw new ApiError('FORBIDDEN', 'createHold: only an OPERATOR can create a maintenance window');
  mayPreempt('createHold', viewer, onConflict);
  return {
    kind,
    name: clearable('name', name, plainName) ?? null,
    siteId: localId('site', siteId, 'siteId'),
    held: heldOf(input),
    shared: sharedOf(input.shared),
    onConflict,
    reason: clearable('reason', input.reason, (_, text) => reason(text)) ?? null,
    idleS: kind === 'MAINTENANCE' || releaseIdleS == null ? null : idleOf('releaseIdleS', releaseIdleS),
    ...whenOf(viewer, input, now),
  };
}

function mayPreempt(operation: string, viewer: Viewer, onConflict: HoldConflict | null | undefined): void {
  if (onConflict === 'PREEMPT' && !handlesAll(viewer))
    throw new ApiError(
      'FORBIDDEN',
      `${operation}: only an OPERATOR can stop runs for a hold (onConflict PREEMPT)`,
    );
}

const idleOf = (field: string, value: number): number =>
  within(field, value, RELEASE_IDLE_MIN_S, MAX.integer);

/** What a job takes to begin is not idleness. */
const RELEASE_IDLE_MIN_S = 60;

/** What is to be different; what it would be in the way of, and whether its times are some, only the directory finds. */
async function changeOf(
  queries: ServiceParts['queries'],
  viewer: Viewer,
  { kind, userId }: Pick<HoldRow, 'kind' | 'userId'>,
  { holdId: _, ...input }: UpdateHoldInput,
): Promise<HoldChange> {
  const given = Object.values(input).filter((value) => value !== undefined);
  if (given.length === 0) throw badInput('input', {}, 'at least one field besides `holdId`');
  const { name, onConflict, releaseIdleS, users, machineIds, tasks, cpus, memoryMb, resources, shared } =
    input;
  for (const [field, value] of Object.entries({ onConflict, users, resources, shared }))
    if (value === null) throw badInput(field, null, 'a value; omit it to keep the current one');
  if (kind === 'MAINTENANCE' && releaseIdleS != null)
    throw badInput('releaseIdleS', releaseIdleS, 'no value: nothing of a maintenance window is released');
  if (kind === 'MAINTENANCE' && (users ?? []).length > 0)
    throw badInput('users', users, 'nobody: no jobs run in a maintenance window');
  mayPreempt('updateHold', viewer, onConflict);
  const named = users && (await usersNamed(queries, 'users', atMost('users', users, MAX.holdUsers)));
  const holds = [machineIds, tasks, cpus, memoryMb, resources].some((value) => value !== undefined);
  return patch({
    name: clearable('name', name, plainName),
    reason: clearable('reason', input.reason, (_, text) => reason(text)),
    onConflict: onConflict ?? undefined,
    idleS: clearable('releaseIdleS', releaseIdleS, idleOf),
    userIds: named ? [...new Set(named.filter((id) => id !== userId))].sort((a, b) => a - b) : undefined,
    held: holds
      ? heldOf({ ...{ kind, machineIds, tasks, cpus, memoryMb }, resources: resources ?? [], shared: [] })
      : undefined,
    shared: shared ? sharedOf(shared) : undefined,
    when: whenChanged(viewer, input),
  });
}

/** Undefined: it is when it was. */
function whenChanged(
  viewer: Viewer,
  { from, to, rrule, timeZone, exceptDates, alsoDates }: Omit<UpdateHoldInput, 'holdId'>,
): WhenChange | undefined {
  for (const [field, value] of Object.entries({ from, rrule, timeZone, exceptDates, alsoDates }))
    if (value === null) throw badInput(field, null, 'a value; omit it to keep the current one');
  if (to === null && !handlesAll(viewer)) throw badInput('to', null, 'a time: only an OPERATOR can omit it');
  const when = patch({
    from: from ? secondsOf(from) : undefined,
    to: to ? secondsOf(to) : to,
    rrule: rrule ?? undefined,
    timeZone: timeZone ?? undefined,
    except: exceptDates ? instantsGiven('exceptDates', exceptDates) : undefined,
    also: alsoDates ? instantsGiven('alsoDates', alsoDates) : undefined,
  });
  return Object.keys(when).length === 0 ? undefined : when;
}

const secondsOf = (date: Date): number => date.getTime() / 1000;

const instantsGiven = (field: string, dates: readonly Date[]): number[] =>
  atMost(field, dates, MAX.holdDates).map(secondsOf);

/** What is wrong with times is wrong with the input. */
const asInput = (error: unknown): unknown =>
  error instanceof TimesFault ? badInput(error.field, error.value, error.accepted) : error;

function whenOf(
  viewer: Viewer,
  { kind, rrule, timeZone, exceptDates, alsoDates, ...input }: CreateHoldInput,
  now: number,
): { times: HoldTime[]; recurrence: Recurrence | null } {
  const given = input.from ? input.from.getTime() / 1000 : now;
  const to = input.to ? input.to.getTime() / 1000 : null;
  if (to === null && !handlesAll(viewer)) throw badInput('to', null, 'a time: only an OPERATOR can omit it');
  if (kind === 'STANDING' && rrule == null) throw badInput('rrule', null, 'a rule, because kind is STANDING');
  if (kind === 'USER' && rrule != null) throw badInput('kind', kind, 'STANDING, because there is an rrule');
  // A rule may have begun in the past.
  const from = rrule == null ? Math.max(now, given) : given;
  if (to !== null && to <= from)
    throw badInput('to', input.to, `a time after ${new Date(from * 1000).toISOString()}`);
  if (rrule == null) {
    if (exceptDates.length + alsoDates.length > 0)
      throw badInput(exceptDates.length > 0 ? 'exceptDates' : 'alsoDates', '[…]', 'no values without rrule');
    return { times: [{ from, to }], recurrence: null };
  }
  if (to === null) throw badInput('to', null, 'a time: recurring holds must have an end');
  const recurrence = {
    ...{ rrule, timeZone, from, lengthS: to - from },
    ...{ except: instantsGiven('exceptDates', exceptDates) },
    also: instantsGiven('alsoDates', alsoDates),
  };
  try {
    const times = timesOf(recurrence, now, now + MADE_AHEAD_S);
    if (times.length === 0) throw badInput('rrule', rrule, 'a rule with an occurrence in the next 400 days');
    return { times, recurrence };
  } catch (error) {
    throw asInput(error);
  }
}

const sharedOf = (given: CreateHoldInput['shared']): NewHold['shared'] =>
  Object.entries(
    amountsGiven('shared', given, MAX.jobResources, (field, value, accepted) => {
      throw badInput(field, value, accepted);
    }),
  ).map(([kind, amount]) => ({ kind, amount }));

function heldOf({
  kind,
  machineIds: given,
  tasks,
  cpus,
  memoryMb,
  resources,
  shared,
}: Pick<
  CreateHoldInput,
  'kind' | 'machineIds' | 'tasks' | 'cpus' | 'memoryMb' | 'resources' | 'shared'
>): HeldOf {
  const amounts = {
    ...amountsGiven('resources', resources, MAX.jobResources, (field, value, accepted) => {
      throw badInput(field, value, accepted);
    }),
    ...(cpus != null && { cpus: within('cpus', cpus, 1, MAX.machineCpus) }),
    ...(memoryMb != null && { memoryMb: within('memoryMb', memoryMb, 1, MAX.integer) }),
  };
  const some = Object.keys(amounts).length > 0;
  if (given != null) {
    if (tasks != null) throw badInput('tasks', tasks, 'either machineIds or tasks');
    if (given.length === 0) throw badInput('machineIds', given, 'at least one machine');
    const ids = atMost('machineIds', given, MAX.holdMachines).map((id) =>
      localId('machine', id, 'machineIds'),
    );
    return { of: 'MACHINES', machineIds: [...new Set(ids)], amounts: some ? amounts : null };
  }
  if (tasks != null) {
    if (!some) throw badInput('tasks', tasks, 'a value only with cpus, memoryMb or resources');
    return { of: 'TASKS', tasks: within('tasks', tasks, 1, MAX.tasks), amounts };
  }
  if (kind !== 'MAINTENANCE' || some)
    throw badInput('machineIds', null, 'machines, or tasks with the resources of each');
  return shared.length === 0 ? { of: 'SITE' } : { of: 'MACHINES', machineIds: [], amounts: null };
}

/** The error that names what is in the way. */
function inTheWay({ holds, runs }: HoldOutcome): ApiError {
  const named = (type: 'hold' | 'job', ids: readonly number[]): string =>
    ids
      .slice(0, NAMED_MAX)
      .map((id) => globalId(type, id))
      .join(', ') + (ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : '');
  const parts = [
    ...(holds.length > 0 ? [`${named('hold', holds)} would use the same machines or shared resources`] : []),
    ...(runs.length > 0
      ? [
          `${named('job', runs)} may still be running when it begins: AFTER_JOBS lets jobs finish, PREEMPT stops them`,
        ]
      : []),
  ];
  return new ApiError('CONFLICT', parts.join('; '), {
    holds: holds.map((id) => globalId('hold', id)),
    jobs: runs.slice(0, MAX.heldShown).map((id) => globalId('job', id)),
    runsInTheWay: runs.length,
  });
}
