/** One user: what they may do, what they use, their keys, and where events of their jobs are sent. */
import './users.css';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { LIVE_STATES, PENDING_STATES } from '../../api/states.gql';
import { InviteDialog } from '../../parts/invitation';
import { usePasswords } from '../../shell/sign-in-by';
import { useViewer } from '../../shell/viewer';
import { Button, Check, Choice, Dialog, TextInput } from '../../ui/controls';
import { copy } from '../../ui/copy';
import { count, counted, duration, figure, words } from '../../ui/format';
import { Copy, Plus } from '../../ui/icons';
import { Ago, At, Badge, Card, Empty, Facts, Loaded, Page, Skeleton, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import { SignInOf } from './sign-in';
import { CLASSES, Quota, QuotaInput, ROLES } from './users';
import {
  CreateKeyDocument,
  type KeyPartsFragment,
  KeySitesDocument,
  RevokeKeyDocument,
  type SessionPartsFragment,
  SetQuotaDocument,
  UpdateUserDocument,
  UserCountsDocument,
  UserPageDocument,
  type UserPartsFragment,
} from './users.gql';
import { Webhooks } from './webhooks';

type User = UserPartsFragment;
type WithKeys = User & {
  keys: { nodes: KeyPartsFragment[]; pageInfo: { hasNextPage: boolean } };
  passwordSetAt?: string | null;
  invitedUntil?: string | null;
  sessions?: SessionPartsFragment[] | null;
};

export function UserPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const viewer = useViewer();
  const own = id === viewer.id;
  // Operators see whose jobs they are, not by which keys.
  const keys = own || viewer.may('ADMIN');
  const passwords = usePasswords();
  const page = useData(UserPageDocument, { id, keys }, { everyMs: 15_000 });
  return (
    <Loaded
      from={page}
      skeleton={
        <Page title="User">
          <Skeleton height={300} />
        </Page>
      }
    >
      {({ node }) => {
        if (!node || !('quotaShare' in node))
          return (
            <Page title="No such user">
              <Empty title="This user does not exist, or you may not see it." />
            </Page>
          );
        const user = node as User;
        return (
          <Page
            title={
              <>
                {user.name}
                <Badge tone="accent">{words(user.role)}</Badge>
                {!user.active && <Badge tone="warn">Inactive</Badge>}
                {own && <Badge>You</Badge>}
              </>
            }
            about={
              <>
                Registered <At at={user.createdAt} />
              </>
            }
            actions={
              viewer.may('ADMIN') && <Actions user={user as WithKeys} own={own} refresh={page.refresh} />
            }
          >
            {user.role !== 'AGENT' && <Use user={user} />}
            {keys && passwords && isPerson(user) && (
              <SignInOf user={user as WithKeys} own={own} refresh={page.refresh} />
            )}
            {keys && <Keys user={user as WithKeys} own={own} refresh={page.refresh} />}
            {keys && user.role !== 'AGENT' && <Webhooks user={user.id} own={own} />}
          </Page>
        );
      }}
    </Loaded>
  );
}

function Use({ user }: { user: User }) {
  const counts = useData(UserCountsDocument, { user: user.id }, { everyMs: 5_000 });
  const shown = counts.data;
  const link = (states: string, text: number | undefined) => (
    <Link to="/jobs" search={{ user: user.id, states }} className="num">
      {text === undefined ? '…' : counted(text)}
    </Link>
  );
  return (
    <div className="columns">
      <Card title="Quotas">
        <div className="stack">
          <Facts
            facts={[
              [
                'Class',
                <span key="c" className={`class ${user.class.toLowerCase()}`}>
                  {words(user.class)}
                </span>,
              ],
              ['Quota', figure(user.quotaShare)],
              [
                'Submissions',
                user.submissionQuota
                  ? `${count(user.submissionQuota.limit)} jobs in ${duration(user.submissionQuota.periodS)}`
                  : 'no limit',
              ],
            ]}
          />
          {user.submissionQuota && <Quota user={user} />}
        </div>
      </Card>
      <Card title="Jobs">
        <Facts
          facts={[
            ['Waiting', link(PENDING_STATES.join(','), shown?.waiting)],
            ['Running', link(LIVE_STATES.join(','), shown?.running)],
            ['Completed', link('COMPLETED', shown?.completed)],
            ['Failed', link('FAILED', shown?.failed)],
          ]}
        />
      </Card>
    </div>
  );
}

const isPerson = ({ role }: User): boolean => role !== 'AGENT' && role !== 'PEER';

function Actions({ user, own, refresh }: { user: WithKeys; own: boolean; refresh(): void }) {
  const passwords = usePasswords();
  const [inviting, setInviting] = useState(false);
  const update = useAction(UpdateUserDocument);
  const quota = useAction(SetQuotaDocument);
  const [editing, setEditing] = useState<'role' | 'quota' | null>(null);
  const [role, setRole] = useState(user.role);
  const [userClass, setClass] = useState(user.class);
  const [active, setActive] = useState(user.active);
  const [quotaOfGrid, setQuotaOfGrid] = useState(String(user.quotaShare));
  const [limit, setLimit] = useState(String(user.submissionQuota?.limit ?? ''));
  const [hours, setHours] = useState(String((user.submissionQuota?.periodS ?? 86_400) / 3600));
  const [reason, setReason] = useState('');
  const close = (): void => setEditing(null);
  return (
    <>
      {passwords && isPerson(user) && user.active && (
        <Button onPress={() => setInviting(true)}>
          {user.passwordSetAt ? 'Reset the password' : 'Invite'}
        </Button>
      )}
      {inviting && (
        <InviteDialog
          user={user}
          reset={Boolean(user.passwordSetAt)}
          onClose={() => {
            setInviting(false);
            refresh();
          }}
        />
      )}
      {user.role !== 'AGENT' && <Button onPress={() => setEditing('quota')}>Set the quota</Button>}
      <Button onPress={() => setEditing('role')}>Change</Button>
      <Dialog
        title={`Change ${user.name}`}
        open={editing === 'role'}
        onClose={close}
        footer={
          <Button
            variant="primary"
            isDisabled={update.busy}
            onPress={() =>
              void told(
                update.run({ input: { userId: user.id, role, class: userClass, active } }),
                'Saved.',
              ).then((done) => done && close())
            }
          >
            Save
          </Button>
        }
      >
        <Choice label="Role" options={ROLES} value={role} onChange={setRole} />
        <Choice label="Class" options={CLASSES} value={userClass} onChange={setClass} />
        <Check checked={active} onChange={setActive}>
          Active
        </Check>
        <p className="muted small">
          Keys of inactive users are rejected immediately{own && '; these would be your own'}. Their jobs
          continue.
        </p>
      </Dialog>
      <Dialog
        title={`Quota of ${user.name}`}
        open={editing === 'quota'}
        onClose={close}
        footer={
          <Button
            variant="primary"
            isDisabled={quota.busy || reason.trim() === ''}
            onPress={() =>
              void told(
                quota.run({
                  input: {
                    userId: user.id,
                    quotaShare: Number(quotaOfGrid),
                    submissionLimit: limit === '' ? null : Number(limit),
                    ...(limit !== '' && { submissionPeriodS: Math.round(Number(hours) * 3600) }),
                    reason: reason.trim(),
                  },
                }),
                'Saved.',
              ).then((done) => done && close())
            }
          >
            Save
          </Button>
        }
      >
        <QuotaInput value={quotaOfGrid} onChange={setQuotaOfGrid} />
        <div className="columns" style={{ '--column': '160px' } as React.CSSProperties}>
          <TextInput
            label="Submissions"
            type="number"
            unit="jobs"
            placeholder="no limit"
            value={limit}
            onChange={setLimit}
          />
          <TextInput label="In any" type="number" step="any" unit="hours" value={hours} onChange={setHours} />
        </div>
        <TextInput label="Reason" value={reason} onChange={setReason} help="For the audit log" required />
      </Dialog>
    </>
  );
}

function Keys({ user, own, refresh }: { user: WithKeys; own: boolean; refresh(): void }) {
  const viewer = useViewer();
  const agent = user.role === 'AGENT';
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<KeyPartsFragment | null>(null);
  const may = own || viewer.may('ADMIN');
  const stateOf = (key: KeyPartsFragment): { label: string; tone: 'good' | 'plain' | 'warn' } =>
    key.revokedAt
      ? { label: 'Revoked', tone: 'plain' }
      : key.expiresAt && Date.parse(key.expiresAt) < Date.now()
        ? { label: 'Expired', tone: 'warn' }
        : { label: 'Valid', tone: 'good' };
  const keys = [...user.keys.nodes].sort(
    (a, b) =>
      Number(a.revokedAt !== null) - Number(b.revokedAt !== null) || b.createdAt.localeCompare(a.createdAt),
  );
  return (
    <Card
      title="API keys"
      flush
      actions={
        may && (
          <Button icon={<Plus size={14} />} onPress={() => setMaking(true)}>
            Create a key
          </Button>
        )
      }
    >
      <Table
        label="API keys"
        rows={keys}
        id={({ id }) => id}
        empty={<Empty title="No keys">People and programs use keys to access the service.</Empty>}
        columns={[
          { key: 'name', header: 'For', cell: (key) => <span className="strong">{key.name}</span> },
          { key: 'prefix', header: 'Begins with', minor: true, cell: ({ prefix }) => <code>{prefix}…</code> },
          {
            key: 'state',
            header: 'State',
            cell: (key) => {
              const { label, tone } = stateOf(key);
              return <Badge tone={tone}>{label}</Badge>;
            },
          },
          ...(agent
            ? [{ key: 'site', header: 'Site', cell: (key: KeyPartsFragment) => key.site?.name ?? '–' }]
            : []),
          {
            key: 'used',
            header: 'Last used',
            right: true,
            cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} />,
          },
          {
            key: 'expires',
            header: 'Expires',
            right: true,
            minor: true,
            cell: ({ expiresAt }) => (expiresAt ? <At at={expiresAt} /> : 'never'),
          },
          {
            key: 'revoke',
            header: <span className="hidden-visually">Revoke</span>,
            right: true,
            cell: (key) =>
              may &&
              stateOf(key).label === 'Valid' && (
                <Button className="small" variant="danger" onPress={() => setRevoking(key)}>
                  Revoke
                </Button>
              ),
          },
        ]}
      />
      {user.keys.pageInfo.hasNextPage && (
        <p className="table-empty">Only the newest 1000 keys are shown; `switchyard keys` lists all.</p>
      )}
      {making && <MakeKey user={user} onClose={() => setMaking(false)} onMade={refresh} />}
      {revoking && <RevokeKey of={revoking} onClose={() => setRevoking(null)} />}
    </Card>
  );
}

function MakeKey({ user, onClose, onMade }: { user: WithKeys; onClose(): void; onMade(): void }) {
  const create = useAction(CreateKeyDocument);
  const agent = user.role === 'AGENT';
  const { data } = useData(KeySitesDocument, {}, { pause: !agent });
  const [name, setName] = useState('');
  const [days, setDays] = useState('');
  const [site, setSite] = useState<string | null>(null);
  const [made, setMade] = useState<{ secret: string; expiresAt: string | null } | null>(null);
  return (
    <Dialog
      title={made ? 'The new key' : `Create a key for ${user.name}`}
      open
      onClose={onClose}
      footer={
        made ? (
          <>
            <Button icon={<Copy size={14} />} onPress={() => copy(made.secret)}>
              Copy
            </Button>
            <Button variant="primary" onPress={onClose}>
              I have saved it
            </Button>
          </>
        ) : (
          <Button
            variant="primary"
            isDisabled={name.trim() === '' || create.busy || (agent && !site)}
            onPress={async () => {
              const expiresAt =
                days === '' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
              const done = await told(
                create.run({
                  input: { userId: user.id, name: name.trim(), expiresAt, ...(agent && { siteId: site }) },
                }),
              );
              if (done) {
                const { secret, apiKey } = done.createApiKey;
                setMade({ secret, expiresAt: apiKey.expiresAt });
                onMade();
              }
            }}
          >
            Make it
          </Button>
        )
      }
    >
      {made ? (
        <>
          <p>It is shown only once, and stored only as a hash.</p>
          <code className="secret">{made.secret}</code>
          {made.expiresAt && (
            <p className="note warn">
              It expires <At at={made.expiresAt} />. A key never outlives the key of the session that creates
              it.
            </p>
          )}
        </>
      ) : (
        <>
          <TextInput
            label="What it is for"
            value={name}
            onChange={setName}
            autoFocus
            placeholder="laptop, pipeline, …"
          />
          {agent && (
            <Choice
              label="Site"
              value={site}
              onChange={setSite}
              options={(data?.sites.nodes ?? []).map(({ id, name }) => ({ value: id, label: name }))}
            />
          )}
          <TextInput
            label="Valid for"
            type="number"
            min={1}
            unit="days"
            placeholder="as long as this session’s key"
            value={days}
            onChange={setDays}
          />
        </>
      )}
    </Dialog>
  );
}

function RevokeKey({ of, onClose }: { of: KeyPartsFragment; onClose(): void }) {
  const revoke = useAction(RevokeKeyDocument);
  return (
    <Dialog
      title="Revoke a key"
      open
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Keep it</Button>
          <Button
            variant="danger"
            className="solid"
            isDisabled={revoke.busy}
            onPress={() => void told(revoke.run({ key: of.id }), 'The key is revoked.').then(onClose)}
          >
            Revoke it
          </Button>
        </>
      }
    >
      <p>
        <strong>{of.name}</strong> ({of.prefix}…) is rejected within a second, and its connections are closed.
        If it is the key of this session, you are signed out.
      </p>
    </Dialog>
  );
}
