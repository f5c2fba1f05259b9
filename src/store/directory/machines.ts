/** Machines and licenses. */

import type { OwnedDevice } from '../../core/resources/devices.js';
import { countsOf, unitsOf } from '../../core/resources/units.js';
import { instant, plain } from '../read-rows.js';
import type { LicenseRow, MachineRow } from '../rows.js';
import { amountsIn, devicesIn } from '../rules.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, inService, type Transaction, unique } from './changes.js';
import { lockSite } from './sites.js';

export interface NewMachine {
  siteId: number;
  name: string;
  cpus: number;
  memoryMb: number;
  benchmark: number;
  os: string;
  architecture: string;
  licenseIds: number[];
  /** Null or left out: shared in space. */
  maxTasks?: number | null;
  /** By kind. */
  resources?: Record<string, number>;
  /** Text by name. */
  labels?: Record<string, string>;
  /** Counted among its resources, of which none has their kind. */
  devices?: OwnedDevice[];
}

export interface NewLicense {
  kind: string;
  copies: number;
  /** null: the whole grid's. */
  siteId: number | null;
  /** What the amount is counted in; null: pieces. */
  unit?: string | null;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: each change is a short function
export const machineChanges = (change: Changes) => ({
  /** All or none. New machines are silent until their first heartbeat. In the order given. */
  registerMachines(machines: readonly NewMachine[], actor: Actor) {
    return change(actor, 'registerMachines', async (tx, note): Promise<MachineRow[]> => {
      for (const siteId of [...new Set(machines.map((machine) => machine.siteId))].sort((a, b) => a - b)) {
        await lockSite(tx, siteId);
        const there = machines.filter((machine) => machine.siteId === siteId);
        await checkLicenses(tx, siteId, [...new Set(there.flatMap((machine) => machine.licenseIds))]);
      }
      const key = ({ siteId, name }: Pick<NewMachine, 'siteId' | 'name'>) => `${siteId}/${name}`;
      if (new Set(machines.map(key)).size < machines.length)
        throw conflict('two of the machines have the same name at the same site');
      const made = await unique('a machine with this name is already in service at the site', () =>
        tx.machine.createManyAndReturn({ data: machines.map(counted) }),
      );
      const after = made.map(plain).sort((a, b) => a.id - b.id);
      for (const machine of after) await note(`machine_${machine.id}`, null, machine);
      const byKey = new Map(after.map((machine) => [key(machine), machine]));
      return machines.map((machine) => byKey.get(key(machine)) as MachineRow);
    });
  },

  /** What is absent stays. Not below what jobs hold now. */
  updateMachine(
    id: number,
    given: Partial<Omit<NewMachine, 'siteId'> & Pick<MachineRow, 'state'>>,
    actor: Actor,
  ) {
    return change(actor, 'updateMachine', async (tx, note): Promise<MachineRow> => {
      const before = await lockMachine(tx, id);
      const { name } = before;
      const { cpus, memoryMb, maxTasks } = { ...before, ...given };
      if (cpus < before.cpusUsed)
        throw conflict(`jobs use ${before.cpusUsed} CPUs of machine ${name}: cpus cannot be ${cpus}`);
      if (memoryMb < before.memoryUsedMb)
        throw conflict(
          `jobs use ${before.memoryUsedMb} MB of machine ${name}: memoryMb cannot be ${memoryMb}`,
        );
      const amounts = await amountsAfter(tx, before, given);
      if ((maxTasks === null) !== (before.maxTasks === null) && isHeld(before))
        throw conflict(
          `${heldOf(before)}: drain it before setting or clearing maxTasks (time sharing cannot change under running jobs)`,
        );
      if (maxTasks !== null && maxTasks < before.tasksUsed)
        throw conflict(`${before.tasksUsed} tasks run on machine ${name}: maxTasks cannot be ${maxTasks}`);
      if (given.licenseIds) await checkLicenses(tx, before.siteId, given.licenseIds);
      const after = plain(
        await unique(`a machine named ${given.name} is already in service at the site`, () =>
          // Whoever sets the state has seen why it was drained.
          tx.machine.update({
            where: { id },
            data: {
              ...given,
              ...amounts,
              ...(given.state && { reason: null, launchFailures: 0 }),
              ...(given.benchmark !== undefined && { powerMeasured: false }),
            },
          }),
        ),
      );
      await note(`machine_${id}`, before, after);
      return after;
    });
  },

  /** Takes an empty machine out of service. */
  removeMachine(id: number, now: number, actor: Actor) {
    return change(actor, 'removeMachine', async (tx, note): Promise<MachineRow> => {
      const before = await lockMachine(tx, id);
      if (isHeld(before)) throw conflict(`${heldOf(before)}: drain it first`);
      const after = plain(await tx.machine.update({ where: { id }, data: { removedAt: instant(now) } }));
      await note(`machine_${id}`, before, after);
      return after;
    });
  },

  registerLicense(license: NewLicense, actor: Actor) {
    return change(actor, 'registerLicense', async (tx, note): Promise<LicenseRow> => {
      if (license.siteId !== null) await lockSite(tx, license.siteId);
      const after = plain(
        await unique(`there is already a license pool ${license.kind} there`, () =>
          tx.license.create({ data: license }),
        ),
      );
      await note(`license_${after.id}`, null, after);
      return after;
    });
  },

  /** Not below what is in use now. */
  updateLicense(id: number, changes: Partial<Pick<NewLicense, 'copies' | 'unit'>>, actor: Actor) {
    return change(actor, 'updateLicense', async (tx, note): Promise<LicenseRow> => {
      const before = await lockLicense(tx, id);
      if (before.reported)
        throw conflict(
          `the site's own scheduler counts ${before.kind}: its agent reports how many there are`,
        );
      const { copies = before.copies } = changes;
      if (copies < before.inUse)
        throw conflict(`${before.inUse} copies of ${before.kind} are in use: copies cannot be ${copies}`);
      const after = plain(await tx.license.update({ where: { id }, data: changes }));
      await note(`license_${id}`, before, after);
      return after;
    });
  },

  /** Takes an unused pool out of service; machines that named it beside others no longer do: without any they would be unrestricted. */
  removeLicense(id: number, now: number, actor: Actor) {
    return change(actor, 'removeLicense', async (tx, note): Promise<LicenseRow> => {
      await tx.$queryRaw(
        sql`SELECT 1 FROM machines WHERE ${id}::integer = ANY (license_ids) ORDER BY id FOR NO KEY UPDATE`,
      );
      const before = await lockLicense(tx, id);
      if (before.inUse > 0)
        throw conflict(
          `${before.inUse} copies of ${before.kind} are in use: remove the license once they are free`,
        );
      await tx.$executeRaw(
        sql`UPDATE machines SET license_ids = array_remove(license_ids, ${id}::integer) WHERE ${id}::integer = ANY (license_ids) AND cardinality(license_ids) > 1`,
      );
      const after = plain(await tx.license.update({ where: { id }, data: { removedAt: instant(now) } }));
      await note(`license_${id}`, before, after);
      return after;
    });
  },
});

/** Devices are counted among the resources. */
function counted<M extends Pick<NewMachine, 'resources' | 'devices'>>(
  machine: M,
): M & Required<Pick<NewMachine, 'resources' | 'devices'>> {
  const { resources = {}, devices = [] } = machine;
  const counts = countsOf(devices);
  const twice = Object.keys(counts).find((kind) => kind in resources);
  if (twice !== undefined)
    throw conflict(`${twice} is counted through its devices: resources cannot have ${resources[twice]}`);
  return { ...machine, devices, resources: { ...resources, ...counts } };
}

/** Resources and devices that a machine has from now on, where one of them is given: no less than jobs hold, and what they hold by name. */
async function amountsAfter(
  tx: Transaction,
  before: MachineRow,
  given: Pick<NewMachine, 'resources' | 'devices'>,
): Promise<Pick<NewMachine, 'resources' | 'devices'>> {
  if (!given.resources && !given.devices) return {};
  const { id, name } = before;
  const declared = devicesIn(before.devices);
  const kept = Object.entries(amountsIn(before.resources)).filter(([kind]) => !(kind in countsOf(declared)));
  const after = counted({ resources: Object.fromEntries(kept), devices: [...declared], ...given });
  const used = amountsIn(before.resourcesUsed);
  for (const [kind, amount] of Object.entries(used))
    if ((after.resources[kind] ?? 0) < amount)
      throw conflict(
        `jobs use ${amount} ${kind} of machine ${name}: ${given.devices ? 'devices' : 'resources'} cannot have ${after.resources[kind] ?? 0}`,
      );
  if (!given.devices) return after;
  const held = (await tx.deviceHold.findMany({ where: { machineId: id } })).map(({ unit }) => unit);
  const units = new Set(after.devices.flatMap(unitsOf));
  const gone = held.find((unit) => !units.has(unit));
  if (gone !== undefined) throw conflict(`a job holds ${gone} of machine ${name}: devices must have it`);
  const nameless = Object.keys(countsOf(after.devices)).find((kind) => {
    const ofKind = after.devices.filter((device) => device.kind === kind).flatMap(unitsOf);
    return (used[kind] ?? 0) > ofKind.filter((unit) => held.includes(unit)).length;
  });
  if (nameless !== undefined)
    throw conflict(
      `jobs use ${nameless} of machine ${name} that have no names yet: drain it before naming them`,
    );
  return after;
}

const isHeld = ({ cpusUsed, tasksUsed }: MachineRow): boolean => cpusUsed + tasksUsed > 0;

const heldOf = ({ name, maxTasks, cpusUsed, tasksUsed }: MachineRow): string =>
  maxTasks === null
    ? `jobs use ${cpusUsed} CPUs of machine ${name}`
    : `${tasksUsed} tasks run on machine ${name}`;

async function lockMachine(tx: Transaction, id: number): Promise<MachineRow> {
  await tx.$queryRaw(sql`SELECT 1 FROM machines WHERE id = ${id} FOR NO KEY UPDATE`);
  return plain(inService('machine', id, await tx.machine.findUnique({ where: { id } })));
}

async function lockLicense(tx: Transaction, id: number): Promise<LicenseRow> {
  await tx.$queryRaw(sql`SELECT 1 FROM licenses WHERE id = ${id} FOR NO KEY UPDATE`);
  return plain(inService('license', id, await tx.license.findUnique({ where: { id } })));
}

/** Pools that a machine names must be in service, and the site's or the grid's. */
async function checkLicenses(tx: Transaction, siteId: number, ids: readonly number[]): Promise<void> {
  const where = { id: { in: [...ids] }, removedAt: null, OR: [{ siteId }, { siteId: null }] };
  const good = new Set((await tx.license.findMany({ where, select: { id: true } })).map(({ id }) => id));
  const bad = ids.find((id) => !good.has(id));
  if (bad !== undefined) throw conflict(`license ${bad} is not in service at site ${siteId}`);
}
