/** The first page of a service that has had no job: what it is, and the first steps, each done here. */
import './begin.css';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useAction, useData } from '../../api/data';
import { type Invitation, useInvitation } from '../../parts/invitation';
import { usePasswords } from '../../shell/sign-in-by';
import { useViewer } from '../../shell/viewer';
import { Button, TextInput } from '../../ui/controls';
import { copy } from '../../ui/copy';
import { numberOf, plural, TERMINAL } from '../../ui/format';
import { Copy, Play, Server, UserPlus } from '../../ui/icons';
import { At, Card, Loaded, Skeleton, StateBadge } from '../../ui/show';
import { told } from '../../ui/toast';
import {
  BeginKeyDocument,
  BeginSiteDocument,
  BeginUserDocument,
  BegunSiteDocument,
  SampleDocument,
  SubmitSampleDocument,
} from './begin.gql';

const FOLLOW_MS = 1_000;
const AGENT_MS = 3_000;
const NAME = 'Letters, digits, “.”, “_” and “-”, up to 64';

export default function Begin() {
  const viewer = useViewer();
  const passwords = usePasswords();
  return (
    <section className="begin" aria-label="First steps">
      <div className="begin-what">
        <h2>Welcome to Switchyard</h2>
        <p>
          You submit jobs, which are commands or scripts. Switchyard chooses a site and machines for each job,
          runs it there, and shows what happens and why. No job has been submitted yet.
        </p>
      </div>
      <div className="begin-steps">
        <Sample />
        {viewer.may('ADMIN') && <NewSite />}
        {viewer.may('ADMIN') && passwords && <InviteSomebody />}
      </div>
    </section>
  );
}

const SAMPLE = { command: 'sh', arguments: ['-c', 'echo "hello from $(hostname)"'], name: 'hello' };

function Sample() {
  const submit = useAction(SubmitSampleDocument);
  const [id, setId] = useState<string | null>(null);
  const run = async (): Promise<void> => {
    const job = { ...SAMPLE, estimateS: 1 };
    const done = await told(
      submit.run({ input: { jobs: [job] } }).then(({ submitJobs }) => {
        if (submitJobs.errors[0]) throw new Error(submitJobs.errors[0].message);
        return submitJobs.jobIds[0]!;
      }),
    );
    if (done) setId(done);
  };
  return (
    <Card title="Submit a sample" about="A job that says hello">
      {id === null ? (
        <>
          <code className="secret">echo "hello from $(hostname)"</code>
          <div className="row wrap">
            <Button variant="primary" icon={<Play size={14} />} isDisabled={submit.busy} onPress={run}>
              Submit it
            </Button>
            <Link to="/submit">Or write your own</Link>
          </div>
        </>
      ) : (
        <SampleRun id={id} />
      )}
    </Card>
  );
}

function SampleRun({ id }: { id: string }) {
  const [over, setOver] = useState(false);
  const sample = useData(SampleDocument, { id }, over ? {} : { everyMs: FOLLOW_MS });
  const job = sample.data?.job;
  const isOver = job ? TERMINAL.has(job.state) && (job.output !== null || job.state !== 'COMPLETED') : false;
  if (isOver && !over) setOver(true);
  return (
    <Loaded from={sample} skeleton={<Skeleton lines={3} />}>
      {() =>
        job && (
          <div aria-live="polite" className="stack">
            <div className="row">
              <Link to="/jobs/$id" params={{ id }}>
                Job {numberOf(id)}
              </Link>
              <StateBadge state={job.state} cause={job.cause} />
            </div>
            {job.output?.text && <pre className="secret">{job.output.text}</pre>}
            {job.whyWaiting && <p className="muted">{job.whyWaiting.message}</p>}
            {over && <p className="muted">Its page shows where and why it ran there, and what it used.</p>}
          </div>
        )
      }
    </Loaded>
  );
}

/** A name to write and a button, until it is done. */
function Named({
  label,
  button,
  icon,
  help,
  busy,
  onDone,
}: {
  label: string;
  button: string;
  icon: ReactNode;
  help: string;
  busy: boolean;
  onDone(name: string): void;
}) {
  const [name, setName] = useState('');
  const isReady = name.trim() !== '' && !busy;
  const done = (): void => {
    if (isReady) onDone(name.trim());
  };
  return (
    <>
      <TextInput label={label} value={name} onChange={setName} onEnter={done} help={help} />
      <div>
        <Button icon={icon} isDisabled={!isReady} onPress={done}>
          {button}
        </Button>
      </div>
    </>
  );
}

/** What is shown this once, to be pasted elsewhere. */
function Once({ text, until, children }: { text: string; until: string | null; children: ReactNode }) {
  return (
    <>
      <p>{children}</p>
      <code className="secret">{text}</code>
      <div>
        <Button icon={<Copy size={14} />} onPress={() => copy(text)}>
          Copy
        </Button>
      </div>
      {until && (
        <p className="muted small">
          It is good until <At at={until} seconds={false} />.
        </p>
      )}
    </>
  );
}

interface Made {
  id: string;
  name: string;
  text: string;
  until: string | null;
}

function NewSite() {
  const site = useAction(BeginSiteDocument);
  const user = useAction(BeginUserDocument);
  const key = useAction(BeginKeyDocument);
  const [made, setMade] = useState<Made | null>(null);
  const add = async (name: string): Promise<Made> => {
    const { createSite } = await site.run({ input: { name } });
    const { createUser } = await user.run({ input: { name: `agent-${name}`, role: 'AGENT' } });
    const { createApiKey } = await key.run({
      input: { userId: createUser.user.id, name: `agents of ${name}`, siteId: createSite.site.id },
    });
    const text = `SWITCHYARD_URL=${location.origin}/graphql SWITCHYARD_KEY=${createApiKey.secret} npx switchyard agent --site ${name}`;
    return { ...createSite.site, text, until: createApiKey.apiKey.expiresAt };
  };
  return (
    <Card title="Add a site" about="A cluster, a lab, or a machine">
      {made ? (
        <>
          <Once text={made.text} until={made.until}>
            Run this on each host of {made.name}. It is shown only once.
          </Once>
          <Arrival site={made.id} />
        </>
      ) : (
        <Named
          label="Name of the site"
          button="Add it"
          icon={<Server size={14} />}
          help={NAME}
          busy={site.busy || user.busy || key.busy}
          onDone={(name) => void told(add(name)).then(setMade)}
        />
      )}
    </Card>
  );
}

/** Whether its first agent has come. */
function Arrival({ site: id }: { site: string }) {
  const { data } = useData(BegunSiteDocument, { id }, { everyMs: AGENT_MS });
  const site = data?.node;
  return (
    <p className="muted" aria-live="polite">
      {site?.agentSeenAt ? (
        <>
          Its agent is here, with {plural(site.machines.length, 'machine')}.{' '}
          <Link to="/sites/$id" params={{ id }}>
            See the site
          </Link>
        </>
      ) : (
        'Waiting for its first agent…'
      )}
    </p>
  );
}

function InviteSomebody() {
  const user = useAction(BeginUserDocument);
  const { busy, invite } = useInvitation();
  const [made, setMade] = useState<Invitation | null>(null);
  const register = async (name: string): Promise<Invitation> => {
    const { createUser } = await user.run({ input: { name, role: 'USER' } });
    return invite(createUser.user.id);
  };
  return (
    <Card title="Invite a user" about="Somebody who submits jobs">
      {made ? (
        <Once text={made.link} until={made.until}>
          Send this link to {made.name}, who uses it once to set a password. It is shown only once.
        </Once>
      ) : (
        <Named
          label="Name of the user"
          button="Invite"
          icon={<UserPlus size={14} />}
          help={NAME}
          busy={user.busy || busy}
          onDone={(name) => void told(register(name)).then(setMade)}
        />
      )}
    </Card>
  );
}
