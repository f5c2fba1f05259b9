/** GraphiQL at the service's own address, with the key of the session. Everything that it needs comes with it. */
import '../ui/tokens.css';
import '../ui/base.css';
import '../ui/controls.css';
import '../ui/show.css';
import '../shell/shell.css';
import './explorer.css';
import { lazy, StrictMode, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { session } from '../api/session';
import { useStore } from '../api/store';
import { Logo } from '../shell/logo';
import { SignIn } from '../shell/sign-in';
import { returnFromProvider } from '../shell/sign-in-provider';
import '../ui/theme';

const Explorer = lazy(() => import('./explorer'));

function Page() {
  const { key } = useStore(session);
  if (key === null) return <SignIn />;
  return (
    <div className="explorer">
      <header className="explorer-head">
        <a href="/" className="brand">
          <Logo size={22} />
          <span>Switchyard</span>
        </a>
        <h1>GraphQL explorer</h1>
        <span className="grow" />
        <a href="/" className="button">
          <span>Back to the portal</span>
        </a>
      </header>
      <main className="explorer-main">
        <Suspense fallback={<p className="table-empty">Loading the explorer…</p>}>
          <Explorer accessKey={key} />
        </Suspense>
      </main>
    </div>
  );
}

// Whoever came here from a provider stays signed in.
void returnFromProvider();

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
