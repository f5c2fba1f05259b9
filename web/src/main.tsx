import './ui/tokens.css';
import './ui/base.css';
import './ui/controls.css';
import './ui/show.css';
import './shell/shell.css';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { router } from './routes';
import { SignedIn } from './shell/signed-in';

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <SignedIn>
      <RouterProvider router={router} />
    </SignedIn>
  </StrictMode>,
);
