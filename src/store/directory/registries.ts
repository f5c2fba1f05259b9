/** Users' credentials for registries of container images, without what decrypts them. */
import type { Sealed } from '../../platform/secrets.js';
import type { Database } from '../pool.js';
import { instant, plain } from '../read-rows.js';
import type { RegistryCredentialRow } from '../rows.js';
import { isMeant } from '../rules.js';
import { sql } from '../sql.js';
import { row } from '../statement.js';
import { type Actor, type Changes, Refusal, type Transaction } from './changes.js';
import { lockUser } from './users.js';

export interface NewCredential extends Sealed {
  registry: string;
  username: string;
  /** Epoch seconds. */
  setAt: number;
}

export interface SealedCredential extends Sealed {
  id: number;
  userId: number;
  registry: string;
  username: string;
}

/** A run, as its agent names it. */
export interface RunAtAgent {
  siteId: number;
  agentId: number;
  jobId: number;
  epoch: number;
  token: string | null;
}

export interface ImageOfRun {
  image: string;
  userId: number;
  /** Their name. */
  user: string;
}

const shown = { select: { registry: true, username: true, setAt: true, lastUsedAt: true } } as const;
const secret = {
  select: { id: true, userId: true, registry: true, username: true, sealed: true, keyId: true },
} as const;

export const registryChanges = (change: Changes, { prisma, pool }: Pick<Database, 'prisma' | 'pool'>) => ({
  /** In place of the one that the user had for this registry. */
  setRegistryCredential(userId: number, credential: NewCredential, limit: number, actor: Actor) {
    return change(actor, 'setRegistryCredential', async (tx, note): Promise<RegistryCredentialRow> => {
      const { registry, setAt, ...given } = credential;
      const before = await locked(tx, userId, registry);
      const owned = await tx.registryCredential.count({ where: { userId } });
      if (before === null && owned >= limit)
        throw new Refusal(
          'LIMIT_EXCEEDED',
          `the user has credentials for ${owned} registries; accepted: up to ${limit} (LIMIT_USER_REGISTRIES)`,
        );
      const data = { ...given, setAt: instant(setAt), lastUsedAt: null };
      const after = await tx.registryCredential.upsert({
        where: { userId_registry: { userId, registry } },
        create: { userId, registry, ...data },
        update: data,
        ...shown,
      });
      await note(`user_${userId}`, before, plain(after));
      return plain(after);
    });
  },

  removeRegistryCredential(userId: number, registry: string, actor: Actor) {
    return change(actor, 'removeRegistryCredential', async (tx, note): Promise<RegistryCredentialRow> => {
      const before = await locked(tx, userId, registry);
      if (before === null) throw new Refusal('NOT_FOUND', `the user has no credential for ${registry}`);
      await tx.registryCredential.delete({ where: { userId_registry: { userId, registry } } });
      await note(`user_${userId}`, before, null);
      return before;
    });
  },

  /** By registry. */
  async registryCredentials(userId: number): Promise<RegistryCredentialRow[]> {
    const rows = await prisma.registryCredential.findMany({
      ...{ where: { userId }, orderBy: { registry: 'asc' } },
      ...shown,
    });
    return rows.map(plain);
  },

  /** The image of a live run that has not been canceled, on machines of this agent; null: there is no such run, or it has no image. */
  async imageOfRun({ siteId, agentId, jobId, epoch, token }: RunAtAgent): Promise<ImageOfRun | null> {
    const found = await row<ImageOfRun & { assignedAt: number }>(
      pool,
      sql`
SELECT j.image, j.user_id AS "userId", u.name AS user, extract(epoch FROM r.assigned_at)::float8 AS "assignedAt"
  FROM runs r JOIN jobs j ON j.id = r.job_id AND j.epoch = r.epoch JOIN users u ON u.id = j.user_id
 WHERE r.job_id = ${jobId}::bigint AND r.epoch = ${epoch} AND r.site_id = ${siteId} AND r.ended_at IS NULL AND r.placed_by = 'SERVICE'
   AND j.state IN ('ASSIGNED', 'RUNNING') AND j.image IS NOT NULL
   AND CASE WHEN j.launch = 'ONCE' THEN r.machine_ids[1:1] ELSE r.machine_ids END
       && ARRAY(SELECT id FROM machines WHERE agent_id = ${agentId}::integer)`,
    );
    return found !== null && isMeant(token, found.assignedAt) ? found : null;
  },

  registryCredential(userId: number, registry: string): Promise<SealedCredential | null> {
    return prisma.registryCredential.findUnique({
      where: { userId_registry: { userId, registry } },
      ...secret,
    });
  },

  async registryCredentialUsed(id: number, at: number): Promise<void> {
    await prisma.registryCredential.updateMany({ where: { id }, data: { lastUsedAt: instant(at) } });
  },

  /** Those that are not encrypted with this key, by id. */
  sealedOtherwise(keyId: string, afterId: number, limit: number): Promise<SealedCredential[]> {
    return prisma.registryCredential.findMany({
      where: { keyId: { not: keyId }, id: { gt: afterId } },
      ...{ orderBy: { id: 'asc' }, take: limit },
      ...secret,
    });
  },

  /** Unless somebody has set another meanwhile. */
  async sealAnew({ id, sealed }: SealedCredential, now: Sealed): Promise<void> {
    await prisma.registryCredential.updateMany({ where: { id, sealed }, data: now });
  },
});

/** What a password is encrypted for: moved to another user, registry or user name, it cannot be decrypted. */
export const ownerOf = (of: { userId: number; registry: string; username: string }) =>
  ['registry', of.userId, of.registry, of.username] as const;

/** Changes of one user's credentials wait for one another. */
async function locked(
  tx: Transaction,
  userId: number,
  registry: string,
): Promise<RegistryCredentialRow | null> {
  await lockUser(tx, userId);
  const before = await tx.registryCredential.findUnique({
    where: { userId_registry: { userId, registry } },
    ...shown,
  });
  return before && plain(before);
}
