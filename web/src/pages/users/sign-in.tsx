/** How a user signs in by password: the password, and the sessions that are open. */
import { useState } from 'react';
import { useAction } from '../../api/data';
import { useViewer } from '../../shell/viewer';
import { Button, Dialog, TextInput } from '../../ui/controls';
import { Ago, At, Badge, Card, Empty, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import {
  ChangePasswordDocument,
  EndSessionsDocument,
  type SessionPartsFragment as Session,
} from './users.gql';

interface Signing {
  id: string;
  name: string;
  passwordSetAt?: string | null | undefined;
  invitedUntil?: string | null | undefined;
  sessions?: readonly Session[] | null | undefined;
}

export function SignInOf({ user, own, refresh }: { user: Signing; own: boolean; refresh(): void }) {
  const [changing, setChanging] = useState(false);
  const end = useAction(EndSessionsDocument);
  const sessions = user.sessions ?? [];
  const others = sessions.filter(({ current }) => !current);
  const ended = (ids?: string[]): void =>
    void told(
      end.run({ input: { userId: user.id, ...(ids && { sessionIds: ids }) } }),
      ids ? 'The session has ended.' : 'The sessions have ended.',
    ).then(refresh);
  return (
    <Card
      title="Password and sessions"
      about={<About user={user} own={own} />}
      flush
      actions={
        <>
          {others.length > 0 && (
            <Button isDisabled={end.busy} onPress={() => ended()}>
              {sessions.length > others.length ? 'End all others' : 'End all'}
            </Button>
          )}
          {own && user.passwordSetAt && (
            <Button onPress={() => setChanging(true)}>Change the password</Button>
          )}
        </>
      }
    >
      <Table
        label="Sessions"
        rows={sessions}
        id={({ id }) => id}
        empty={<Empty title="No sessions">Signing in by user name and password creates one.</Empty>}
        columns={[
          {
            key: 'from',
            header: 'From',
            cell: ({ address, current }) => (
              <span className="row">
                <code>{address}</code>
                {current && <Badge tone="good">This one</Badge>}
              </span>
            ),
          },
          {
            key: 'agent',
            header: 'Browser',
            minor: true,
            cell: ({ agent }) => <span className="cut">{agent}</span>,
          },
          {
            key: 'began',
            header: 'Began',
            right: true,
            minor: true,
            cell: ({ createdAt }) => <At at={createdAt} />,
          },
          {
            key: 'used',
            header: 'Last used',
            right: true,
            cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} />,
          },
          {
            key: 'ends',
            header: 'Ends',
            right: true,
            minor: true,
            cell: ({ expiresAt }) => <At at={expiresAt} />,
          },
          {
            key: 'end',
            header: <span className="hidden-visually">End</span>,
            right: true,
            cell: ({ id, current }) =>
              !current && (
                <Button className="small" variant="danger" isDisabled={end.busy} onPress={() => ended([id])}>
                  End
                </Button>
              ),
          },
        ]}
      />
      {changing && <ChangePassword onClose={() => setChanging(false)} onDone={refresh} />}
    </Card>
  );
}

function About({ user: { passwordSetAt, invitedUntil }, own }: { user: Signing; own: boolean }) {
  const viewer = useViewer();
  if (passwordSetAt)
    return (
      <>
        Password set <At at={passwordSetAt} />
      </>
    );
  if (invitedUntil)
    return (
      <>
        Invited to set a password until <At at={invitedUntil} />
      </>
    );
  return own && !viewer.may('ADMIN')
    ? 'No password: an administrator can send you a link to set one'
    : 'No password';
}

function ChangePassword({ onClose, onDone }: { onClose(): void; onDone(): void }) {
  const change = useAction(ChangePasswordDocument);
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  return (
    <Dialog
      title="Change the password"
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={change.busy || current === '' || password === ''}
          onPress={async () => {
            const done = await told(
              change.run({ input: { current, password } }),
              'The password has been changed. All other sessions have ended.',
            );
            if (!done) return;
            onDone();
            onClose();
          }}
        >
          Change it
        </Button>
      }
    >
      <TextInput
        label="Current password"
        type="password"
        value={current}
        onChange={setCurrent}
        autoComplete="current-password"
        autoFocus
      />
      <TextInput
        label="New password"
        type="password"
        value={password}
        onChange={setPassword}
        help="12 characters or more, of any kind; several words work well."
        autoComplete="new-password"
      />
    </Dialog>
  );
}
