/** Bulk groups: many jobs of one template, and how far they have come. */
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction, useData, useFollow } from '../../api/data';
import { ENDED_STATES, type JobState, LIVE_STATES, WAITING_STATES } from '../../api/states.gql';
import { Button, Dialog } from '../../ui/controls';
import { count, numberOf, percent, plural, words } from '../../ui/format';
import { Layers } from '../../ui/icons';
import { Ago, Badge, Card, Empty, Loaded, Page, Parts, Skeleton, StateBadge, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import {
  CancelGroupDocument,
  GroupNewsDocument,
  type GroupPartsFragment,
  JobGroupPageDocument,
  JobGroupsDocument,
} from './groups.gql';

/** From what has ended to what waits, so that a bar grows from the left. */
const ORDER: readonly JobState[] = [
  ...ENDED_STATES,
  ...[...LIVE_STATES].reverse(),
  ...[...WAITING_STATES].reverse(),
];

const countsOf = (group: Pick<GroupPartsFragment, 'counts'>): Partial<Record<JobState, number>> =>
  Object.fromEntries(group.counts.map(({ state, jobs }) => [state, jobs]));

function Progress({ group }: { group: GroupPartsFragment }) {
  const counts = countsOf(group);
  return (
    <Parts
      label={`Jobs of the group ${group.name ?? numberOf(group.id)}`}
      total={group.size}
      parts={ORDER.map((state) => ({
        name: words(state).toLowerCase(),
        value: counts[state] ?? 0,
        color: `var(--${state.toLowerCase()})`,
      }))}
    />
  );
}

export function Groups() {
  const [after, setAfter] = useState<string | null>(null);
  const groups = useData(JobGroupsDocument, { first: 50, after }, { everyMs: 3_000 });
  return (
    <Card flush>
      <Loaded
        from={groups}
        skeleton={
          <div className="card-body">
            <Skeleton lines={6} />
          </div>
        }
      >
        {({ jobGroups }) =>
          jobGroups.nodes.length === 0 ? (
            <Empty icon={<Layers size={20} />} title="No bulk groups">
              A bulk group consists of many jobs from one template, submitted together. Choose “Many jobs”
              when submitting.
            </Empty>
          ) : (
            <>
              <Table
                label="Bulk groups"
                rows={jobGroups.nodes}
                id={({ id }) => id}
                columns={[
                  {
                    key: 'group',
                    header: 'Group',
                    cell: (group) => (
                      <Link to="/groups/$id" params={{ id: group.id }}>
                        {group.name ?? `Group ${numberOf(group.id)}`}
                      </Link>
                    ),
                  },
                  { key: 'user', header: 'User', minor: true, cell: ({ user }) => user.name },
                  { key: 'size', header: 'Jobs', right: true, cell: ({ size }) => count(size) },
                  {
                    key: 'progress',
                    header: 'Progress',
                    width: '34%',
                    cell: (group) => <Progress group={group} />,
                  },
                  { key: 'ended', header: 'Ended', right: true, cell: ({ progress }) => percent(progress) },
                  {
                    key: 'failed',
                    header: 'Failed',
                    right: true,
                    cell: (group) => {
                      const failed = countsOf(group).FAILED ?? 0;
                      return failed > 0 ? <span className="late">{count(failed)}</span> : '0';
                    },
                  },
                  {
                    key: 'at',
                    header: 'Submitted',
                    right: true,
                    minor: true,
                    cell: ({ submittedAt }) => <Ago at={submittedAt} />,
                  },
                ]}
              />
              {jobGroups.pageInfo.hasNextPage && (
                <div className="table-empty">
                  <Button onPress={() => setAfter(jobGroups.pageInfo.endCursor)}>Older groups</Button>
                </div>
              )}
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

/** The command first, then the rest by name, without what is empty: the service keeps no order. */
function templateText(template: unknown): string {
  const { command, arguments: args, ...rest } = (template ?? {}) as Record<string, unknown>;
  const ordered = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => a.localeCompare(b)));
  const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
  return JSON.stringify(
    { command, arguments: args, ...ordered },
    (key, value) => (key !== '' && isEmpty(value) ? undefined : value),
    2,
  );
}

export function GroupPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const group = useData(JobGroupPageDocument, { id });
  const [news, setNews] = useState<GroupPartsFragment | null>(null);
  useFollow(
    GroupNewsDocument,
    'jobGroupUpdated',
    { id },
    { onUpdates: (updates) => setNews(updates.at(-1) ?? null), onResync: group.refresh },
  );
  const cancel = useAction(CancelGroupDocument);
  const [asking, setAsking] = useState(false);
  return (
    <Loaded
      from={group}
      skeleton={
        <Page title="Group">
          <Skeleton height={180} />
        </Page>
      }
    >
      {({ jobGroup }) => {
        const shown = jobGroup && { ...jobGroup, ...(news?.id === id && news) };
        if (!shown)
          return (
            <Page title="No such group">
              <Empty title="This group does not exist, or you may not see it." />
            </Page>
          );
        const counts = countsOf(shown);
        const live = ORDER.slice(3).reduce((sum, state) => sum + (counts[state] ?? 0), 0);
        return (
          <Page
            title={
              <>
                {shown.name ?? `Group ${numberOf(id)}`}
                <Badge tone={shown.state === 'DONE' ? 'good' : 'accent'}>{words(shown.state)}</Badge>
              </>
            }
            about={
              <>
                {plural(shown.size, 'job')} by {shown.user.name}, submitted <Ago at={shown.submittedAt} />
              </>
            }
            actions={
              <>
                <Link className="button" to="/jobs" search={{ group: id }}>
                  Show its jobs
                </Link>
                <Link className="button" to="/graph" search={{ bulk: id }}>
                  Graph
                </Link>
                {live > 0 && (
                  <Button variant="danger" onPress={() => setAsking(true)}>
                    Cancel the group…
                  </Button>
                )}
              </>
            }
          >
            <Card title={`${percent(shown.progress)} have ended`}>
              <div className="stack">
                <Progress group={shown} />
                <ul className="row wrap" style={{ gap: '8px 20px' }}>
                  {shown.counts.map(({ state, jobs }) => (
                    <li key={state}>
                      <Link to="/jobs" search={{ group: id, states: state }} className="row">
                        <StateBadge state={state} />
                        <span className="num">{count(jobs)}</span>
                      </Link>
                    </li>
                  ))}
                </ul>
              </div>
            </Card>
            <Card title="Template">
              <pre className="code" tabIndex={0} aria-label="Template">
                {templateText(shown.template)}
              </pre>
            </Card>
            <Dialog
              title="Cancel the group"
              open={asking}
              onClose={() => setAsking(false)}
              footer={
                <>
                  <Button onPress={() => setAsking(false)}>Keep them as they are</Button>
                  <Button
                    variant="danger"
                    className="solid"
                    isDisabled={cancel.busy}
                    onPress={() =>
                      void told(
                        cancel.run({ id }).then((done) => {
                          setAsking(false);
                          return done;
                        }),
                        ({ cancelJobGroup }) => `${plural(cancelJobGroup.cancelled, 'job')} canceled.`,
                      )
                    }
                  >
                    Cancel {plural(live, 'job')}
                  </Button>
                </>
              }
            >
              <p>
                <strong>{plural(live, 'job')}</strong> of this group have not ended and will be canceled.
                Running ones are stopped. This cannot be undone.
              </p>
            </Dialog>
          </Page>
        );
      }}
    </Loaded>
  );
}
