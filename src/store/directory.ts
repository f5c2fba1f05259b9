/**
 * The administration of sites, machines, licenses, users, keys, policies and data, by parts. Locks are taken in the store's order
 * (see postgres.ts): the row that is changed before whatever writes an event.
 */
import { DEFAULT_POLICY } from '../core/policy.js';
import { changesOf } from './directory/changes.js';
import { dataChanges } from './directory/data.js';
import { holdChanges } from './directory/holds.js';
import { keyChanges } from './directory/keys.js';
import { machineChanges } from './directory/machines.js';
import { mailChanges } from './directory/mail.js';
import { peerChanges } from './directory/peers.js';
import { policyChanges } from './directory/policies.js';
import { registryChanges } from './directory/registries.js';
import { schedulerChanges } from './directory/schedulers.js';
import { signInChanges } from './directory/sign-ins.js';
import { siteChanges } from './directory/sites.js';
import { userChanges } from './directory/users.js';
import { webhookChanges } from './directory/webhooks.js';
import type { Database } from './pool.js';
import { json } from './read-rows.js';

export type { Actor, Change } from './directory/changes.js';
export type { NewDataset, ReplicaLocation, StagingReport } from './directory/data.js';
export type { HoldOutcome } from './directory/holds.js';
export type { NewSimulation } from './directory/policies.js';
export { isSession, type SessionOrigin } from './directory/sign-ins.js';

export type Directory = ReturnType<typeof openDirectory>;

export function openDirectory(database: Pick<Database, 'prisma' | 'pool'>) {
  const { prisma } = database;
  const change = changesOf(database);
  return {
    /** Policy version 1 and the user `admin`, where they are missing. Any number of processes may call it at once. */
    async bootstrap(): Promise<{ adminId: number }> {
      const policy = { version: 1, document: json(DEFAULT_POLICY), reason: 'installation' };
      await prisma.policy.createMany({ data: [policy], skipDuplicates: true });
      await prisma.user.createMany({ data: [{ name: 'admin', role: 'ADMIN' }], skipDuplicates: true });
      const admin = await prisma.user.findUniqueOrThrow({ where: { name: 'admin' }, select: { id: true } });
      return { adminId: admin.id };
    },

    ...siteChanges(change),
    ...schedulerChanges(change),
    ...machineChanges(change),
    ...holdChanges(change),
    ...userChanges(change, database),
    ...keyChanges(change, database),
    ...signInChanges(change, database),
    ...peerChanges(change, database),
    ...policyChanges(change),
    ...dataChanges(change),
    ...webhookChanges(change, database),
    ...mailChanges(change, database),
    ...registryChanges(change, database),
  };
}
