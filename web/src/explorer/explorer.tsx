import 'graphiql/style.css';
import { createGraphiQLFetcher } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import { createClient } from 'graphql-ws';
import { useMemo } from 'react';
import { theme } from '../ui/theme';

const TABS = [
  `# The book icon on the left shows the schema; Ctrl+Space completes.

query Jobs {
  jobs(
    orderBy: { field: SUBMITTED_AT, direction: DESC }
    first: 10
  ) {
    nodes {
      id
      state
      application
      site {
        name
      }
    }
  }
}
`,
  `# Runs until stopped.

subscription News {
  jobUpdated {
    cursor
    event {
      fromState
      toState
    }
    job {
      id
      state
    }
  }
}
`,
];

export default function Explorer({ accessKey }: { accessKey: string }) {
  const fetcher = useMemo(() => {
    const authorization = `Bearer ${accessKey}`;
    return createGraphiQLFetcher({
      url: `${location.origin}/graphql`,
      headers: { authorization },
      wsClient: createClient({
        url: `${location.origin.replace(/^http/, 'ws')}/graphql`,
        connectionParams: { authorization },
      }),
    });
  }, [accessKey]);
  const chosen = theme.get();
  return (
    <GraphiQL
      fetcher={fetcher}
      defaultTabs={TABS.map((query) => ({ query }))}
      forcedTheme={chosen}
      // The key is the session's; nothing is to be typed, nor kept in local storage.
      isHeadersEditorEnabled={false}
      shouldPersistHeaders={false}
    />
  );
}
