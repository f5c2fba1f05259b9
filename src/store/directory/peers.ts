/** Peers: other services, each with a site that stands for it, a user of the role PEER and a key for that site. */
import type { QueueLoad } from '../../core/grid-tree/index.js';
import { MAX } from '../../platform/limits.js';
import { withdrawAll } from '../federation/offers.js';
import type { MachineKind } from '../federation.js';
import type { Prisma } from '../generated/client.js';
import { commitWith, type Database, transaction } from '../pool.js';
import { instant, plain } from '../read-rows.js';
import type { Plain } from '../rows.js';
import { sql } from '../sql.js';
import { row, value } from '../statement.js';
import { type Actor, type Changes, conflict, found, Refusal, type Transaction, unique } from './changes.js';
import { makeKey } from './keys.js';

/** A peer as people see it: without its key. */
export type PeerRow = Plain<
  Omit<Prisma.PeerModel, 'secret' | 'cursor' | 'worker' | 'workerSeenAt' | 'kinds' | 'load'>
> & {
  name: string;
  kinds: readonly MachineKind[];
  load: QueueLoad | null;
  users: readonly { name: string; userId: number }[];
};

export interface PeerSettings {
  name: string;
  url?: string;
  secret?: string;
  forward?: PeerRow['forward'];
  neededAfterS?: number;
  hops?: number;
  lostAfterS?: number;
  foreignMax?: number;
  foreignBoost?: number;
  userId?: number;
  /** By name at the peer; null: as all others. */
  users?: readonly { name: string; userId: number | null }[];
}

/** What a peer's job here is there. */
export interface ForeignJobRow {
  siteId: number;
  ownerJobId: number;
  ownerUser: string;
  epoch: number | null;
  hops: number;
  /** The services that have it. */
  visited: readonly string[];
}

/** What decides which jobs a peer is offered. */
const OFFERED_BY = ['forward', 'neededAfterS', 'hops'] as const;

const shown = {
  omit: { secret: true, cursor: true, worker: true, workerSeenAt: true },
  include: {
    site: { select: { name: true } },
    users: { select: { name: true, userId: true }, orderBy: { name: 'asc' } },
  },
} as const;
type Shown = Prisma.PeerGetPayload<typeof shown>;
type KeptKind = Omit<MachineKind, 'devices'> & Partial<Pick<MachineKind, 'devices'>>;

const peerRow = ({ site, kinds, load, ...peer }: Shown): PeerRow => ({
  ...plain(peer),
  name: site.name,
  // JSON, as it was checked when the peer told it; in the release before without devices.
  kinds: (kinds as unknown as KeptKind[]).map((kind) => ({ devices: [], ...kind })),
  load: load as unknown as QueueLoad | null,
});

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: each change is a short function
export function peerChanges(change: Changes, database: Pick<Database, 'prisma' | 'pool'>) {
  const setIsolated = (siteId: number, isolated: boolean, action: string, actor: Actor) =>
    change(actor, action, async (tx, note): Promise<PeerRow> => {
      const before = await locked(tx, siteId);
      const after = peerRow(await tx.peer.update({ where: { siteId }, data: { isolated }, ...shown }));
      await note(`site_${siteId}`, before, after);
      return after;
    });

  const counts = (siteId: number): Promise<{ foreign: number; offered: number; claimed: number }> =>
    value(
      database.pool,
      sql`
SELECT json_build_object(
  'foreign', (SELECT count(*) FROM foreign_jobs WHERE site_id = ${siteId} AND told < 2),
  'offered', (SELECT count(*) FROM offers WHERE site_id = ${siteId} AND epoch IS NULL AND NOT withdrawn),
  'claimed', (SELECT count(*) FROM runs WHERE site_id = ${siteId} AND ended_at IS NULL)) AS v`,
    );

  const withdrawWaiting = (siteId: number): Promise<unknown> =>
    transaction(database, (tx) => commitWith(tx, withdrawAll(siteId)));

  return {
    /** Registers the peer of this name, with a key for it, or changes what is given of it. */
    async federate({ name, users = [], ...settings }: PeerSettings, actor: Actor) {
      const changed = await change(
        actor,
        'federate',
        async (tx, note): Promise<{ peer: PeerRow; secret: string | null }> => {
          // Two who register it at once take turns: the second changes what the first has made.
          await tx.$queryRaw(sql`SELECT pg_advisory_xact_lock(hashtext(${`peer ${name}`}))::text`);
          await hosts(tx, [settings.userId, ...users.map(({ userId }) => userId)]);
          const site = await tx.site.findFirst({ where: { name, removedAt: null } });
          const before = site && (await tx.peer.findUnique({ where: { siteId: site.id }, ...shown }));
          if (site !== null && before === null) throw conflict(`there is already a site named ${name}`);
          if (before !== null) {
            await tx.peer.update({ where: { siteId: before.siteId }, data: settings });
            const after = await withUsers(tx, before.siteId, users);
            await note(`site_${before.siteId}`, peerRow(before), after);
            return { peer: after, secret: null };
          }
          const { siteId, secret } = await register(tx, name, settings);
          const made = await withUsers(tx, siteId, users);
          await note(`site_${siteId}`, null, made);
          return { peer: made, secret };
        },
      );
      // What waits is offered anew, by the rule that holds now.
      if (changed.kind === 'done' && OFFERED_BY.some((field) => settings[field] !== undefined))
        await withdrawWaiting(changed.value.peer.siteId);
      return changed;
    },

    /** At once: what is decided after it knows. What waited is withdrawn behind it (`withdraw`), now or by whoever talks to the peer. */
    async isolatePeer(siteId: number, actor: Actor) {
      const changed = await setIsolated(siteId, true, 'isolatePeer', actor);
      if (changed.kind === 'done') await withdrawWaiting(siteId);
      return changed;
    },

    rejoinPeer: (siteId: number, actor: Actor) => setIsolated(siteId, false, 'rejoinPeer', actor),

    /** Only when nothing of either is left with the other: nobody could tell what became of it. */
    removePeer(siteId: number, now: number, actor: Actor) {
      return change(actor, 'removePeer', async (tx, note): Promise<PeerRow> => {
        const before = await locked(tx, siteId);
        if (!before.isolated) throw conflict(`peer ${before.name} is not isolated: isolate it first`);
        const { foreign, claimed } = await counts(siteId);
        if (foreign + claimed > 0)
          throw conflict(
            `${foreign} jobs of peer ${before.name} are here, and it runs ${claimed} jobs of this service: wait until they have ended`,
          );
        const removedAt = instant(now);
        await tx.site.update({ where: { id: siteId }, data: { removedAt } });
        await tx.apiKey.updateMany({ where: { siteId, revokedAt: null }, data: { revokedAt: removedAt } });
        const data = { url: null, secret: null };
        const after = peerRow(await tx.peer.update({ where: { siteId }, data, ...shown }));
        await note(`site_${siteId}`, before, after);
        return after;
      });
    },

    /** In service, by name. */
    async peers(): Promise<PeerRow[]> {
      const where = { site: { removedAt: null } };
      const orderBy = { site: { name: 'asc' } } as const;
      return (await database.prisma.peer.findMany({ where, orderBy, ...shown })).map(peerRow);
    },

    async peersByIds(siteIds: readonly number[]): Promise<PeerRow[]> {
      const where = { siteId: { in: [...siteIds] } };
      return (await database.prisma.peer.findMany({ where, ...shown })).map(peerRow);
    },

    peerCounts: (siteId: number) => counts(siteId),

    /** What the job is at the peer that offered it; null: it is ours. */
    foreignJob(jobId: number): Promise<ForeignJobRow | null> {
      return row(
        database.pool,
        sql`
SELECT site_id AS "siteId", owner_job_id AS "ownerJobId", owner_user AS "ownerUser", epoch, hops, visited FROM foreign_jobs WHERE job_id = ${jobId}`,
      );
    },

    /** Who we are to peers. */
    serviceId: (): Promise<string> => value(database.pool, sql`SELECT id AS v FROM service`),
  };
}

/** As whom peers' jobs may be here: never as anybody who may do more than submit. */
async function hosts(tx: Transaction, userIds: readonly (number | null | undefined)[]): Promise<void> {
  const ids = userIds.filter((id) => id !== null && id !== undefined);
  const users = await tx.user.findMany({ where: { id: { in: ids } } });
  for (const id of ids) {
    const { name, role } = found('user', id, users.find((one) => one.id === id) ?? null);
    if (role !== 'USER' && role !== 'PEER')
      throw conflict(`the user ${name} has the role ${role}; jobs of peers can only belong to a USER`);
  }
}

/** With these users mapped, or not any more. */
async function withUsers(
  tx: Transaction,
  siteId: number,
  users: NonNullable<PeerSettings['users']>,
): Promise<PeerRow> {
  for (const { name, userId } of users) {
    if (userId === null) await tx.peerUser.deleteMany({ where: { siteId, name } });
    else
      await tx.peerUser.upsert({
        where: { siteId_name: { siteId, name } },
        create: { siteId, name, userId },
        update: { userId },
      });
  }
  const peer = peerRow(await tx.peer.findUniqueOrThrow({ where: { siteId }, ...shown }));
  if (peer.users.length > MAX.foreignUsers)
    throw new Refusal(
      'LIMIT_EXCEEDED',
      `the peer has ${peer.users.length} mapped users; accepted: up to ${MAX.foreignUsers}`,
    );
  return peer;
}

/** Behind whoever decides about its jobs. */
async function locked(tx: Transaction, siteId: number): Promise<PeerRow> {
  await tx.$queryRaw(sql`SELECT 1 FROM peers WHERE site_id = ${siteId} FOR NO KEY UPDATE`);
  return peerRow(
    found(
      'peer',
      siteId,
      await tx.peer.findFirst({ where: { siteId, site: { removedAt: null } }, ...shown }),
    ),
  );
}

async function register(
  tx: Transaction,
  name: string,
  { userId, ...settings }: Omit<PeerSettings, 'name' | 'users'>,
): Promise<{ siteId: number; secret: string }> {
  // It has no machines; that it is not UP keeps schedulers from asking.
  const site = await unique(`there is already a site named ${name}`, () =>
    tx.site.create({ data: { name, state: 'DRAINING' } }),
  );
  const userName = `peer-${name}`;
  const known = await tx.user.findUnique({ where: { name: userName } });
  if (known !== null && known.role !== 'PEER') throw conflict(`the user ${userName} is not a PEER`);
  const user = known ?? (await tx.user.create({ data: { name: userName, role: 'PEER' } }));
  const data = { ...settings, siteId: site.id, userId: userId ?? user.id };
  await tx.peer.create({ data });
  const { secret } = await makeKey(tx, { userId: user.id, siteId: site.id, name: userName });
  return { siteId: site.id, secret };
}
