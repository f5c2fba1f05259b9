import { KeyRound, LogIn } from 'lucide-react';
import { useEffect, useState } from 'react';
import { createGraphqlClient, messageOf } from '../api/client';
import { session } from '../api/session';
import { useStore } from '../api/store';
import { Button, TextInput } from '../ui/controls';
import { Logo } from './logo';
import { ViewerDocument } from './shell.gql';
import { findProvider, leaveForProvider } from './sign-in-provider';

export function SignIn() {
  const { ended } = useStore(session);
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [provider, setProvider] = useState<string | null>(null);
  useEffect(() => void findProvider().then(setProvider), []);

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
    const { data, error } = await createGraphqlClient(() => trimmed)
      .query(ViewerDocument, {})
      .toPromise();
    setBusy(false);
    if (!data) return setError(error ? messageOf(error) : 'The service does not answer.');
    if (data.viewer.role === 'AGENT')
      return setError('This is the key of an agent. The portal is for people.');
    session.signIn(trimmed);
  }

  return (
    <main className="sign-in">
      <form
        className="sign-in-card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
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
        {provider && (
          <Button variant="primary" icon={<LogIn size={15} />} isDisabled={busy} onPress={() => void leave()}>
            Sign in with {provider}
          </Button>
        )}
        <TextInput
          label="API key"
          type="password"
          value={key}
          onChange={(value) => {
            setKey(value);
            setError(null);
          }}
          error={error}
          help="It is kept in this tab only, and forgotten when the tab is closed."
          icon={<KeyRound size={15} aria-hidden />}
          autoComplete="current-password"
          autoFocus={provider === null}
          mono
        />
        <Button type="submit" variant={provider ? 'normal' : 'primary'} isPending={busy}>
          {busy ? 'Signing in…' : provider ? 'Sign in with a key' : 'Sign in'}
        </Button>
        <p className="faint tiny">
          The service writes its administrator’s key to <code>.switchyard/admin.key</code>. Others get theirs
          from an administrator.
        </p>
      </form>
    </main>
  );
}
