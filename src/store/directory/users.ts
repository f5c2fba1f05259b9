/** Users and their quotas. */
import type { UserClass } from '../../core/model.js';
import { plain } from '../read-rows.js';
import type { UserRole, UserRow } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, found, type Transaction, unique } from './changes.js';

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

export const userChanges = (change: Changes) => ({
  registerUser(user: NewUser, actor: Actor) {
    return change(actor, 'registerUser', async (tx, note): Promise<UserRow> => {
      const after = plain(
        await unique(`a user is called ${user.name}`, () => tx.user.create({ data: user })),
      );
      await note(`user_${after.id}`, null, after);
      return after;
    });
  },

  /** What is absent stays. The last active administrator stays one. */
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
