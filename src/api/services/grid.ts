/** Sites, machines and licenses: reading them, and an operator's changes to them. An AGENT sees its own site only. */
import { type LocalPolicy, PolicyError, parseLocalPolicy } from '../../core/policy.js';
import { MAX } from '../../platform/limits.js';
import type { LicenseRow, MachineRow, SiteImageRow, SiteRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { atMost, clearable, given, notNull, patch, plainName, text, within } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { devicesGiven } from '../devices.js';
import { ApiError, badInput } from '../errors.js';
import type {
  CreateLicenseInput,
  CreateMachineInput,
  CreateSiteInput,
  ResourceAmountInput,
  UpdateLicenseInput,
  UpdateMachineInput,
  UpdateSiteInput,
} from '../generated/types.js';
import { localId } from '../ids.js';
import { labelsGiven } from '../labels.js';
import { reservationOf } from '../loaders.js';
import type { ReservationModel } from '../models.js';
import { amountsGiven } from '../resources.js';
import { guarded, maySeeSite } from './access.js';
import { actor, done, type ServiceParts, wakeAfter } from './parts.js';
import { createSiteLoads } from './site-load.js';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createGridService(parts: ServiceParts) {
  const { directory, queries, limits, now } = parts;
  /** A page of what sites have by name, at one or at all that the viewer may see. */
  async function bySite<Row extends { siteId: number; name: string }>(
    viewer: Viewer,
    site: string | null,
    { first, after }: ForwardArguments,
    kind: string,
    read: (
      siteId: number | null,
      behind: { siteId: number; name: string } | null,
      limit: number,
    ) => Promise<Row[]>,
  ): Promise<Connection<Row>> {
    const size = pageSize('first', first, limits);
    const asked = site === null ? null : localId('site', site, 'siteId');
    if (asked !== null && !maySeeSite(viewer, asked)) return connection<Row>([], size, () => '');
    // 0 is no site's id: an agent's key without a site sees nothing.
    const siteId = viewer.role === 'AGENT' ? (viewer.siteId ?? 0) : asked;
    const cursor = after ? decodeCursor('after', after, kind, ['number', 'text']) : null;
    const behind = cursor && { siteId: cursor[0], name: cursor[1] };
    const rows = await read(siteId, behind, size + 1);
    return connection(rows, size, (row) => encodeCursor(kind, [row.siteId, row.name]), {
      continued: behind !== null,
    });
  }

  async function changeSite(
    viewer: Viewer,
    id: string,
    change: Parameters<typeof directory.updateSite>[1],
    requestId: string,
    action: string,
  ): Promise<SiteRow> {
    const siteId = localId('site', id, 'siteId');
    const site = done(await directory.updateSite(siteId, change, { ...actor(viewer, requestId), action }));
    await wakeAfter(parts, { of: 'SITE', siteId });
    return site;
  }

  async function changeMachine(
    viewer: Viewer,
    id: string,
    change: Parameters<typeof directory.updateMachine>[1],
    requestId: string,
    action: string,
  ): Promise<MachineRow> {
    const machineId = localId('machine', id, 'machineId');
    const machine = done(
      await directory.updateMachine(machineId, change, { ...actor(viewer, requestId), action }),
    );
    await wakeAfter(parts, { of: 'MACHINE', siteId: machine.siteId });
    return machine;
  }

  async function register(
    viewer: Viewer,
    inputs: readonly CreateMachineInput[],
    requestId: string,
    action: string,
  ): Promise<MachineRow[]> {
    if (inputs.length === 0) return [];
    atMost('machines', inputs, limits.machinesMax);
    const machines = inputs.map((input, index) => {
      const field = (name: string): string =>
        action === 'registerMachine' ? name : `machines[${index}].${name}`;
      return {
        siteId: localId('site', input.siteId, field('siteId')),
        name: plainName(field('name'), input.name),
        cpus: within(field('cpus'), input.cpus, 1, MAX.machineCpus),
        memoryMb: within(field('memoryMb'), input.memoryMb, 0, MAX.integer),
        benchmark: within(field('benchmark'), input.benchmark, MAX.leastBenchmark, MAX.benchmark),
        os: text(field('os'), input.os, MAX.nameChars, 1),
        architecture: text(field('architecture'), input.architecture, MAX.nameChars, 1),
        licenseIds: licenseIds(field('licenseIds'), input.licenseIds),
        maxTasks: clearable(field('maxTasks'), input.maxTasks, within, 1, MAX.sharing) ?? null,
        resources: resourcesOf(field('resources'), input.resources),
        labels: labelsGiven(field('labels'), input.labels),
        devices: devicesGiven(field('devices'), input.devices),
      };
    });
    const made = done(await directory.registerMachines(machines, { ...actor(viewer, requestId), action }));
    for (const siteId of new Set(made.map((machine) => machine.siteId)))
      await wakeAfter(parts, { of: 'MACHINE', siteId });
    return made;
  }

  return {
    ...guarded({
      async sites(viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<SiteRow>> {
        const size = pageSize('first', first, limits);
        const behind = after ? decodeCursor('after', after, 'site', ['text'])[0] : '';
        const rows =
          viewer.role === 'AGENT'
            ? (await queries.sitesByIds(viewer.siteId === null ? [] : [viewer.siteId])).filter(
                (site) => site.name > behind,
              )
            : await queries.sites(behind, size + 1);
        return connection(rows, size, (site) => encodeCursor('site', [site.name]), {
          continued: behind !== '',
        });
      },

      machines: (
        viewer: Viewer,
        site: string | null,
        page: ForwardArguments,
      ): Promise<Connection<MachineRow>> =>
        bySite(viewer, site, page, 'machine', (...asked) => queries.machines(...asked)),

      images: (
        viewer: Viewer,
        site: string | null,
        page: ForwardArguments,
      ): Promise<Connection<SiteImageRow>> =>
        bySite(viewer, site, page, 'image', (...asked) => queries.images(...asked)),

      async licenses(_viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<LicenseRow>> {
        const size = pageSize('first', first, limits);
        const cursor = after ? decodeCursor('after', after, 'license', ['text', 'number']) : null;
        const rows = await queries.licenses(cursor && { kind: cursor[0], id: cursor[1] }, size + 1);
        return connection(rows, size, (license) => encodeCursor('license', [license.kind, license.id]), {
          continued: cursor !== null,
        });
      },

      resourceKinds: (_viewer: Viewer) => queries.resourceKinds(limits.pageMax),

      async createSite(viewer: Viewer, input: CreateSiteInput, requestId: string): Promise<SiteRow> {
        const site = {
          name: plainName('name', input.name),
          latitude: clearable('latitude', input.latitude, within, -MAX.latitude, MAX.latitude) ?? null,
          longitude: clearable('longitude', input.longitude, within, -MAX.longitude, MAX.longitude) ?? null,
          localPolicy: clearable('localPolicy', input.localPolicy, localPolicy) ?? null,
          maxRunningJobs: clearable('maxRunningJobs', input.maxRunningJobs, within, 1, MAX.sharing) ?? null,
          maxLimitS: clearable('maxLimitS', input.maxLimitS, within, MAX.leastSeconds, MAX.seconds) ?? null,
          reservableCpuHours: within('reservableCpuHours', input.reservableCpuHours, 0, MAX.integer),
          schedulerId: input.schedulerId ? localId('scheduler', input.schedulerId, 'schedulerId') : null,
        };
        const made = done(await directory.registerSite(site, actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'SITE', siteId: made.id });
        return made;
      },
      async updateSite(viewer: Viewer, input: UpdateSiteInput, requestId: string): Promise<SiteRow> {
        const change = patch({
          name: given('name', input.name, plainName),
          state: notNull('state', input.state),
          latitude: clearable('latitude', input.latitude, within, -MAX.latitude, MAX.latitude),
          longitude: clearable('longitude', input.longitude, within, -MAX.longitude, MAX.longitude),
          localPolicy: clearable('localPolicy', input.localPolicy, localPolicy),
          maxRunningJobs: clearable('maxRunningJobs', input.maxRunningJobs, within, 1, MAX.sharing),
          maxLimitS: clearable('maxLimitS', input.maxLimitS, within, MAX.leastSeconds, MAX.seconds),
          reservableCpuHours: given('reservableCpuHours', input.reservableCpuHours, within, 0, MAX.integer),
          schedulerId: clearable('schedulerId', input.schedulerId, (field, id) =>
            localId('scheduler', id, field),
          ),
        });
        return changeSite(viewer, input.siteId, change, requestId, 'updateSite');
      },
      drainSite: (viewer: Viewer, site: string, requestId: string) =>
        changeSite(viewer, site, { state: 'DRAINING' }, requestId, 'drainSite'),
      async removeSite(viewer: Viewer, id: string, requestId: string): Promise<SiteRow> {
        const siteId = localId('site', id, 'siteId');
        const site = done(await directory.removeSite(siteId, now(), actor(viewer, requestId)));
        // Its agent's keys are not good any more.
        parts.keysChanged();
        await wakeAfter(parts, { of: 'SITE', siteId });
        return site;
      },

      async createMachine(viewer: Viewer, input: CreateMachineInput, requestId: string): Promise<MachineRow> {
        const [machine] = await register(viewer, [input], requestId, 'registerMachine');
        return machine as MachineRow;
      },
      createMachines: (viewer: Viewer, inputs: readonly CreateMachineInput[], requestId: string) =>
        register(viewer, inputs, requestId, 'registerMachines'),
      async updateMachine(viewer: Viewer, input: UpdateMachineInput, requestId: string): Promise<MachineRow> {
        const change = patch({
          name: given('name', input.name, plainName),
          state: notNull('state', input.state),
          cpus: given('cpus', input.cpus, within, 1, MAX.machineCpus),
          memoryMb: given('memoryMb', input.memoryMb, within, 0, MAX.integer),
          benchmark: given('benchmark', input.benchmark, within, MAX.leastBenchmark, MAX.benchmark),
          os: given('os', input.os, text, MAX.nameChars, 1),
          architecture: given('architecture', input.architecture, text, MAX.nameChars, 1),
          licenseIds: given('licenseIds', input.licenseIds, licenseIds),
          maxTasks: clearable('maxTasks', input.maxTasks, within, 1, MAX.sharing),
          resources: given('resources', input.resources, resourcesOf),
          labels: given('labels', input.labels, labelsGiven),
          devices: given('devices', input.devices, devicesGiven),
        });
        return changeMachine(viewer, input.machineId, change, requestId, 'updateMachine');
      },
      drainMachine: (viewer: Viewer, machine: string, requestId: string) =>
        changeMachine(viewer, machine, { state: 'DRAINING' }, requestId, 'drainMachine'),
      async removeMachine(viewer: Viewer, id: string, requestId: string): Promise<MachineRow> {
        const machineId = localId('machine', id, 'machineId');
        const machine = done(await directory.removeMachine(machineId, now(), actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'MACHINE', siteId: machine.siteId });
        return machine;
      },

      async createLicense(viewer: Viewer, input: CreateLicenseInput, requestId: string): Promise<LicenseRow> {
        const license = {
          kind: text('kind', input.kind, MAX.nameChars, 1),
          copies: within('copies', input.copies, 0, MAX.integer),
          unit: input.unit ? text('unit', input.unit, MAX.plainNameChars, 1) : null,
          siteId: input.siteId ? localId('site', input.siteId, 'siteId') : null,
        };
        const made = done(await directory.registerLicense(license, actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'LICENSE', siteId: made.siteId });
        return made;
      },
      async updateLicense(viewer: Viewer, input: UpdateLicenseInput, requestId: string): Promise<LicenseRow> {
        const licenseId = localId('license', input.licenseId, 'licenseId');
        const change = patch({
          copies: given('copies', input.copies, within, 0, MAX.integer),
          unit: clearable('unit', input.unit, text, MAX.plainNameChars, 1),
        });
        const license = done(await directory.updateLicense(licenseId, change, actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'LICENSE', siteId: license.siteId });
        return license;
      },
      async removeLicense(viewer: Viewer, id: string, requestId: string): Promise<LicenseRow> {
        const licenseId = localId('license', id, 'licenseId');
        const license = done(await directory.removeLicense(licenseId, now(), actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'LICENSE', siteId: license.siteId });
        return license;
      },
    }),

    loadOf: createSiteLoads(parts).loadOf,

    async promisesOf(siteId: number, first: number | null | undefined): Promise<ReservationModel[]> {
      return (await queries.promisesOfSite(siteId, pageSize('first', first, limits))).map(reservationOf);
    },
  };
}

function licenseIds(field: string, ids: readonly string[]): number[] {
  atMost(field, ids, MAX.machineLicenses);
  return [...new Set(ids.map((id) => localId('license', id, field)))];
}

const resourcesOf = (field: string, given: readonly ResourceAmountInput[]): Record<string, number> =>
  amountsGiven(field, given, MAX.machineResources, (at, value, accepted) => {
    throw badInput(at, value, accepted);
  });

function localPolicy(field: string, document: unknown): LocalPolicy {
  try {
    return parseLocalPolicy(document);
  } catch (error) {
    if (error instanceof PolicyError)
      throw new ApiError('BAD_USER_INPUT', `${field}: ${error.message}`, { faults: error.faults });
    throw error;
  }
}
