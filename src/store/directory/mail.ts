/** What users have chosen to get mail about, and where. */
import { DEFAULT_MAIL_KINDS, type MailKind } from '../job-fields.js';
import type { Database } from '../pool.js';
import { plain } from '../read-rows.js';
import type { MailSettingsRow } from '../rows.js';
import type { Actor, Changes, Transaction } from './changes.js';
import { lockUser, userOf } from './users.js';

export const mailChanges = (change: Changes, { prisma }: Pick<Database, 'prisma'>) => ({
  /** Kinds that were unsubscribed from are subscribed to again. */
  setMail(userId: number, kinds: readonly MailKind[], actor: Actor) {
    return change(actor, 'setMail', async (tx, note): Promise<MailSettingsRow> => {
      const before = await settings(tx, userId);
      const off = (before?.off ?? []).filter((kind) => !kinds.includes(kind as MailKind));
      return saved(tx, note, before, { userId, kinds: [...kinds], off });
    });
  },

  /** Nothing goes to the address that did not work until another one, or the same again, is set. */
  setMailAddress(userId: number, address: string | null, actor: Actor) {
    return change(actor, 'setMailAddress', async (tx, note): Promise<MailSettingsRow> => {
      return saved(tx, note, await settings(tx, userId), { userId, address, problem: null });
    });
  },

  /** By a link in a mail. */
  unsubscribeMail(userId: number, kinds: readonly MailKind[]) {
    const actor = { userId, requestId: null, reason: 'a link in a mail' };
    return change(actor, 'unsubscribeMail', async (tx, note): Promise<MailSettingsRow> => {
      const before = await settings(tx, userId);
      // A link is followed more than once.
      if (before && kinds.every((kind) => before.off.includes(kind) && !before.kinds.includes(kind)))
        return before;
      const off = [...new Set([...(before?.off ?? []), ...kinds])].sort();
      const left = (before?.kinds ?? DEFAULT_MAIL_KINDS).filter((kind) => !kinds.includes(kind as MailKind));
      return saved(tx, note, before, { userId, kinds: left, off });
    });
  },

  async mailSettings(userId: number): Promise<MailSettingsRow | null> {
    const settings = await prisma.mailSettings.findUnique({ where: { userId } });
    return settings && plain(settings);
  },
});

/** Whoever changes them waits for another who does. */
async function settings(tx: Transaction, userId: number): Promise<MailSettingsRow | null> {
  await lockUser(tx, userId);
  await userOf(tx, userId);
  const row = await tx.mailSettings.findUnique({ where: { userId } });
  return row && plain(row);
}

async function saved(
  tx: Transaction,
  note: (target: string, before: unknown, after: unknown) => Promise<void>,
  before: MailSettingsRow | null,
  data: Pick<MailSettingsRow, 'userId'> & Partial<Omit<MailSettingsRow, 'mailedAt'>>,
): Promise<MailSettingsRow> {
  const { userId } = data;
  const after = plain(await tx.mailSettings.upsert({ where: { userId }, create: data, update: data }));
  await note(`user_${userId}`, before, after);
  return after;
}
