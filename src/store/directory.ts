/**
 * The administration of sites, machines, licenses, users, keys and policies. Each change is one transaction with its entry in
 * the audit log, and its event (a trigger's). What would break a promise is refused with a reason, not with an error.
 *
 * Locks are taken in the store's order (see postgres.ts): the row that is changed before whatever writes an event.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Link, SiteState, UserClass } from '../core/model.js';
import { DEFAULT_POLICY, type LocalPolicy, type Policy as PolicyDocument } from '../core/policy.js';
import { plainColumn, textColumn } from './columns.js';
import { Prisma, type PrismaClient } from './generated/client.js';
import { inTransaction } from './pool.js';
import type {
  ApiKeyRow,
  DatasetRow,
  LicenseRow,
  LinkRow,
  MachineRow,
  PolicyRow,
  SimulationRow,
  SiteRow,
  UserRole,
  UserRow,
} from './rows.js';
import * as dataSql from './sql/data.js';
import * as rows from './sql/rows.js';
import { read, write } from './statement.js';

/** On whose behalf a change is made, for the audit log. */
export interface Actor {
  /** null: the service itself. */
  userId: number | null;
  requestId: string | null;
  /** The mutation's name where it is not the method's. */
  action?: string;
  reason?: string | null;
}

/** What became of a change. `message` names what stands in its way. */
export type Change<T> =
  | { kind: 'done'; value: T }
  | { kind: 'refused'; code: 'NOT_FOUND' | 'CONFLICT' | 'VERSION_CONFLICT'; message: string };

export interface NewSite {
  name: string;
  latitude: number | null;
  longitude: number | null;
  localPolicy: LocalPolicy | null;
  /** Null or left out: as many as fit. */
  maxRunningJobs?: number | null;
}

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
}

export interface NewLicense {
  kind: string;
  copies: number;
  /** null: the whole grid's. */
  siteId: number | null;
}

export interface NewUser {
  name: string;
  class: UserClass;
  role: UserRole;
  quotaShare: number;
}

export interface Quota {
  quotaShare?: number;
  /** null: no limit; absent: as it is. */
  submission?: { limit: number; periodS: number } | null;
}

export interface NewApiKey {
  userId: number;
  name: string;
  siteId: number | null;
  /** Epoch seconds. */
  expiresAt: number | null;
}

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
  /** Of the jobs' submission, epoch seconds: from (included) to (not included). */
  from: number;
  to: number;
  reason: string | null;
  now: number;
}

/** A file, or files that go together, with copies at sites. */
export interface NewDataset {
  name: string;
  sizeMb: number;
  siteIds: readonly number[];
}

/** The holder of a good key. */
export interface KeyHolder {
  keyId: number;
  userId: number;
  role: UserRole;
  siteId: number | null;
  expiresAtMs: number | null;
}

type Transaction = Prisma.TransactionClient;

/** Thrown inside a transaction to undo it; the method answers with it. */
class Refusal extends Error {
  constructor(
    readonly code: 'NOT_FOUND' | 'CONFLICT' | 'VERSION_CONFLICT',
    message: string,
  ) {
    super(message);
  }
}

const conflict = (message: string) => new Refusal('CONFLICT', message);

/** Keys begin with it, so that they are recognized in logs and by scanners of secrets. */
const KEY_PREFIX = 'swy';
/** Datasets in one import at most. */
export const DATASETS_IMPORTED_MAX = 10_000;
/** Measurements of a link that make up its values, and that are kept. */
const MEASUREMENTS_AVERAGED = 5;
export const MEASUREMENTS_KEPT = 100;
/** A key's last use is noted at most so often. */
const TOUCH_EVERY_S = 60;

export class Directory {
  constructor(private readonly prisma: PrismaClient) {}

  // Installation ------------------------------------------------------------------------------------------------------

  /** Policy version 1 and the user `admin`, where they are missing. Any number of processes may call it at once. */
  async bootstrap(): Promise<{ adminId: number }> {
    await write(
      this.prisma,
      `INSERT INTO policies (version, document, reason) VALUES (1, $1::jsonb, 'installation') ON CONFLICT DO NOTHING`,
      JSON.stringify(DEFAULT_POLICY),
    );
    await write(
      this.prisma,
      `INSERT INTO users (name, role) VALUES ('admin', 'ADMIN') ON CONFLICT DO NOTHING`,
    );
    const admin = await this.prisma.user.findUniqueOrThrow({
      where: { name: 'admin' },
      select: { id: true },
    });
    return { adminId: admin.id };
  }

  // Sites -------------------------------------------------------------------------------------------------------------

  registerSite(site: NewSite, actor: Actor): Promise<Change<SiteRow>> {
    return this.change(actor, 'registerSite', async (tx, audit) => {
      const { id } = await unique(`a site in service is called ${site.name}`, () =>
        tx.site.create({ data: { ...site, localPolicy: json(site.localPolicy) }, select: { id: true } }),
      );
      const after = await siteOf(tx, id);
      await audit(`site_${id}`, null, after);
      return after;
    });
  }

  /** What is absent stays. A site DRAINING or DOWN starts nothing more; the next cycles take its queue back. */
  updateSite(
    siteId: number,
    change: Partial<NewSite & { state: SiteState }>,
    actor: Actor,
  ): Promise<Change<SiteRow>> {
    return this.change(actor, 'updateSite', async (tx, audit) => {
      const before = await this.lockSite(tx, siteId);
      const { localPolicy, ...rest } = change;
      const data = { ...rest, ...(localPolicy !== undefined && { localPolicy: json(localPolicy) }) };
      await unique(`a site in service is called ${change.name}`, () =>
        tx.site.update({ where: { id: siteId }, data, select: { id: true } }),
      );
      const after = await siteOf(tx, siteId);
      await audit(`site_${siteId}`, before, after);
      return after;
    });
  }

  /** Takes a site that is not UP and has no queue and no live runs out of service; its machines, licenses, replicas and links with it. */
  removeSite(siteId: number, now: number, actor: Actor): Promise<Change<SiteRow>> {
    return this.change(actor, 'removeSite', async (tx, audit) => {
      const before = await this.lockSite(tx, siteId);
      if (before.state === 'UP') throw conflict(`site ${before.name} is UP; drain it first`);
      const jobs = await read<number>(
        tx,
        `SELECT coalesce(sum(jobs), 0)::text AS v FROM job_counts WHERE site_id = $1 AND state <> 'HELD'`,
        siteId,
      );
      if (jobs > 0) throw conflict(`site ${before.name} still has ${jobs} jobs; wait until it is drained`);
      for (const table of ['machines', 'licenses']) {
        await tx.$queryRawUnsafe(
          `SELECT 1 FROM ${table} WHERE site_id = $1 AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE`,
          siteId,
        );
      }
      await write(tx, 'DELETE FROM promises WHERE site_id = $1', siteId);
      await write(tx, 'DELETE FROM reservations WHERE site_id = $1', siteId);
      await write(tx, dataSql.removeSiteMeasurements, siteId);
      await write(tx, dataSql.removeSiteReplicas, siteId);
      await write(tx, dataSql.removeSiteLinks, siteId);
      for (const table of ['machines', 'licenses']) {
        await write(
          tx,
          `UPDATE ${table} SET removed_at = to_timestamp($2::float8) WHERE site_id = $1 AND removed_at IS NULL`,
          siteId,
          now,
        );
      }
      await write(tx, 'UPDATE sites SET removed_at = to_timestamp($2::float8) WHERE id = $1', siteId, now);
      const after = await siteOf(tx, siteId);
      await audit(`site_${siteId}`, before, after);
      return after;
    });
  }

  // Machines ----------------------------------------------------------------------------------------------------------

  /** All or none. New machines are silent until their first heartbeat. */
  registerMachines(machines: readonly NewMachine[], actor: Actor): Promise<Change<MachineRow[]>> {
    return this.change(actor, 'registerMachines', async (tx, audit) => {
      for (const siteId of [...new Set(machines.map((machine) => machine.siteId))].sort((a, b) => a - b)) {
        await this.lockSite(tx, siteId);
        const there = machines.filter((machine) => machine.siteId === siteId);
        await this.checkLicenses(tx, siteId, [...new Set(there.flatMap((machine) => machine.licenseIds))]);
      }
      const names = new Set(machines.map((machine) => `${machine.siteId}/${machine.name}`));
      if (names.size < machines.length) throw conflict('two of the machines have one name at one site');
      const made = await unique('a machine of this name is in service at the site', () =>
        tx.machine.createManyAndReturn({ data: [...machines], select: { id: true } }),
      );
      const after = await machinesOf(
        tx,
        made.map(({ id }) => id),
      );
      const byName = new Map(after.map((machine) => [`${machine.siteId}/${machine.name}`, machine]));
      for (const machine of after) await audit(`machine_${machine.id}`, null, machine);
      return machines.map((machine) => byName.get(`${machine.siteId}/${machine.name}`) as MachineRow);
    });
  }

  /** What is absent stays. Not below what jobs hold now. */
  updateMachine(
    machineId: number,
    change: Partial<Omit<NewMachine, 'siteId'> & { state: MachineRow['state'] }>,
    actor: Actor,
  ): Promise<Change<MachineRow>> {
    return this.change(actor, 'updateMachine', async (tx, audit) => {
      const before = await this.lockMachine(tx, machineId);
      const { cpus = before.cpus, memoryMb = before.memoryMb } = change;
      if (cpus < before.cpusUsed)
        throw conflict(`jobs hold ${before.cpusUsed} CPUs of machine ${before.name}; cpus: ${cpus} is less`);
      if (memoryMb < before.memoryUsedMb) {
        throw conflict(
          `jobs hold ${before.memoryUsedMb} MB of machine ${before.name}; memoryMb: ${memoryMb} is less`,
        );
      }
      const { maxTasks = before.maxTasks } = change;
      if ((maxTasks === null) !== (before.maxTasks === null) && isHeld(before))
        throw conflict(`${heldOf(before)}; maxTasks: how it is shared can change when it is drained`);
      if (maxTasks !== null && maxTasks < before.tasksUsed) {
        throw conflict(
          `${before.tasksUsed} tasks are on machine ${before.name}; maxTasks: ${maxTasks} is less`,
        );
      }
      if (change.licenseIds) await this.checkLicenses(tx, before.siteId, change.licenseIds);
      await unique(`a machine called ${change.name} is in service at the site`, () =>
        tx.machine.update({ where: { id: machineId }, data: change, select: { id: true } }),
      );
      const after = await machineOf(tx, machineId);
      await audit(`machine_${machineId}`, before, after);
      return after;
    });
  }

  /** Takes an empty machine out of service. */
  removeMachine(machineId: number, now: number, actor: Actor): Promise<Change<MachineRow>> {
    return this.change(actor, 'removeMachine', async (tx, audit) => {
      const before = await this.lockMachine(tx, machineId);
      if (isHeld(before)) throw conflict(`${heldOf(before)}; drain it first`);
      await write(
        tx,
        'UPDATE machines SET removed_at = to_timestamp($2::float8) WHERE id = $1',
        machineId,
        now,
      );
      const after = await machineOf(tx, machineId);
      await audit(`machine_${machineId}`, before, after);
      return after;
    });
  }

  // Licenses ----------------------------------------------------------------------------------------------------------

  registerLicense(license: NewLicense, actor: Actor): Promise<Change<LicenseRow>> {
    return this.change(actor, 'registerLicense', async (tx, audit) => {
      if (license.siteId !== null) await this.lockSite(tx, license.siteId);
      const { id } = await unique(`there is a pool of ${license.kind} there already`, () =>
        tx.license.create({ data: license, select: { id: true } }),
      );
      const after = await licenseOf(tx, id);
      await audit(`license_${id}`, null, after);
      return after;
    });
  }

  /** Not below what is in use now. */
  updateLicense(licenseId: number, change: { copies: number }, actor: Actor): Promise<Change<LicenseRow>> {
    return this.change(actor, 'updateLicense', async (tx, audit) => {
      const before = await this.lockLicense(tx, licenseId);
      if (change.copies < before.inUse) {
        throw conflict(
          `${before.inUse} copies of ${before.kind} are in use; copies: ${change.copies} is less`,
        );
      }
      await tx.license.update({
        where: { id: licenseId },
        data: { copies: change.copies },
        select: { id: true },
      });
      const after = await licenseOf(tx, licenseId);
      await audit(`license_${licenseId}`, before, after);
      return after;
    });
  }

  /** Takes an unused pool out of service; machines that named it no longer do. */
  removeLicense(licenseId: number, now: number, actor: Actor): Promise<Change<LicenseRow>> {
    return this.change(actor, 'removeLicense', async (tx, audit) => {
      await tx.$queryRawUnsafe(
        'SELECT 1 FROM machines WHERE $1::integer = ANY (license_ids) ORDER BY id FOR NO KEY UPDATE',
        licenseId,
      );
      const before = await this.lockLicense(tx, licenseId);
      if (before.inUse > 0) throw conflict(`${before.inUse} copies of ${before.kind} are in use`);
      await write(
        tx,
        `UPDATE machines SET license_ids = array_remove(license_ids, $1::integer) WHERE $1::integer = ANY (license_ids)`,
        licenseId,
      );
      await write(
        tx,
        'UPDATE licenses SET removed_at = to_timestamp($2::float8) WHERE id = $1',
        licenseId,
        now,
      );
      const after = await licenseOf(tx, licenseId);
      await audit(`license_${licenseId}`, before, after);
      return after;
    });
  }

  // Users and keys ----------------------------------------------------------------------------------------------------

  registerUser(user: NewUser, actor: Actor): Promise<Change<UserRow>> {
    return this.change(actor, 'registerUser', async (tx, audit) => {
      const { id } = await unique(`a user is called ${user.name}`, () =>
        tx.user.create({ data: user, select: { id: true } }),
      );
      const after = await userOf(tx, id);
      await audit(`user_${id}`, null, after);
      return after;
    });
  }

  /** What is absent stays. The last active administrator stays one. */
  updateUser(
    userId: number,
    change: { class?: UserClass; role?: UserRole; active?: boolean },
    actor: Actor,
  ): Promise<Change<UserRow>> {
    return this.change(actor, 'updateUser', async (tx, audit) => {
      // All administrators, so that two cannot give it up at once.
      const admins = await read<number[]>(
        tx,
        `SELECT coalesce(json_agg(id), '[]')::text AS v FROM (
           SELECT id FROM users WHERE role = 'ADMIN' AND active OR id = $1 ORDER BY id FOR NO KEY UPDATE) u`,
        userId,
      );
      const before = await found('user', userId, userOf(tx, userId));
      const others = admins.filter((id) => id !== userId).length;
      const stays = (change.role ?? before.role) === 'ADMIN' && (change.active ?? before.active);
      if (before.role === 'ADMIN' && before.active && !stays && others === 0) {
        throw conflict(`${before.name} is the last active administrator`);
      }
      await tx.user.update({ where: { id: userId }, data: change, select: { id: true } });
      const after = await userOf(tx, userId);
      await audit(`user_${userId}`, before, after);
      return after;
    });
  }

  setQuota(userId: number, quota: Quota, actor: Actor): Promise<Change<UserRow>> {
    return this.change(actor, 'setQuota', async (tx, audit) => {
      await tx.$queryRawUnsafe('SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE', userId);
      const before = await found('user', userId, userOf(tx, userId));
      const { quotaShare, submission } = quota;
      const data = {
        ...(quotaShare !== undefined && { quotaShare }),
        ...(submission !== undefined && {
          submissionLimit: submission?.limit ?? null,
          submissionPeriodS: submission?.periodS ?? null,
        }),
      };
      await tx.user.update({ where: { id: userId }, data, select: { id: true } });
      const after = await userOf(tx, userId);
      await audit(`user_${userId}`, before, after);
      return after;
    });
  }

  /** The secret is in this answer only; stored is its SHA-256 (it has 256 random bits: nothing slower is needed). */
  createApiKey(key: NewApiKey, actor: Actor): Promise<Change<{ apiKey: ApiKeyRow; secret: string }>> {
    return this.change(actor, 'createApiKey', async (tx, audit) => {
      await found('user', key.userId, userOf(tx, key.userId));
      if (key.siteId !== null) await this.lockSite(tx, key.siteId);
      const prefix = `${KEY_PREFIX}_${randomBytes(5).toString('hex')}`;
      const secret = `${prefix}_${randomBytes(32).toString('base64url')}`;
      const { userId, name, siteId, expiresAt } = key;
      const { id } = await tx.apiKey.create({
        data: {
          userId,
          name,
          prefix,
          hash: hashOf(secret),
          siteId,
          expiresAt: expiresAt === null ? null : new Date(expiresAt * 1000),
        },
        select: { id: true },
      });
      const after = await apiKeyOf(tx, id);
      await audit(`apikey_${id}`, null, after);
      return { apiKey: after, secret };
    });
  }

  /** Revoking twice leaves the first time. */
  revokeApiKey(keyId: number, now: number, actor: Actor): Promise<Change<ApiKeyRow>> {
    return this.change(actor, 'revokeApiKey', async (tx, audit) => {
      await tx.$queryRawUnsafe('SELECT 1 FROM api_keys WHERE id = $1 FOR NO KEY UPDATE', keyId);
      const before = await found('apikey', keyId, apiKeyOf(tx, keyId));
      if (before.revokedAt !== null) return before;
      await write(tx, 'UPDATE api_keys SET revoked_at = to_timestamp($2::float8) WHERE id = $1', keyId, now);
      const after = await apiKeyOf(tx, keyId);
      await audit(`apikey_${keyId}`, before, after);
      return after;
    });
  }

  /** The holder of a key that is good now: known, not revoked, not expired, its user active, its site in service. */
  async findKey(secret: string, now: number): Promise<KeyHolder | null> {
    const prefix = secret.split('_', 2).join('_');
    const key = await this.prisma.apiKey.findUnique({
      where: { prefix },
      include: { user: { select: { role: true, active: true } }, site: { select: { removedAt: true } } },
    });
    if (key === null || !sameText(key.hash, hashOf(secret))) return null;
    if (key.revokedAt !== null || (key.expiresAt !== null && key.expiresAt.getTime() <= now * 1000))
      return null;
    if (!key.user.active || (key.site !== null && key.site.removedAt !== null)) return null;
    if (key.lastUsedAt === null || key.lastUsedAt.getTime() / 1000 < now - TOUCH_EVERY_S) {
      await write(
        this.prisma,
        'UPDATE api_keys SET last_used_at = to_timestamp($2::float8) WHERE id = $1',
        key.id,
        now,
      );
    }
    const { id: keyId, userId, siteId, expiresAt } = key;
    return { keyId, userId, role: key.user.role, siteId, expiresAtMs: expiresAt?.getTime() ?? null };
  }

  // Policies ----------------------------------------------------------------------------------------------------------

  /** Puts a policy in force as the version after `expectedVersion`, which must be the one in force. */
  addPolicy(policy: NewPolicy, actor: Actor): Promise<Change<PolicyRow>> {
    return this.change({ ...actor, reason: policy.reason }, 'updatePolicy', async (tx, audit) => {
      const before = await policyOf(tx, null);
      const stale = (current: number | undefined) =>
        new Refusal(
          'VERSION_CONFLICT',
          `the policy is at version ${current ?? 0}; expectedVersion: ${policy.expectedVersion}`,
        );
      if (before?.version !== policy.expectedVersion) throw stale(before?.version);
      const version = policy.expectedVersion + 1;
      try {
        await tx.policy.create({
          data: {
            version,
            document: policy.document as unknown as Prisma.InputJsonObject,
            reason: policy.reason,
            authorId: actor.userId,
            revertsTo: policy.revertsTo ?? null,
          },
        });
      } catch (error) {
        if (isUniqueViolation(error)) throw stale(version);
        throw error;
      }
      const after = (await policyOf(tx, version)) as PolicyRow;
      await audit(`policy_${version}`, before.document, after.document);
      return after;
    });
  }

  // Data --------------------------------------------------------------------------------------------------------------

  createDataset(dataset: NewDataset, actor: Actor): Promise<Change<DatasetRow>> {
    const { name, sizeMb, siteIds } = dataset;
    return this.change(actor, 'createDataset', async (tx, audit) => {
      await this.shareSites(tx, siteIds);
      const { id } = await unique(`a dataset is called ${name}`, () =>
        tx.dataset.create({ data: { name, sizeMb }, select: { id: true } }),
      );
      await write(tx, dataSql.addReplicas, plainColumn(siteIds.map(() => id)), plainColumn(siteIds));
      const after = await datasetOf(tx, id);
      await audit(`dataset_${id}`, null, after);
      return after;
    });
  }

  /** What is absent stays. */
  updateDataset(
    datasetId: number,
    change: Partial<Pick<NewDataset, 'name' | 'sizeMb'>>,
    actor: Actor,
  ): Promise<Change<DatasetRow>> {
    return this.change(actor, 'updateDataset', async (tx, audit) => {
      const before = await this.lockDataset(tx, datasetId);
      await unique(`a dataset is called ${change.name}`, () =>
        tx.dataset.update({ where: { id: datasetId }, data: change, select: { id: true } }),
      );
      const after = await datasetOf(tx, datasetId);
      await audit(`dataset_${datasetId}`, before, after);
      return after;
    });
  }

  /** Jobs that still name it read nothing from then on. */
  removeDataset(datasetId: number, now: number, actor: Actor): Promise<Change<DatasetRow>> {
    return this.change(actor, 'removeDataset', async (tx, audit) => {
      const before = await this.lockDataset(tx, datasetId);
      await write(tx, dataSql.removeReplicas, datasetId, plainColumn(before.siteIds));
      await write(
        tx,
        'UPDATE datasets SET removed_at = to_timestamp($2::float8) WHERE id = $1',
        datasetId,
        now,
      );
      const after = await datasetOf(tx, datasetId);
      await audit(`dataset_${datasetId}`, before, after);
      return after;
    });
  }

  /** Copies appear at sites, and go; adding one that is there, or removing one that is not, changes nothing. */
  setReplicas(
    datasetId: number,
    change: { add?: readonly number[]; remove?: readonly number[] },
    actor: Actor,
  ): Promise<Change<DatasetRow>> {
    const { add = [], remove = [] } = change;
    return this.change(actor, 'setReplicas', async (tx, audit) => {
      const both = add.find((siteId) => remove.includes(siteId));
      if (both !== undefined) throw conflict(`site ${both} is named to be added and to be removed`);
      await this.shareSites(tx, add);
      const before = await this.lockDataset(tx, datasetId);
      await write(tx, dataSql.removeReplicas, datasetId, plainColumn(remove));
      await write(tx, dataSql.addReplicas, plainColumn(add.map(() => datasetId)), plainColumn(add));
      const after = await datasetOf(tx, datasetId);
      await audit(`dataset_${datasetId}`, before, after);
      return after;
    });
  }

  /**
   * Creates what is new by its name; what is there gets the size given, and the replicas beside those it has. All or none. Names are
   * distinct, and there are at most DATASETS_IMPORTED_MAX of them.
   */
  importDatasets(
    datasets: readonly NewDataset[],
    actor: Actor,
  ): Promise<Change<{ created: number; updated: number; datasetIds: number[] }>> {
    if (datasets.length > DATASETS_IMPORTED_MAX)
      throw new RangeError(
        `datasets has ${datasets.length} entries; accepted is up to ${DATASETS_IMPORTED_MAX}`,
      );
    return this.change(actor, 'importDatasets', async (tx, audit) => {
      const twice = firstRepeated(datasets.map(({ name }) => name));
      if (twice !== null) throw conflict(`two of the datasets are called ${twice}`);
      await this.shareSites(tx, [...new Set(datasets.flatMap(({ siteIds }) => siteIds))]);
      await write(tx, dataSql.lockDatasets);
      const [created, updated, datasetIds] = await read<[number, number, number[]]>(
        tx,
        dataSql.upsertDatasets,
        textColumn(datasets.map(({ name }) => name)),
        plainColumn(datasets.map(({ sizeMb }) => sizeMb)),
      );
      const replicas = datasets.flatMap(({ siteIds }, i) =>
        siteIds.map((siteId) => [datasetIds[i] as number, siteId] as const),
      );
      await write(
        tx,
        dataSql.addReplicas,
        plainColumn(replicas.map(([id]) => id)),
        plainColumn(replicas.map(([, siteId]) => siteId)),
      );
      await audit('datasets', null, { created, updated });
      return { created, updated, datasetIds };
    });
  }

  /** What is known of links is replaced. Each at most once. In the order given. */
  setLinks(links: readonly Link[], now: number, actor: Actor): Promise<Change<LinkRow[]>> {
    return this.change(actor, 'setLinks', async (tx, audit) => {
      await this.shareLinked(tx, links);
      const after = await read<LinkRow[]>(tx, dataSql.putLinks(rows.linkRow), ...linkColumns(links), now);
      await audit('links', null, links);
      return after;
    });
  }

  /** Its measurements go with it. */
  removeLink(fromSiteId: number, toSiteId: number, actor: Actor): Promise<Change<LinkRow>> {
    return this.change(actor, 'removeLink', async (tx, audit) => {
      await write(tx, dataSql.removeMeasurements, fromSiteId, toSiteId);
      const before = await read<LinkRow | null>(tx, dataSql.removeLink(rows.linkRow), fromSiteId, toSiteId);
      if (before === null)
        throw new Refusal('NOT_FOUND', `there is no link from site ${fromSiteId} to site ${toSiteId}`);
      await audit(`link_${fromSiteId}_${toSiteId}`, before, null);
      return before;
    });
  }

  /**
   * An agent has measured links to its site. Each link's values become the mean of its last measurements, whoever set it before.
   * Each link at most once. In the order given; nothing is written to the audit log.
   */
  reportLinks(
    siteId: number,
    measurements: readonly Omit<Link, 'toSiteId'>[],
    now: number,
  ): Promise<Change<LinkRow[]>> {
    const links = measurements.map((measurement) => ({ ...measurement, toSiteId: siteId }));
    return this.change({ userId: null, requestId: null }, 'reportLinks', async (tx) => {
      await this.shareLinked(tx, links);
      await write(tx, dataSql.insertMeasurements, ...linkColumns(links), now);
      const [from, to] = linkColumns(links);
      return read<LinkRow[]>(
        tx,
        dataSql.measuredLinks(rows.linkRow),
        from,
        to,
        now,
        MEASUREMENTS_AVERAGED,
        MEASUREMENTS_KEPT,
      );
    });
  }

  // Simulations -------------------------------------------------------------------------------------------------------

  /** Asks for a what-if against the policy in force. Refused when `openMax` of the user's have not ended. */
  addSimulation(simulation: NewSimulation, openMax: number, actor: Actor): Promise<Change<SimulationRow>> {
    const { userId, candidate, from, to, reason, now } = simulation;
    return this.change({ ...actor, reason }, 'simulate', async (tx, audit) => {
      // Of the user's requests at one time, one after another counts.
      await tx.$queryRawUnsafe('SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE', userId);
      const open = await read<number>(
        tx,
        'SELECT count(*)::text AS v FROM simulations WHERE user_id = $1 AND ended_at IS NULL',
        userId,
      );
      if (open >= openMax)
        throw conflict(`${open} simulations of this user have not ended; accepted: up to ${openMax}`);
      const id = await read<number>(
        tx,
        `INSERT INTO simulations (user_id, policy_version, candidate, from_at, to_at, reason, created_at)
         SELECT $1::integer, max(version), $2::jsonb, to_timestamp($3::float8), to_timestamp($4::float8), $5::text, to_timestamp($6::float8)
           FROM policies RETURNING id::text AS v`,
        userId,
        JSON.stringify(candidate),
        from,
        to,
        reason,
        now,
      );
      await audit(`simulation_${id}`, null, { candidate, from, to });
      return (await simulationOf(tx, id)) as SimulationRow;
    });
  }

  /** Ends a simulation that has not ended; who computes it notices within a second or so. */
  cancelSimulation(id: number, now: number, actor: Actor): Promise<Change<SimulationRow>> {
    return this.change(actor, 'cancelSimulation', async (tx, audit) => {
      await tx.$queryRawUnsafe('SELECT 1 FROM simulations WHERE id = $1 FOR NO KEY UPDATE', id);
      const before = await found('simulation', id, simulationOf(tx, id));
      if (before.endedAt !== null)
        throw conflict(`simulation ${id} has ended already: it is ${before.state}`);
      await write(
        tx,
        `UPDATE simulations SET state = 'CANCELLED', ended_at = to_timestamp($2::float8) WHERE id = $1`,
        id,
        now,
      );
      await audit(`simulation_${id}`, { state: before.state }, { state: 'CANCELLED' });
      return (await simulationOf(tx, id)) as SimulationRow;
    });
  }

  // Audit -------------------------------------------------------------------------------------------------------------

  /** An entry for something that the directory does not do itself, such as an operator's cancelling of others' jobs. */
  async audit(actor: Actor, action: string, target: string, before: unknown, after: unknown): Promise<void> {
    await writeAudit(this.prisma, actor, action, target, before, after);
  }

  // -------------------------------------------------------------------------------------------------------------------

  private async change<T>(
    actor: Actor,
    action: string,
    work: (
      tx: Transaction,
      audit: (target: string, before: unknown, after: unknown) => Promise<void>,
    ) => Promise<T>,
  ): Promise<Change<T>> {
    try {
      const value = await inTransaction(this.prisma, (tx) =>
        work(tx, (target, before, after) =>
          writeAudit(tx, actor, actor.action ?? action, target, before, after),
        ),
      );
      return { kind: 'done', value };
    } catch (error) {
      if (error instanceof Refusal) return { kind: 'refused', code: error.code, message: error.message };
      throw error;
    }
  }

  private async lockSite(tx: Transaction, id: number): Promise<SiteRow> {
    await tx.$queryRawUnsafe('SELECT 1 FROM sites WHERE id = $1 FOR NO KEY UPDATE', id);
    return inService('site', id, siteOf(tx, id));
  }

  private async lockDataset(tx: Transaction, id: number): Promise<DatasetRow> {
    await tx.$queryRawUnsafe(dataSql.lockDataset, id);
    return inService('dataset', id, datasetOf(tx, id));
  }

  /** All must be in service, and stay it meanwhile. */
  private async shareSites(tx: Transaction, siteIds: readonly number[]): Promise<void> {
    const good = new Set(await read<number[]>(tx, dataSql.shareSites, plainColumn(siteIds)));
    const bad = siteIds.find((id) => !good.has(id));
    if (bad !== undefined) throw new Refusal('NOT_FOUND', `there is no site ${bad} in service`);
  }

  private async shareLinked(tx: Transaction, links: readonly Link[]): Promise<void> {
    const twice = firstRepeated(links.map(({ fromSiteId, toSiteId }) => `${fromSiteId} to site ${toSiteId}`));
    if (twice !== null) throw conflict(`the link from site ${twice} is named twice`);
    const inside = links.find(({ fromSiteId, toSiteId }) => fromSiteId === toSiteId);
    if (inside !== undefined)
      throw conflict(`a link leads from one site to another, not within site ${inside.toSiteId}`);
    await this.shareSites(tx, [
      ...new Set(links.flatMap(({ fromSiteId, toSiteId }) => [fromSiteId, toSiteId])),
    ]);
  }

  private async lockMachine(tx: Transaction, id: number): Promise<MachineRow> {
    await tx.$queryRawUnsafe('SELECT 1 FROM machines WHERE id = $1 FOR NO KEY UPDATE', id);
    return inService('machine', id, machineOf(tx, id));
  }

  private async lockLicense(tx: Transaction, id: number): Promise<LicenseRow> {
    await tx.$queryRawUnsafe('SELECT 1 FROM licenses WHERE id = $1 FOR NO KEY UPDATE', id);
    return inService('license', id, licenseOf(tx, id));
  }

  /** Pools that a machine names must be in service, and the site's or the grid's. */
  private async checkLicenses(tx: Transaction, siteId: number, licenseIds: readonly number[]): Promise<void> {
    if (licenseIds.length === 0) return;
    const good = await read<number[]>(
      tx,
      `SELECT coalesce(json_agg(id), '[]')::text AS v FROM licenses
        WHERE id = ANY ($1::integer[]) AND removed_at IS NULL AND coalesce(site_id, $2::integer) = $2::integer`,
      plainColumn(licenseIds),
      siteId,
    );
    const bad = licenseIds.find((id) => !good.includes(id));
    if (bad !== undefined) throw conflict(`license ${bad} is not in service at site ${siteId}`);
  }
}

// Rows ------------------------------------------------------------------------------------------------------------------

type Reader = PrismaClient | Transaction;

async function one<T>(connection: Reader, row: string, table: string, key: string, id: number): Promise<T> {
  const [found] = await read<T[]>(
    connection,
    rows.listOf(row, `SELECT * FROM ${table} WHERE ${key} = $1::integer`),
    id,
  );
  return found as T;
}

const isHeld = ({ cpusUsed, tasksUsed }: MachineRow): boolean => cpusUsed + tasksUsed > 0;

const heldOf = ({ name, maxTasks, cpusUsed, tasksUsed }: MachineRow): string =>
  `jobs hold ${maxTasks === null ? `${cpusUsed} CPUs` : `${tasksUsed} places`} of machine ${name}`;

const siteOf = (tx: Reader, id: number) => one<SiteRow>(tx, rows.siteRow, 'sites', 'id', id);
const machineOf = (tx: Reader, id: number) => one<MachineRow>(tx, rows.machineRow, 'machines', 'id', id);
const licenseOf = (tx: Reader, id: number) => one<LicenseRow>(tx, rows.licenseRow, 'licenses', 'id', id);
const userOf = (tx: Reader, id: number) => one<UserRow>(tx, rows.userRow, 'users', 'id', id);
const apiKeyOf = (tx: Reader, id: number) => one<ApiKeyRow>(tx, rows.apiKeyRow, 'api_keys', 'id', id);

const datasetOf = (tx: Reader, id: number) => one<DatasetRow>(tx, rows.datasetRow, 'datasets', 'id', id);

const simulationOf = (tx: Reader, id: number) =>
  one<SimulationRow>(tx, rows.simulationRow, 'simulations', 'id', id);

const machinesOf = (tx: Reader, ids: readonly number[]) =>
  read<MachineRow[]>(
    tx,
    rows.listOf(rows.machineRow, 'SELECT * FROM machines WHERE id = ANY ($1::integer[]) ORDER BY id'),
    plainColumn(ids),
  );

async function policyOf(tx: Reader, version: number | null): Promise<PolicyRow | null> {
  const query =
    'SELECT * FROM policies WHERE version = coalesce($1::integer, version) ORDER BY version DESC LIMIT 1';
  return (await read<PolicyRow[]>(tx, rows.listOf(rows.policyRow, query), version))[0] ?? null;
}

async function found<T>(kind: string, id: number, row: Promise<T | undefined>): Promise<T> {
  const value = await row;
  if (value === undefined) throw new Refusal('NOT_FOUND', `there is no ${kind} ${id}`);
  return value;
}

async function inService<T extends { removedAt: number | null }>(
  kind: string,
  id: number,
  row: Promise<T | undefined>,
): Promise<T> {
  const value = await found(kind, id, row);
  if (value.removedAt !== null) throw new Refusal('NOT_FOUND', `${kind} ${id} is not in service any more`);
  return value;
}

/** Turns a violated unique index into a refusal. */
async function unique<T>(message: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isUniqueViolation(error)) throw conflict(message);
    throw error;
  }
}

const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002';

function firstRepeated(names: readonly string[]): string | null {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return null;
}

/** In the order of the parameters of sql/data.ts. */
const linkColumns = (links: readonly Link[]): [string, string, string, string, string] => [
  plainColumn(links.map((link) => link.fromSiteId)),
  plainColumn(links.map((link) => link.toSiteId)),
  plainColumn(links.map((link) => link.bandwidthMbPerS)),
  plainColumn(links.map((link) => link.rttS)),
  plainColumn(links.map((link) => link.loss)),
];

const json = (value: LocalPolicy | null) =>
  value === null ? Prisma.DbNull : (value as unknown as Prisma.InputJsonObject);

async function writeAudit(
  connection: Reader,
  actor: Actor,
  action: string,
  target: string,
  before: unknown,
  after: unknown,
): Promise<void> {
  const value = (of: unknown) => (of === null || of === undefined ? null : JSON.stringify(of));
  await write(
    connection,
    `INSERT INTO audits (user_id, action, target, reason, before, after, request_id) VALUES ($1, $2, $3, $4, $5::jsonb, $6::jsonb, $7)`,
    actor.userId,
    action,
    target,
    actor.reason ?? null,
    value(before),
    value(after),
    actor.requestId,
  );
}

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** In a time that does not depend on where they differ. */
const sameText = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
