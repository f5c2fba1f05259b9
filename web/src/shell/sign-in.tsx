import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import { createGraphqlClient, messageOf } from '../api/client';
import { session } from '../api/session';
import { useStore } from '../api/store';
import { Button, TextInput } from '../ui/controls';
import { Logo } from './logo';
import { ViewerDocument } from './shell.gql';

export function SignIn() {
  const { ended } = useStore(session);
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  async function submit(): Promise<void> {
    const trimmed = key.trim();
    if (trimmed === '') return setError('Enter an API key.');
    setBusy(true);
    const { data, error } = await createGraphqlClient(trimmed).query(ViewerDocument, {}).toPromise();
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
        <TextInput
          label="API key"
          type="password"
          value={key}
          onChange={(value) => {
            setKey(value);
            setError(null);
          }}
          error={error}
          help="It stays in this tab and goes when the tab is closed."
          icon={<KeyRound size={15} aria-hidden />}
          autoComplete="current-password"
          autoFocus
          mono
        />
        <Button type="submit" variant="primary" isPending={busy}>
          {busy ? 'Signing in…' : 'Sign in'}
        </Button>
        <p className="faint tiny">
          The service writes its administrator’s key to <code>.switchyard/admin.key</code>. Others get theirs
          from an administrator.
        </p>
      </form>
    </main>
  );
}
