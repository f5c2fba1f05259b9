/** Webhooks as their owners have them. */
import { randomBytes } from 'node:crypto';
import { latestCursor } from '../images.js';
import type { JobFilter } from '../job-filter.js';
import type { Database } from '../pool.js';
import { instant, json, plain } from '../read-rows.js';
import type { WebhookRow } from '../rows.js';
import { raw, sql } from '../sql.js';
import { type Actor, type Changes, found, Refusal, type Transaction } from './changes.js';

export interface WebhookSettings {
  name: string;
  url: string;
  filter: JobFilter;
  /** Of events; none: all. */
  kinds: readonly string[];
}

/** Goes with a secret that is shown this once. */
export interface WebhookWithSecret {
  webhook: WebhookRow;
  secret: string;
}

const shown = { omit: { secret: true, formerSecret: true, version: true, cursor: true } } as const;
/** What is forgotten when people have changed it: it is tried again at once. */
const UNTRIED = { failures: 0, failingSince: null, nextAttemptAt: null } as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: each change is a short function
export function webhookChanges(change: Changes, { prisma }: Pick<Database, 'prisma'>) {
  return {
    /** Begins behind the latest event. */
    createWebhook(userId: number, settings: WebhookSettings, limit: number, actor: Actor) {
      return change(actor, 'createWebhook', async (tx, note): Promise<WebhookWithSecret> => {
        await tx.$queryRaw(sql`SELECT 1 FROM users WHERE id = ${userId} FOR NO KEY UPDATE`);
        const owned = await tx.webhook.count({ where: { userId } });
        if (owned >= limit)
          throw new Refusal(
            'LIMIT_EXCEEDED',
            `the user has ${owned} webhooks; accepted: up to ${limit} (LIMIT_USER_WEBHOOKS)`,
          );
        const [at] = await tx.$queryRaw<{ cursor: bigint }[]>(sql`SELECT ${raw(latestCursor)} AS cursor`);
        const secret = newSecret();
        const data = { userId, ...stored(settings), secret, cursor: at!.cursor };
        const webhook = plain(await tx.webhook.create({ data, ...shown }));
        await note(`webhook_${webhook.id}`, null, webhook);
        return { webhook, secret };
      });
    },

    /** `enabled` true: it goes on where it was. */
    updateWebhook(id: number, settings: Partial<WebhookSettings> & { enabled?: boolean }, actor: Actor) {
      return change(actor, 'updateWebhook', async (tx, note): Promise<WebhookRow> => {
        const before = await locked(tx, id);
        const { enabled, ...others } = settings;
        const data = {
          ...stored(others),
          ...(enabled !== undefined && { enabled, disabledReason: null }),
          ...UNTRIED,
          version: { increment: 1 },
        };
        const after = plain(await tx.webhook.update({ where: { id }, data, ...shown }));
        await note(`webhook_${id}`, before, after);
        return after;
      });
    },

    /** Both secrets sign until `formerUntil`, epoch seconds. One that was replaced before does not any more. */
    rotateWebhookSecret(id: number, formerUntil: number, actor: Actor) {
      return change(actor, 'rotateWebhookSecret', async (tx, note): Promise<WebhookWithSecret> => {
        const before = await locked(tx, id);
        const { secret: formerSecret } = await tx.webhook.findUniqueOrThrow({ where: { id } });
        const secret = newSecret();
        const data = {
          ...{ secret, formerSecret, formerUntil: instant(formerUntil) },
          version: { increment: 1 },
        };
        const webhook = plain(await tx.webhook.update({ where: { id }, data, ...shown }));
        await note(`webhook_${id}`, before, webhook);
        return { webhook, secret };
      });
    },

    deleteWebhook(id: number, actor: Actor) {
      return change(actor, 'deleteWebhook', async (tx, note): Promise<WebhookRow> => {
        const before = await locked(tx, id);
        await tx.webhook.delete({ where: { id } });
        await note(`webhook_${id}`, before, null);
        return before;
      });
    },

    /** By the service, unless people have changed it meanwhile. */
    disableWebhook(id: number, version: number, reason: string) {
      const actor = { userId: null, requestId: null, reason };
      return change(actor, 'disableWebhook', async (tx, note): Promise<void> => {
        const before = await locked(tx, id);
        const where = { id, version, enabled: true };
        const data = { enabled: false, disabledReason: reason, nextAttemptAt: null };
        const { count } = await tx.webhook.updateMany({ where, data });
        if (count > 0)
          await note(`webhook_${id}`, before, { ...before, enabled: false, disabledReason: reason });
      });
    },

    async webhooksByIds(ids: readonly number[]): Promise<WebhookRow[]> {
      return (await prisma.webhook.findMany({ where: { id: { in: [...ids] } }, ...shown })).map(plain);
    },

    /** By id. */
    async webhooksOfUser(userId: number): Promise<WebhookRow[]> {
      return (await prisma.webhook.findMany({ where: { userId }, orderBy: { id: 'asc' }, ...shown })).map(
        plain,
      );
    },
  };
}

const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

const stored = ({ filter, kinds, ...others }: Partial<WebhookSettings>) => ({
  ...(others as WebhookSettings),
  ...((filter && { filter: json(filter) }) as { filter: ReturnType<typeof json> }),
  ...((kinds && { kinds: [...kinds] }) as { kinds: string[] }),
});

async function locked(tx: Transaction, id: number): Promise<WebhookRow> {
  await tx.$queryRaw(sql`SELECT 1 FROM webhooks WHERE id = ${id} FOR NO KEY UPDATE`);
  return plain(found('webhook', id, await tx.webhook.findUnique({ where: { id }, ...shown })));
}
