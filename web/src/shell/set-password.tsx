/** Where the link of an invitation leads: its reader sets a password, and is signed in. */
import { useEffect, useState } from 'react';
import { Button, Check, TextInput } from '../ui/controls';
import { Problem } from '../ui/show';
import { Logo } from './logo';
import { acceptInvitation, lookAtInvitation } from './sign-in-by';

export function SetPassword({ invitation, onDone }: { invitation: string; onDone(): void }) {
  const [user, setUser] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [password, setPassword] = useState('');
  const [isShown, setShown] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    lookAtInvitation(invitation).then(
      (found) => setUser(found.user),
      (why: Error) => setRefused(why.message),
    );
  }, [invitation]);

  async function submit(): Promise<void> {
    setBusy(true);
    try {
      await acceptInvitation(invitation, password);
      onDone();
    } catch (why) {
      setError((why as Error).message);
      setBusy(false);
    }
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
          <h1>{user === null ? 'Your invitation' : `Welcome, ${user}`}</h1>
          {user !== null && (
            <p className="muted small">
              Set a password. From now on you sign in with it and the user name {user}; you are signed out
              everywhere else.
            </p>
          )}
        </div>
        {refused && (
          <>
            <Problem error={refused} />
            <Button onPress={onDone}>To the sign-in page</Button>
          </>
        )}
        {user !== null && (
          <>
            {/* For password managers, which keep both. */}
            <input
              className="hidden-visually"
              tabIndex={-1}
              aria-hidden
              autoComplete="username"
              value={user}
              readOnly
            />
            <TextInput
              label="New password"
              type={isShown ? 'text' : 'password'}
              value={password}
              onChange={(value) => {
                setPassword(value);
                setError(null);
              }}
              error={error}
              help="12 characters or more, of any kind; several words work well."
              autoComplete="new-password"
              autoFocus
            />
            <Check checked={isShown} onChange={setShown}>
              Show it
            </Check>
            <Button type="submit" variant="primary" isPending={busy} isDisabled={password === ''}>
              Set it and sign in
            </Button>
          </>
        )}
      </form>
    </main>
  );
}
