/** The audit log: who has done what to what, with what was before and after. */
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useData } from '../../api/data';
import { Button, TextInput } from '../../ui/controls';
import { Differences } from '../../ui/differences';
import { differences } from '../../ui/document';
import { numberOf, plural, words } from '../../ui/format';
import { ClipboardList } from '../../ui/icons';
import { At, Card, Empty, Loaded, Page, Skeleton, Table } from '../../ui/show';
import { AuditLogDocument, type AuditLogQuery } from './audit.gql';

type Entry = AuditLogQuery['audit']['edges'][number]['node'];

const PAGE = 200;
const plain = (name: string): string =>
  words(name.replace(/([a-z])([A-Z])/g, '$1_$2')).replace(/\bapi ?key\b/i, 'API key');

export function Audit() {
  const [after, setAfter] = useState<string | null>(null);
  const [text, setText] = useState('');
  const audit = useData(AuditLogDocument, { first: PAGE, after }, after === null ? { everyMs: 10_000 } : {});
  const wanted = text.trim().toLowerCase();
  const matches = ({ action, target, targetName, targetSite, reason, user }: Entry): boolean =>
    wanted === '' ||
    [action, plain(action), target, targetName, targetSite?.name, reason, user?.name].some((part) =>
      part?.toLowerCase().includes(wanted),
    );
  return (
    <Page
      title="Audit log"
      about="Actions of administrators, operators and users, newest first."
      actions={
        <div style={{ width: 240 }}>
          <TextInput
            label="Find"
            hideLabel
            type="search"
            placeholder="Action, user, object or reason"
            value={text}
            onChange={setText}
          />
        </div>
      }
    >
      <Card flush>
        <Loaded
          from={audit}
          skeleton={
            <div className="card-body">
              <Skeleton lines={8} />
            </div>
          }
        >
          {({ audit: page }) => {
            const entries = page.edges.filter(({ node }) => matches(node));
            return (
              <>
                <Table
                  label="Audit log"
                  rows={entries}
                  id={({ cursor }) => cursor}
                  empty={
                    <Empty
                      icon={<ClipboardList size={20} />}
                      title={wanted ? 'Nothing matches' : 'Nothing yet'}
                    />
                  }
                  columns={[
                    { key: 'at', header: 'When', width: 120, cell: ({ node }) => <At at={node.at} /> },
                    {
                      key: 'who',
                      header: 'Who',
                      cell: ({ node }) =>
                        node.user ? (
                          <Link to="/users/$id" params={{ id: node.user.id }}>
                            {node.user.name}
                          </Link>
                        ) : (
                          <span className="faint">the service</span>
                        ),
                    },
                    {
                      key: 'what',
                      header: 'What',
                      cell: ({ node }) => <span className="strong">{plain(node.action)}</span>,
                    },
                    { key: 'target', header: 'To', cell: ({ node }) => <Target of={node} /> },
                    {
                      key: 'why',
                      header: 'Why',
                      cell: ({ node }) => node.reason ?? <span className="faint">–</span>,
                    },
                    {
                      key: 'change',
                      header: 'Changes',
                      width: '34%',
                      minor: true,
                      cell: ({ node }) => <Change entry={node} />,
                    },
                  ]}
                />
                {page.pageInfo.hasNextPage && (
                  <div className="table-empty">
                    <Button onPress={() => setAfter(page.pageInfo.endCursor)}>Older entries</Button>
                  </div>
                )}
              </>
            );
          }}
        </Loaded>
      </Card>
    </Page>
  );
}

const PAGES: Record<string, '/jobs/$id' | '/sites/$id' | '/users/$id' | '/groups/$id' | '/simulator/$id'> = {
  job: '/jobs/$id',
  site: '/sites/$id',
  user: '/users/$id',
  group: '/groups/$id',
  simulation: '/simulator/$id',
};
/** Where the others are found: they have no pages of their own. */
const PLACES = {
  license: { to: '/licenses' },
  dataset: { to: '/data' },
  link: { to: '/data', search: { tab: 'links' } },
  scheduler: { to: '/tree' },
  policy: { to: '/policy', search: { tab: 'history' } },
} as const;

const WORDS: Record<string, string> = { apikey: 'API key', simulation: 'What-if' };
const isPlace = (kind: string): kind is keyof typeof PLACES => kind in PLACES;

function Target({ of: { target, targetName, targetSite } }: { of: Entry }): ReactNode {
  const kind = target.split('_')[0]!;
  if (!target.includes('_')) return plain(target);
  const text = (
    <>
      <span className="faint">{WORDS[kind] ?? plain(kind)}</span>{' '}
      {targetName ?? (kind === 'policy' ? `version ${numberOf(target)}` : numberOf(target))}
    </>
  );
  const to = PAGES[kind];
  if (to)
    return (
      <Link to={to} params={{ id: target }}>
        {text}
      </Link>
    );
  if (kind === 'machine' && targetSite)
    return (
      <Link to="/sites/$id" params={{ id: targetSite.id }} search={{ tab: 'machines' }}>
        {text} <span className="faint">at {targetSite.name}</span>
      </Link>
    );
  return isPlace(kind) ? <Link {...PLACES[kind]}>{text}</Link> : text;
}

const SHOWN = 3;

function Change({ entry }: { entry: Entry }) {
  const [all, setAll] = useState(false);
  if (entry.before === null && entry.after === null) return null;
  const changes = differences(entry.before ?? {}, entry.after ?? {});
  if (entry.before === null && !all)
    return (
      <button type="button" className="link small" onClick={() => setAll(true)}>
        Show the details
      </button>
    );
  return (
    <div className="stack tight" style={{ padding: '4px 0' }}>
      <Differences of={all ? changes : changes.slice(0, SHOWN)} none="" />
      {changes.length > SHOWN && !all && (
        <button
          type="button"
          className="link tiny"
          style={{ textAlign: 'left' }}
          onClick={() => setAll(true)}
        >
          {plural(changes.length - SHOWN, 'more change')}
        </button>
      )}
    </div>
  );
}
