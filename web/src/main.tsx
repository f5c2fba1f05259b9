import './ui/tokens.css';
import './ui/base.css';
import './ui/controls.css';
import './ui/show.css';
import './shell/shell.css';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { session } from './api/session';
import { router } from './routes';
import { ReplaceSession } from './shell/replace-session';
import { SetPassword } from './shell/set-password';
import { signInByLink, watchForLinks } from './shell/sign-in-link';
import { returnFromProvider } from './shell/sign-in-provider';
import { SignedIn } from './shell/signed-in';

const root = createRoot(document.getElementById('root') as HTMLElement);

// The link that `npm start` prints, or an invitation: its secret leaves the address before anything is shown.
await signInByLink({
  mayReplace: () => new Promise((resolve) => root.render(<ReplaceSession onAnswer={resolve} />)),
  setPassword: (invitation) =>
    new Promise((resolve) => root.render(<SetPassword invitation={invitation} onDone={resolve} />)),
});
watchForLinks();
await returnFromProvider();

// The page that is asked for comes while the service is asked who this is.
if (session.get().key !== null) void router.load();

root.render(
  <StrictMode>
    <SignedIn>
      <RouterProvider router={router} />
    </SignedIn>
  </StrictMode>,
);
