/** What needs a session: the page behind, or the way to sign in. */
import { type ReactNode, useMemo } from 'react';
import { Provider } from 'urql';
import { createGraphqlClient } from '../api/client';
import { useData } from '../api/data';
import { session } from '../api/session';
import { useStore } from '../api/store';
import { Problem } from '../ui/show';
import { Logo } from './logo';
import { ViewerDocument } from './shell.gql';
import { SignIn } from './sign-in';
import { ViewerContext } from './viewer';

export function SignedIn({ children }: { children: ReactNode }) {
  const { key, number } = useStore(session);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each session has a cache of its own
  const client = useMemo(() => createGraphqlClient(), [number]);
  if (key === null) return <SignIn />;
  return (
    <Provider value={client}>
      <WithViewer>{children}</WithViewer>
    </Provider>
  );
}

function WithViewer({ children }: { children: ReactNode }) {
  const { data, error, refresh } = useData(ViewerDocument, {});
  if (data) return <ViewerContext value={data.viewer}>{children}</ViewerContext>;
  return (
    <main className="sign-in">
      {error ? (
        <div className="sign-in-card">
          <Logo />
          <Problem error={error} retry={refresh} />
        </div>
      ) : (
        <Logo size={40} />
      )}
    </main>
  );
}
