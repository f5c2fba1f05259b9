import { useEffect, useState } from 'react';
import { createGraphqlClient, messageOf } from '../api/client';
import { serviceFor } from '../api/service';
import { session } from '../api/session';
import { useStore } from '../api/store';
import { Button, TextInput } from '../ui/controls';
import { KeyRound, LogIn } from '../ui/icons';
import { Logo } from './logo';
import { ViewerDocument } from './shell.gql';
import { askSignInBy, signInByPassword } from './sign-in-by';
import { leaveForProvider } from './sign-in-provider';

export function SignIn() {
  const { ended } = useStore(session);
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [by, setBy] = useState<{ provider: string | null; passwords: boolean } | null>(null);
  useEffect(() => {
    void askSignInBy().then(({ oidc, passwords }) =>
      setBy({ provider: oidc && new URL(oidc.issuer).hostname, passwords }),
    );
  }, []);

  async function leave(): Promise<void> {
    setBusy(true);
    const failure = await leaveForProvider();
    setBusy(false);
    setError(failure);
  }

  async function submit(): Promise<void> {
    const trimmed = key.trim();
    if (trimmed === '') return setError('Enter an API key.');
    setBusy(true);
    const { data, error } = await createGraphqlClient(serviceFor(() => trimmed))
      .query(ViewerDocument, {})
      .toPromise();
    setBusy(false);
    if (!data) return setError(error ? messageOf(error) : 'The service does not respond.');
    if (data.viewer.role === 'AGENT') return setError('This is an agent’s key. The portal is for people.');
    session.signIn(trimmed);
  }

  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <div className="stack tight">
          <Logo />
          <h1>Sign in to Switchyard</h1>
          {ended ? (
            <p className="note warn" role="status">
              {ended}
            </p>
          ) : (
            <p className="muted small">Jobs, sites and schedulers, live.</p>
          )}
        </div>
        {by?.provider && (
          <Button variant="primary" icon={<LogIn size={15} />} isDisabled={busy} onPress={() => void leave()}>
            Sign in with {by.provider}
          </Button>
        )}
        {by?.passwords && <ByPassword isFirst={by.provider === null} />}
        {by && (
          <form
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void submit();
            }}
          >
            <TextInput
              label="API key"
              type="password"
              value={key}
              onChange={(value) => {
                setKey(value);
                setError(null);
              }}
              error={error}
              help="It is kept only in this tab, and removed when the tab is closed."
              icon={<KeyRound size={15} aria-hidden />}
              autoComplete="off"
              autoFocus={!by.provider && !by.passwords}
              mono
            />
            <Button
              type="submit"
              variant={by.provider || by.passwords ? 'normal' : 'primary'}
              isPending={busy}
            >
              {busy ? 'Signing in…' : by.provider || by.passwords ? 'Sign in with a key' : 'Sign in'}
            </Button>
          </form>
        )}
        <p className="faint tiny">
          The service writes its administrator’s key to <code>.switchyard/admin.key</code>. Others get theirs,
          or a link to set a password, from an administrator.
        </p>
      </div>
    </main>
  );
}

function ByPassword({ isFirst }: { isFirst: boolean }) {
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  async function submit(): Promise<void> {
    if (user.trim() === '' || password === '') return setError('Enter your user name and your password.');
    setBusy(true);
    try {
      await signInByPassword(user.trim(), password);
    } catch (why) {
      setError((why as Error).message);
      setBusy(false);
    }
  }

  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <TextInput
        label="User name"
        value={user}
        onChange={setUser}
        autoComplete="username"
        autoFocus={isFirst}
      />
      <TextInput
        label="Password"
        type="password"
        value={password}
        onChange={(value) => {
          setPassword(value);
          setError(null);
        }}
        error={error}
        autoComplete="current-password"
      />
      <Button type="submit" variant={isFirst ? 'primary' : 'normal'} isPending={busy}>
        {busy ? 'Signing in…' : 'Sign in'}
      </Button>
    </form>
  );
}
