/** Users and their quotas. */
import type { UserClass } from '../../core/model.js';
import type { Database } from '../pool.js';
import { plain } from '../read-rows.js';
import type { UserRole, UserRow } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, found, type Transaction, unique } from './changes.js';

export interface NewUser {
  name: string;
  class: UserClass;
  role: UserRole;
  quotaShare: number;
  /** Issuer and subject at the identity provider. */
  identity?: string | null;
}

export interface Quota {
  quotaShare?: number;
  /** null: no limit; absent: as it is. */
  submission?: { limit: number; periodS: number } | null;
}

/** The name, or one like it that nobody has. */
async function freeName(tx: Transaction, name: string): Promise<string> {
  for (let i = 1; ; i++) {
    const tried = i === 1 ? name : `${name}-${i}`;
    if ((await tx.user.findUnique({ where: { name: tried }, select: { id: true } })) === null) return tried;
  }
}

async function created(tx: Transaction, user: NewUser) {
  if (user.identity) {
    const other = await tx.user.findUnique({ where: { identity: user.identity }, select: { name: true } });
    if (other !== null) throw conflict(`the user ${other.name} has this subject at the identity provider`);
  }
  return unique(`there is already a user named ${user.name}`, () => tx.user.create({ data: user }));
}

export const userChanges = (change: Changes, { prisma }: Pick<Database, 'prisma'>) => ({
  registerUser(user: NewUser, actor: Actor) {
    return change(actor, 'registerUser', async (tx, note): Promise<UserRow> => {
      const after = plain(await created(tx, user));
      await note(`user_${after.id}`, null, after);
      return after;
    });
  },

  /**
   * The active user behind an identity, with the role that the provider gives them; null: there is none. `create`: one is made of whoever
   * comes for the first time, of this name or, where it is taken, one that is like it. A name alone never makes anybody a user who is there.
   */
  async userOfIdentity(
    { identity, name, role }: { identity: string; name: string; role: UserRole | null },
    create: boolean,
  ): Promise<Pick<UserRow, 'id' | 'role'> | null> {
    const known = await prisma.user.findUnique({ where: { identity } });
    if (known !== null && (role === null || role === known.role)) return known.active ? known : null;
    if (known === null && !create) return null;
    const actor = { userId: null, requestId: null, action: 'signIn' };
    const changed = await change(actor, 'signIn', async (tx, note): Promise<UserRow> => {
      // One after the other: the same person may come twice at once.
      await tx.$queryRaw(sql`SELECT pg_advisory_xact_lock(hashtext(${identity}))::text`);
      const before = await tx.user.findUnique({ where: { identity } });
      // Another sign-in came first and did it all.
      if (before !== null && (role === null || role === before.role)) return plain(before);
      const after = plain(
        before === null
          ? await tx.user.create({
              data: {
                identity,
                name: await freeName(tx, name),
                class: 'REGULAR',
                role: role ?? 'USER',
                quotaShare: 1,
              },
            })
          : await tx.user.update({ where: { identity }, data: { role: role ?? before.role } }),
      );
      await note(`user_${after.id}`, before && plain(before), after);
      return after;
    });
    if (changed.kind === 'refused') throw new Error(changed.message);
    return changed.value.active ? changed.value : null;
  },

  /** What is absent stays. The last active administrator stays one. Whoever is deactivated loses what the service keeps to act for them. */
  updateUser(id: number, given: { class?: UserClass; role?: UserRole; active?: boolean }, actor: Actor) {
    return change(actor, 'updateUser', async (tx, note): Promise<UserRow> => {
      // All administrators, so that two cannot give it up at once.
      const admins = await tx.$queryRaw<{ id: number }[]>(
        sql`SELECT id FROM users WHERE role = 'ADMIN' AND active OR id = ${id} ORDER BY id FOR NO KEY UPDATE`,
      );
      const before = await userOf(tx, id);
      const others = admins.some((admin) => admin.id !== id);
      const stays = (given.role ?? before.role) === 'ADMIN' && (given.active ?? before.active);
      if (before.role === 'ADMIN' && before.active && !stays && !others)
        throw conflict(`${before.name} is the last active administrator`);
      const after = plain(await tx.user.update({ where: { id }, data: given }));
      if (!after.active) await tx.registryCredential.deleteMany({ where: { userId: id } });
      await note(`user_${id}`, before, after);
      return after;
    });
  },

  setQuota(id: number, { quotaShare, submission }: Quota, actor: Actor) {
    return change(actor, 'setQuota', async (tx, note): Promise<UserRow> => {
      await lockUser(tx, id);
      const before = await userOf(tx, id);
      const data = {
        ...(quotaShare !== undefined && { quotaShare }),
        ...(submission !== undefined && {
          submissionLimit: submission?.limit ?? null,
          submissionPeriodS: submission?.periodS ?? null,
        }),
      };
      const after = plain(await tx.user.update({ where: { id }, data }));
      await note(`user_${id}`, before, after);
      return after;
    });
  },
});

export const lockUser = (tx: Transaction, id: number): Promise<unknown> =>
  tx.$queryRaw(sql`SELECT 1 FROM users WHERE id = ${id} FOR NO KEY UPDATE`);

export const userOf = async (tx: Transaction, id: number): Promise<UserRow> =>
  plain(found('user', id, await tx.user.findUnique({ where: { id } })));
