/** Users, their quotas, and who is ahead of whom in the meta-queues. */
import './users.css';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { useViewer } from '../../shell/viewer';
import { Button, Choice, Dialog, TextInput } from '../../ui/controls';
import { count, duration, figure, plural, words } from '../../ui/format';
import { Plus, Scale, Users as UsersIcon } from '../../ui/icons';
import { Badge, Bar, Card, Empty, Loaded, Page, Skeleton, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import {
  RegisterUserDocument,
  StandingsDocument,
  type UserClass,
  type UserPartsFragment,
  type UserRole,
  UsersDocument,
} from './users.gql';

export const ROLES: readonly { value: UserRole; label: string; hint: string }[] = [
  { value: 'USER', label: 'User', hint: 'Their own jobs' },
  { value: 'OPERATOR', label: 'Operator', hint: 'Sites and all users’ jobs' },
  { value: 'ADMIN', label: 'Admin', hint: 'Everything' },
  { value: 'AGENT', label: 'Agent', hint: 'Runs jobs at a site' },
];
export const CLASSES: readonly { value: UserClass; label: string }[] = [
  { value: 'GOLD', label: 'Gold' },
  { value: 'SILVER', label: 'Silver' },
  { value: 'REGULAR', label: 'Regular' },
];

export function UsersPage() {
  const viewer = useViewer();
  return (
    <Page
      title="Users and quotas"
      about={
        viewer.may('OPERATOR') ? undefined : (
          <>
            Your keys and quota are on{' '}
            <Link to="/users/$id" params={{ id: viewer.id }}>
              your own page
            </Link>
            .
          </>
        )
      }
      actions={viewer.may('ADMIN') && <AddUser />}
    >
      <Standings />
      {viewer.may('OPERATOR') && <List />}
    </Page>
  );
}

function List() {
  const [after, setAfter] = useState<string | null>(null);
  const users = useData(UsersDocument, { first: 200, after }, { everyMs: 5_000 });
  return (
    <Loaded from={users} skeleton={<Skeleton height={260} />}>
      {({ users: page }) => {
        const shares = page.nodes
          .filter(({ role, active }) => active && role !== 'AGENT')
          .reduce((sum, { quotaShare }) => sum + quotaShare, 0);
        return (
          <Card title="Users" flush>
            <Table
              label="Users"
              rows={page.nodes}
              id={({ id }) => id}
              empty={<Empty icon={<UsersIcon size={20} />} title="No users" />}
              columns={[
                {
                  key: 'name',
                  header: 'User',
                  cell: ({ id, name, active }) => (
                    <span className="row">
                      <Link to="/users/$id" params={{ id }} className="strong">
                        {name}
                      </Link>
                      {!active && <Badge tone="warn">Inactive</Badge>}
                    </span>
                  ),
                },
                { key: 'role', header: 'Role', cell: ({ role }) => words(role) },
                {
                  key: 'class',
                  header: 'Class',
                  cell: (user) =>
                    user.role === 'AGENT' ? (
                      <span className="faint">–</span>
                    ) : (
                      <span className={`class ${user.class.toLowerCase()}`}>{words(user.class)}</span>
                    ),
                },
                {
                  key: 'quota',
                  header: 'Quota',
                  right: true,
                  cell: ({ role, active, quotaShare }) =>
                    role === 'AGENT' ? (
                      <span className="faint">–</span>
                    ) : (
                      <>
                        {figure(quotaShare)}
                        {active && shares > 0 && (
                          <span className="faint"> · {((100 * quotaShare) / shares).toFixed(0)} %</span>
                        )}
                      </>
                    ),
                },
                {
                  key: 'quota',
                  header: 'Submissions used',
                  width: '30%',
                  minor: true,
                  cell: (user) => <Quota user={user} />,
                },
              ]}
            />
            {page.pageInfo.hasNextPage && (
              <div className="table-empty">
                <Button onPress={() => setAfter(page.pageInfo.endCursor)}>More users</Button>
              </div>
            )}
          </Card>
        );
      }}
    </Loaded>
  );
}

export function Quota({
  user: { submissionQuota: quota },
}: {
  user: Pick<UserPartsFragment, 'submissionQuota'>;
}) {
  if (!quota) return <span className="faint">no limit</span>;
  const full = quota.used >= quota.limit;
  return (
    <div className="row">
      <div className="grow">
        <Bar
          thin
          value={quota.used}
          max={quota.limit}
          tone={full ? 'danger' : 'accent'}
          label={`${count(quota.used)} of ${plural(quota.limit, 'job')} within ${duration(quota.periodS)}`}
        />
      </div>
      <span className="num tiny">
        {count(quota.used)}{' '}
        <span className="faint">
          of {count(quota.limit)} in {duration(quota.periodS)}
        </span>
      </span>
    </div>
  );
}

/** Who is ahead of whom in the meta-queues, and why. */
function Standings() {
  const standings = useData(StandingsDocument, {}, { everyMs: 5_000 });
  return (
    <Card
      title="Who is ahead of whom"
      about="Priority of each user’s jobs in the meta-queues, by quota and queued jobs"
      flush
    >
      <Loaded
        from={standings}
        skeleton={
          <div className="card-body">
            <Skeleton lines={3} />
          </div>
        }
      >
        {({ userStandings }) => {
          if (userStandings.length === 0)
            return (
              <Empty icon={<Scale size={20} />} title="No jobs wait in a meta-queue">
                Under a policy that orders users by their quotas, this shows whose jobs go first.
              </Empty>
            );
          const rows = userStandings
            .flatMap((standing) => standing.groups.map((group) => ({ ...group, standing })))
            .sort((a, b) => b.priority - a.priority);
          return (
            <Table
              label="Standings"
              rows={rows}
              id={({ standing, processors }) => `${standing.user.id} ${processors}`}
              columns={[
                { key: 'place', header: 'Place', right: true, cell: (row) => rows.indexOf(row) + 1 },
                { key: 'user', header: 'User', cell: ({ standing }) => standing.user.name },
                {
                  key: 'quota',
                  header: 'Quota',
                  right: true,
                  cell: ({ standing }) => figure(standing.quotaShare),
                },
                {
                  key: 'jobs',
                  header: 'Waiting jobs',
                  right: true,
                  cell: ({ jobs, standing }) => (
                    <>
                      {count(jobs)} <span className="faint">of {count(standing.queuedJobs)}</span>
                    </>
                  ),
                },
                {
                  key: 'size',
                  header: 'CPUs each',
                  right: true,
                  cell: ({ processors }) => count(processors),
                },
                {
                  key: 'stands',
                  header: 'Jobs covered by the quota',
                  right: true,
                  minor: true,
                  cell: ({ threshold }) => figure(threshold),
                },
                {
                  key: 'priority',
                  header: 'Priority',
                  width: '22%',
                  cell: ({ priority }) => <Balance value={priority} />,
                },
                { key: 'queue', header: 'Queue', right: true, cell: ({ queue }) => `Q${queue}` },
              ]}
            />
          );
        }}
      </Loaded>
    </Card>
  );
}

/** −1 to 1, from the middle. */
function Balance({ value }: { value: number }) {
  const left = value < 0 ? 50 + value * 50 : 50;
  return (
    <div className="row">
      <div className="balance grow" role="img" aria-label={`Priority ${value.toFixed(2)}, from −1 to 1`}>
        <span
          className={value < 0 ? 'below' : ''}
          style={{ left: `${left}%`, width: `${Math.abs(value) * 50}%` }}
        />
      </div>
      <span className="num small" style={{ minWidth: 44, textAlign: 'right' }}>
        {value < 0 ? '−' : ''}
        {Math.abs(value).toFixed(2)}
      </span>
    </div>
  );
}

function AddUser() {
  const register = useAction(RegisterUserDocument);
  const navigate = useNavigate();
  const [open, setOpen] = useState(false);
  const [name, setName] = useState('');
  const [role, setRole] = useState<UserRole>('USER');
  const [userClass, setClass] = useState<UserClass>('REGULAR');
  const [quota, setQuota] = useState('1');
  return (
    <>
      <Button icon={<Plus size={14} />} onPress={() => setOpen(true)}>
        Add a user
      </Button>
      <Dialog
        title="Add a user"
        open={open}
        onClose={() => setOpen(false)}
        footer={
          <Button
            variant="primary"
            isDisabled={name.trim() === '' || register.busy}
            onPress={async () => {
              const input = { name: name.trim(), role, class: userClass, quotaShare: Number(quota) };
              const done = await told(
                register.run({ input }),
                `${name.trim()} is registered. Now invite them, or create a key.`,
              );
              if (done) void navigate({ to: '/users/$id', params: { id: done.createUser.user.id } });
            }}
          >
            Add
          </Button>
        }
      >
        <TextInput label="Name" value={name} onChange={setName} autoFocus />
        <Choice label="Role" options={ROLES} value={role} onChange={setRole} />
        <Choice label="Class" options={CLASSES} value={userClass} onChange={setClass} />
        <QuotaInput value={quota} onChange={setQuota} />
      </Dialog>
    </>
  );
}

export function QuotaInput(props: { value: string; onChange(value: string): void }) {
  return (
    <TextInput
      label="Quota"
      type="number"
      step="any"
      help="Relative to the other users’ quotas, above 0"
      {...props}
    />
  );
}
