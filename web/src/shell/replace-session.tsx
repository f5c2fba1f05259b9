/** Whether a link may sign in somebody else in this tab. Nobody is to go on as another without having been asked. */
import { Button } from '../ui/controls';
import { Logo } from './logo';

export function ReplaceSession({ onAnswer }: { onAnswer(may: boolean): void }) {
  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <div className="stack tight">
          <Logo />
          <h1>You are signed in already</h1>
          <p className="muted small">
            The link that you opened starts a new session, possibly as another user. Use it only if you
            requested it, for example by <code>npm start</code> or from an administrator. It ends the session
            of this tab.
          </p>
        </div>
        <Button variant="primary" autoFocus onPress={() => onAnswer(false)}>
          Stay signed in
        </Button>
        <Button onPress={() => onAnswer(true)}>Sign in by the link</Button>
      </div>
    </main>
  );
}
