/** Where a user has events of jobs sent: list, add, try, stop, remove. */

import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { Button, Check, Dialog, TextInput } from '../../ui/controls';
import { duration } from '../../ui/format';
import { Copy, Plus } from '../../ui/icons';
import { Ago, Badge, Card, Empty, Loaded, Skeleton, Table } from '../../ui/show';
import { toast, told } from '../../ui/toast';
import {
  CreateWebhookDocument,
  DeleteWebhookDocument,
  TestWebhookDocument,
  UpdateWebhookDocument,
  type WebhookPartsFragment as Webhook,
  WebhooksDocument,
} from './users.gql';

/** What most people want to know; all events in the order of the list of states. */
const KINDS = ['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;

export function Webhooks({ user, own }: { user: string; own: boolean }) {
  const page = useData(WebhooksDocument, { user }, { everyMs: 10_000 });
  const update = useAction(UpdateWebhookDocument);
  const remove = useAction(DeleteWebhookDocument);
  const test = useAction(TestWebhookDocument);
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Webhook | null>(null);

  const tried = async (webhook: Webhook): Promise<void> => {
    const done = await told(test.run({ webhook: webhook.id }));
    if (!done) return;
    const { delivered, status, reason, tookMs } = done.testWebhook.test;
    toast(delivered ? `It responded with ${status} after ${tookMs} ms.` : `It failed: ${reason}`, !delivered);
  };

  return (
    <Card
      title="Webhooks"
      flush
      actions={
        own && (
          <Button icon={<Plus size={14} />} onPress={() => setAdding(true)}>
            Add a webhook
          </Button>
        )
      }
    >
      <Loaded from={page} skeleton={<Skeleton height={80} />}>
        {({ webhooks }) => (
          <Table
            label="Webhooks"
            rows={webhooks}
            id={({ id }) => id}
            empty={<Empty title="No webhooks">Events of jobs are sent to their addresses.</Empty>}
            columns={[
              { key: 'name', header: 'For', cell: ({ name }) => <span className="strong">{name}</span> },
              { key: 'url', header: 'Address', cell: ({ url }) => <code>{url}</code> },
              {
                key: 'kinds',
                header: 'Events',
                minor: true,
                cell: ({ kinds }) => (kinds.length === 0 ? 'all' : kinds.join(', ').toLowerCase()),
              },
              { key: 'state', header: 'State', cell: (webhook) => <State webhook={webhook} /> },
              {
                key: 'delivered',
                header: 'Last delivery',
                right: true,
                cell: ({ deliveredAt }) => <Ago at={deliveredAt} />,
              },
              {
                key: 'actions',
                header: <span className="hidden-visually">Actions</span>,
                right: true,
                cell: (webhook) => (
                  <span className="row">
                    {own && (
                      <Button className="small" isDisabled={test.busy} onPress={() => void tried(webhook)}>
                        Test
                      </Button>
                    )}
                    <Button
                      className="small"
                      isDisabled={update.busy}
                      onPress={() =>
                        void told(update.run({ input: { webhookId: webhook.id, enabled: !webhook.enabled } }))
                      }
                    >
                      {webhook.enabled ? 'Disable' : 'Enable'}
                    </Button>
                    <Button className="small" variant="danger" onPress={() => setRemoving(webhook)}>
                      Remove
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {adding && <Add onClose={() => setAdding(false)} refresh={page.refresh} />}
      <Dialog
        title="Remove a webhook"
        open={removing !== null}
        onClose={() => setRemoving(null)}
        footer={
          <>
            <Button onPress={() => setRemoving(null)}>Keep it</Button>
            <Button
              variant="danger"
              className="solid"
              isDisabled={remove.busy}
              onPress={() =>
                void told(remove.run({ webhook: removing!.id }), 'The webhook is removed.').then(() => {
                  setRemoving(null);
                  page.refresh();
                })
              }
            >
              Remove it
            </Button>
          </>
        }
      >
        <p>
          Nothing more is sent to <code>{removing?.url}</code>. Disable it instead to continue later where it
          stopped.
        </p>
      </Dialog>
    </Card>
  );
}

function State({ webhook: { enabled, disabledReason, failures, failedReason, lagS } }: { webhook: Webhook }) {
  if (!enabled)
    return <Badge tone="warn">{disabledReason ? `Disabled: ${disabledReason}` : 'Disabled'}</Badge>;
  if (failures === 0) return <Badge tone="good">Enabled</Badge>;
  return <Badge tone="warn">{`Fails: ${failedReason}; ${duration(lagS)} behind`}</Badge>;
}

function Add({ onClose, refresh }: { onClose(): void; refresh(): void }) {
  const create = useAction(CreateWebhookDocument);
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [kinds, setKinds] = useState<readonly (typeof KINDS)[number][]>(['COMPLETED', 'FAILED']);
  const [secret, setSecret] = useState<string | null>(null);
  if (secret !== null)
    return (
      <Dialog
        title="The secret of the webhook"
        open
        onClose={onClose}
        footer={
          <>
            <Button
              icon={<Copy size={14} />}
              onPress={() =>
                void navigator.clipboard?.writeText(secret).then(
                  () => toast('Copied.'),
                  () => toast('It could not be copied; select it instead.', true),
                )
              }
            >
              Copy
            </Button>
            <Button variant="primary" onPress={onClose}>
              I have saved it
            </Button>
          </>
        }
      >
        <p>It signs the messages, and is shown only once.</p>
        <code className="secret">{secret}</code>
      </Dialog>
    );
  return (
    <Dialog
      title="Add a webhook"
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={name.trim() === '' || url.trim() === '' || create.busy}
          onPress={async () => {
            const done = await told(
              create.run({ input: { name: name.trim(), url: url.trim(), kinds: [...kinds] } }),
            );
            if (!done) return;
            setSecret(done.createWebhook.secret);
            refresh();
          }}
        >
          Add it
        </Button>
      }
    >
      <TextInput
        label="What it is for"
        value={name}
        onChange={setName}
        autoFocus
        placeholder="pipeline, chat, …"
      />
      <TextInput label="Address" value={url} onChange={setUrl} placeholder="https://…" />
      <fieldset className="stack">
        <legend>Events of your jobs</legend>
        {KINDS.map((kind) => (
          <Check
            key={kind}
            checked={kinds.includes(kind)}
            onChange={(on) => setKinds(KINDS.filter((one) => (one === kind ? on : kinds.includes(one))))}
          >
            {kind.toLowerCase()}
          </Check>
        ))}
      </fieldset>
      {kinds.length === 0 && <p className="muted small">None selected: all events, of every state.</p>}
    </Dialog>
  );
}
