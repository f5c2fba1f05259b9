/** Webhooks: everybody's own; an ADMIN sees, changes and removes those of all. Who delivers sees to it that only what the owner may see is sent. */
import { MAX } from '../../platform/limits.js';
import type { WebhookWithSecret } from '../../store/directory/webhooks.js';
import type { WebhookRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { given, notNull, patch, text, within } from '../check.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type {
  CreateWebhookInput,
  RotateWebhookSecretInput,
  UpdateWebhookInput,
  WebhookTest,
} from '../generated/types.js';
import { localId } from '../ids.js';
import { guarded, noPortal } from './access.js';
import { jobFilter } from './job-filter.js';
import { actor, done, type ServiceParts } from './parts.js';

export function createWebhooksService(parts: ServiceParts) {
  const { directory, limits, now } = parts;

  async function webhookOf(viewer: Viewer, id: string, others: boolean): Promise<number> {
    const webhookId = localId('webhook', id, 'webhookId');
    const [webhook] = await directory.webhooksByIds([webhookId]);
    if (!webhook || (webhook.userId !== viewer.userId && !(others && viewer.role === 'ADMIN')))
      throw notFound('webhook', id);
    return webhookId;
  }

  return {
    ...guarded({
      async webhooks(viewer: Viewer, user: string | null): Promise<WebhookRow[]> {
        const userId = user === null ? viewer.userId : localId('user', user, 'userId');
        if (userId !== viewer.userId && viewer.role !== 'ADMIN')
          throw new ApiError('FORBIDDEN', 'webhooks: only an ADMIN can see those of other users');
        return directory.webhooksOfUser(userId);
      },

      async createWebhook(
        viewer: Viewer,
        input: CreateWebhookInput,
        requestId: string,
      ): Promise<WebhookWithSecret> {
        noPortal(viewer, 'createWebhook', SECRETS);
        const settings = {
          name: text('name', input.name, MAX.nameChars, 1),
          url: endpoint('url', input.url),
          filter: jobFilter('filter', input.filter ?? null),
          kinds: [...new Set(input.kinds)],
        };
        const by = actor(viewer, requestId);
        return done(await directory.createWebhook(viewer.userId, settings, limits.userWebhooks, by));
      },

      async updateWebhook(viewer: Viewer, input: UpdateWebhookInput, requestId: string): Promise<WebhookRow> {
        noPortal(viewer, 'updateWebhook', SECRETS);
        const id = await webhookOf(viewer, input.webhookId, true);
        const kinds = notNull('kinds', input.kinds);
        const settings = patch({
          name: given('name', input.name, text, MAX.nameChars, 1),
          url: given('url', input.url, endpoint),
          filter: given('filter', input.filter, jobFilter),
          kinds: kinds && [...new Set(kinds)],
          enabled: notNull('enabled', input.enabled),
        });
        return done(await directory.updateWebhook(id, settings, actor(viewer, requestId)));
      },

      async rotateWebhookSecret(
        viewer: Viewer,
        { webhookId, keepFormerS }: RotateWebhookSecretInput,
        requestId: string,
      ): Promise<WebhookWithSecret> {
        noPortal(viewer, 'rotateWebhookSecret', SECRETS);
        const until = now() + within('keepFormerS', keepFormerS, 0, MAX.formerSecretS);
        const id = await webhookOf(viewer, webhookId, false);
        return done(await directory.rotateWebhookSecret(id, until, actor(viewer, requestId)));
      },

      async removeWebhook(viewer: Viewer, webhook: string, requestId: string): Promise<WebhookRow> {
        const id = await webhookOf(viewer, webhook, true);
        return done(await directory.deleteWebhook(id, actor(viewer, requestId)));
      },

      async testWebhook(viewer: Viewer, webhook: string): Promise<WebhookTest> {
        const answer = await parts.testWebhook(await webhookOf(viewer, webhook, false));
        if (answer === null) throw notFound('webhook', webhook);
        const { ok, status, reason, tookMs } = answer;
        return { delivered: ok, status, reason: reason ?? null, tookMs };
      },
    }),

    /** Age of an event that waits. */
    lagS: (behindSince: number | null): number =>
      behindSince === null ? 0 : Math.max(0, now() - behindSince),
  };
}

const SECRETS = 'webhooks';

/** Whether its address may be connected to shows when it is. */
function endpoint(field: string, url: string): string {
  const at = URL.canParse(text(field, url, MAX.urlChars, 1)) ? new URL(url) : null;
  if (at === null || !/^https?:$/.test(at.protocol) || at.username !== '' || at.password !== '')
    throw badInput(field, url, 'an https: URL without user and password');
  return at.href;
}
