/** The policy: every setting explained, tried on recorded jobs before it is put in force, with its history. */
import './policy.css';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import { useAction, useData, useFollow, useThrottled } from '../../api/data';
import {
  type PolicyFieldPartsFragment,
  type PolicyKindPartsFragment,
  PolicyKindsDocument,
  type PolicyKindsQuery,
} from '../../api/kinds.gql';
import { PolicyInForceDocument } from '../../parts/policy.gql';
import { useWindow } from '../../parts/simulated-window';
import { OwnSchedulers, ResultView } from '../../parts/simulation';
import { SimulateDocument, SimulationNewsDocument, SimulationPageDocument } from '../../parts/simulation.gql';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { Code } from '../../ui/code';
import { Button, Choice, Dialog, Segments, TabBar, TextInput } from '../../ui/controls';
import { Differences } from '../../ui/differences';
import { at, type Document, differences, withValue } from '../../ui/document';
import { percent, plural } from '../../ui/format';
import { FlaskConical, Undo2 } from '../../ui/icons';
import { At, Badge, Bar, Card, Empty, Loaded, Page, Problem, Skeleton } from '../../ui/show';
import { told } from '../../ui/toast';
import { Input } from './input';
import {
  PolicyHistoryDocument,
  type PolicyPartsFragment,
  RevertPolicyDocument,
  UpdatePolicyDocument,
} from './policy.gql';

export function PolicyPage() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const policy = useData(PolicyInForceDocument, {}, { everyMs: 10_000 });
  const { data: known } = useData(PolicyKindsDocument, {});
  const tab = search.tab === 'history' ? 'history' : 'settings';
  return (
    <Loaded
      from={policy}
      skeleton={
        <Page title="Policy">
          <Skeleton height={480} />
        </Page>
      }
    >
      {({ policy: inForce }) =>
        inForce ? (
          <Page
            title={
              <>
                Policy <Badge tone="accent">Version {inForce.version}</Badge>
              </>
            }
            about={
              <>
                In effect since <At at={inForce.createdAt} />
                {inForce.author && ` by ${inForce.author.name}`}: {inForce.reason}
              </>
            }
          >
            <TabBar
              label="Settings or history"
              value={tab}
              onChange={(value) =>
                void navigate({
                  to: '/policy',
                  search: value === 'history' ? { tab: value } : {},
                  replace: true,
                })
              }
              tabs={[
                { value: 'settings', label: 'Settings' },
                { value: 'history', label: 'History' },
              ]}
            />
            {tab === 'settings' ? (
              <Settings
                inForce={inForce}
                kinds={known?.policyKinds}
                fromDraft={search.draft === 'candidate'}
                refresh={policy.refresh}
              />
            ) : (
              <History inForce={inForce} refresh={policy.refresh} />
            )}
          </Page>
        ) : (
          <Page title="Policy">
            <Empty title="There is no policy yet" />
          </Page>
        )
      }
    </Loaded>
  );
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one form in two views, which share its draft
function Settings({
  inForce,
  kinds,
  fromDraft,
  refresh,
}: {
  inForce: PolicyPartsFragment;
  kinds: PolicyKindsQuery['policyKinds'] | undefined;
  fromDraft: boolean;
  refresh(): void;
}) {
  const viewer = useViewer();
  const may = viewer.may('OPERATOR');
  const [draft, setDraft] = useState<Document>(() => {
    const brought = fromDraft ? sessionStorage.getItem('switchyard.candidate') : null;
    return (brought ? JSON.parse(brought) : inForce.document) as Document;
  });
  const [base, setBase] = useState(inForce);
  const [json, setJson] = useState<string | null>(null);
  const changed = differences(base.document, draft);
  // Another version took effect: an untouched draft follows it.
  useEffect(() => {
    if (inForce.version === base.version || changed.length > 0) return;
    setBase(inForce);
    setDraft(inForce.document as Document);
  }, [inForce, base, changed.length]);
  const outdated = inForce.version !== base.version;

  let problem: string | null = null;
  if (json !== null) {
    try {
      JSON.parse(json);
    } catch (error) {
      problem = `Not JSON: ${(error as Error).message}`;
    }
  }
  const set = (path: string, value: unknown): void => setDraft((before) => withValue(before, path, value));

  return (
    <div className={may ? 'policy-columns' : ''}>
      <div className="stack">
        <div className="row wrap spread">
          <p className="muted small">
            {viewer.may('ADMIN')
              ? 'Changes apply only once the policy is put into effect.'
              : may
                ? 'Changes can be tried here. Only administrators can put them into effect.'
                : 'Only administrators can change it.'}
          </p>
          <Segments
            label="How the policy is shown"
            value={json === null ? 'form' : 'json'}
            onChange={(value) => {
              if (value === 'json') setJson(JSON.stringify(draft, null, 2));
              else if (!problem) {
                if (json !== null) setDraft(JSON.parse(json) as Document);
                setJson(null);
              }
            }}
            options={[
              { value: 'form', label: 'Explained' },
              { value: 'json', label: 'JSON' },
            ]}
          />
        </div>
        {json !== null ? (
          <Card>
            <Code
              label="Policy document"
              language="json"
              value={json}
              onChange={(text) => {
                setJson(text);
                try {
                  setDraft(JSON.parse(text) as Document);
                } catch {
                  // Told below; the draft stays as it was.
                }
              }}
              error={problem}
              minLines={24}
            />
          </Card>
        ) : kinds ? (
          <>
            <Level
              title="How the root chooses sites"
              kinds={kinds.dispatch}
              name="dispatch"
              {...{ draft, base, set, may }}
            />
            <Level
              title="How sites start jobs"
              kinds={kinds.local}
              name="local"
              {...{ draft, base, set, may }}
            />
            <Card title="In general">
              <Fields fields={kinds.general} prefix="" {...{ draft, base, set, may }} />
            </Card>
          </>
        ) : (
          <Skeleton height={480} />
        )}
      </div>
      {may && (
        <div className="policy-side">
          <div className="stack">
            {outdated && (
              <div className="note warn">
                <p>
                  Version {inForce.version} has taken effect in the meantime: {inForce.reason}
                </p>
                <Button
                  className="small"
                  onPress={() => {
                    setBase(inForce);
                    setDraft(inForce.document as Document);
                  }}
                >
                  Start over from it
                </Button>
              </div>
            )}
            <Card
              title={changed.length > 0 ? plural(changed.length, 'change') : 'No changes'}
              actions={
                changed.length > 0 && (
                  <Button
                    variant="quiet"
                    className="small"
                    icon={<Undo2 size={13} />}
                    onPress={() => {
                      setDraft(base.document as Document);
                      setJson(json === null ? null : JSON.stringify(base.document, null, 2));
                    }}
                  >
                    Undo
                  </Button>
                )
              }
            >
              <Differences of={changed} none="Your changes are listed here." />
            </Card>
            <Preview draft={draft} changed={changed.length > 0 && problem === null} />
            {viewer.may('ADMIN') && (
              <PutInForce
                draft={draft}
                base={base}
                disabled={changed.length === 0 || problem !== null}
                onDone={(made) => {
                  setBase(made);
                  setDraft(made.document as Document);
                  setJson(null);
                  refresh();
                }}
              />
            )}
          </div>
        </div>
      )}
    </div>
  );
}

interface Parts {
  draft: Document;
  base: PolicyPartsFragment;
  set(path: string, value: unknown): void;
  may: boolean;
}

function Level({
  title,
  kinds,
  name,
  ...parts
}: Parts & { title: string; kinds: readonly PolicyKindPartsFragment[]; name: 'dispatch' | 'local' }) {
  const { draft, base, set, may } = parts;
  const chosen = at(draft, `${name}.kind`);
  const kind = kinds.find((one) => one.kind === chosen);
  const baseKind = at(base.document, `${name}.kind`);
  return (
    <Card title={title}>
      <div className="stack">
        <div className="kind">
          <Choice
            label="Policy"
            value={kind?.kind ?? null}
            disabled={!may}
            onChange={(value) => {
              if (value === chosen) return;
              // What was in force comes back as it was.
              set(
                name,
                value === baseKind
                  ? at(base.document, name)
                  : kinds.find((one) => one.kind === value)!.document,
              );
            }}
            options={kinds.map((one) => ({ value: one.kind, label: one.label }))}
          />
          <p className="muted small">
            {kind?.about ?? 'This portal does not know this kind of policy: see its document.'}
          </p>
        </div>
        {kind && kind.fields.length > 0 && <Fields fields={kind.fields} prefix={`${name}.`} {...parts} />}
      </div>
    </Card>
  );
}

function Fields({
  fields,
  prefix,
  draft,
  base,
  set,
  may,
}: Parts & { fields: readonly PolicyFieldPartsFragment[]; prefix: string }) {
  return (
    <ul className="policy-fields">
      {fields.map((field) => {
        const path = prefix + field.path;
        const value = at(draft, path);
        const before = at(base.document, path);
        const changed = JSON.stringify(value) !== JSON.stringify(before);
        return (
          <li key={path} className={`${changed ? 'changed' : ''} ${field.type === 'TABLE' ? 'wide' : ''}`}>
            <div className="policy-input">
              <Input field={field} value={value} disabled={!may} onChange={(next) => set(path, next)} />
            </div>
            <p className="muted small">
              {field.about}
              {changed && (
                <span className="was">
                  {' '}
                  Was {before === undefined || before === null ? 'not set' : JSON.stringify(before)}.
                </span>
              )}
            </p>
          </li>
        );
      })}
    </ul>
  );
}

/** The draft on recorded jobs, before it is put in force. */
function Preview({ draft, changed }: { draft: Document; changed: boolean }) {
  const simulate = useAction(SimulateDocument);
  const { window, jobs, picker } = useWindow();
  const [id, setId] = useState<string | null>(null);
  const [of, setOf] = useState('');
  const page = useData(SimulationPageDocument, { id: id ?? '' }, { pause: id === null });
  const refresh = useThrottled(page.refresh, 400);
  useFollow(SimulationNewsDocument, 'simulationUpdated', id === null ? null : { simulation: id }, {
    onUpdates: refresh,
    onResync: refresh,
  });
  const key = useMemo(() => JSON.stringify(draft), [draft]);
  const simulation = id === null ? null : page.data?.simulation;
  return (
    <Card title="What would it do?" about="Simulated on recorded jobs, compared with the current policy">
      <div className="stack">
        {picker}
        <Button
          icon={<FlaskConical size={14} />}
          isDisabled={!changed || simulate.busy || jobs === 0}
          onPress={() =>
            void told(
              simulate.run({
                input: { candidate: draft, ...window, reason: 'Preview of a change of the policy' },
              }),
            ).then((done) => {
              if (!done) return;
              setId(done.createSimulation.simulation.id);
              setOf(key);
            })
          }
        >
          Preview
        </Button>
        {simulation && (simulation.state === 'QUEUED' || simulation.state === 'RUNNING') && (
          <Bar value={simulation.progress} max={1} label={`Computing, ${percent(simulation.progress)}`} />
        )}
        {simulation?.message && <Problem error={simulation.message} />}
        {simulation?.result != null && (
          <div className="preview-result">
            {of !== key && <p className="note warn">The draft has changed since this was computed.</p>}
            <ResultView result={{ ...simulation.result, userClasses: [], sites: [] }} />
            <OwnSchedulers sites={simulation.result.sites} />
            <Link to="/simulator/$id" params={{ id: simulation.id }} className="small">
              By class of user and site
            </Link>
          </div>
        )}
      </div>
    </Card>
  );
}

function PutInForce({
  draft,
  base,
  disabled,
  onDone,
}: {
  draft: Document;
  base: PolicyPartsFragment;
  disabled: boolean;
  onDone(made: PolicyPartsFragment): void;
}) {
  const update = useAction(UpdatePolicyDocument);
  const [reason, setReason] = useState('');
  const [error, setError] = useState<string | null>(null);
  return (
    <Card title="Put into effect">
      <form
        className="stack"
        onSubmit={async (event) => {
          event.preventDefault();
          setError(null);
          try {
            const { updatePolicy } = await update.run({
              input: { document: draft, expectedVersion: base.version, reason: reason.trim() },
            });
            setReason('');
            onDone(updatePolicy.policy);
            void told(Promise.resolve(), `Policy ${updatePolicy.policy.version} is in effect.`);
          } catch (reason) {
            setError((reason as Error).message);
          }
        }}
      >
        {error && <Problem error={error} />}
        <TextInput label="Reason" value={reason} onChange={setReason} help="For the history" />
        <Button type="submit" variant="primary" isDisabled={disabled || reason.trim() === '' || update.busy}>
          Put version {base.version + 1} into effect
        </Button>
      </form>
    </Card>
  );
}

function History({ inForce, refresh }: { inForce: PolicyPartsFragment; refresh(): void }) {
  const viewer = useViewer();
  const [after, setAfter] = useState<string | null>(null);
  const history = useData(PolicyHistoryDocument, { first: 30, after });
  const revert = useAction(RevertPolicyDocument);
  const [chosen, setChosen] = useState<PolicyPartsFragment | null>(null);
  const [reason, setReason] = useState('');
  // biome-ignore lint/correctness/useExhaustiveDependencies: another version is in force
  useEffect(() => history.refresh(), [inForce.version]);
  return (
    <Loaded from={history}>
      {({ policyHistory: page }) => (
        <>
          <ol className="versions">
            {page.nodes.map((version, i) => {
              const before = page.nodes[i + 1];
              return (
                <li key={version.id} className="card">
                  <div className="card-head">
                    <div className="grow">
                      <h2>
                        Version {version.version}{' '}
                        {version.version === inForce.version && <Badge tone="good">Current</Badge>}{' '}
                        {version.revertsTo !== null && <Badge>Restored version {version.revertsTo}</Badge>}
                      </h2>
                      <p className="faint tiny">
                        <At at={version.createdAt} />
                        {/* Users are not told who changed it. */}
                        {version.author
                          ? ` by ${version.author.name}`
                          : version.version === 1 && ' by the installation'}
                      </p>
                    </div>
                    {viewer.may('ADMIN') && version.version !== inForce.version && (
                      <Button
                        className="small"
                        onPress={() => {
                          setReason('');
                          setChosen(version);
                        }}
                      >
                        Revert to this…
                      </Button>
                    )}
                  </div>
                  <div className="card-body stack tight">
                    <p>{version.reason}</p>
                    {before && <Differences of={differences(before.document, version.document)} />}
                  </div>
                </li>
              );
            })}
          </ol>
          {page.pageInfo.hasNextPage && (
            <div className="table-empty">
              <Button onPress={() => setAfter(page.pageInfo.endCursor)}>Older versions</Button>
            </div>
          )}
          <Dialog
            title={`Revert to version ${chosen?.version}`}
            open={chosen !== null}
            onClose={() => setChosen(null)}
            footer={
              <Button
                variant="primary"
                isDisabled={reason.trim() === '' || revert.busy}
                onPress={() =>
                  void told(
                    revert.run({
                      version: chosen!.version,
                      expectedVersion: inForce.version,
                      reason: reason.trim(),
                    }),
                    `Version ${chosen!.version} is in effect again, as version ${inForce.version + 1}.`,
                  ).then((done) => {
                    if (!done) return;
                    setChosen(null);
                    refresh();
                  })
                }
              >
                Put it into effect again
              </Button>
            }
          >
            <p className="muted small">Changes to the current policy:</p>
            <Differences of={differences(inForce.document, chosen?.document)} />
            <TextInput label="Reason" value={reason} onChange={setReason} autoFocus />
          </Dialog>
        </>
      )}
    </Loaded>
  );
}
