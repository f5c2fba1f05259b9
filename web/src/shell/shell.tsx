/** What is around every page: the way to the others, who is signed in, and whether news arrive. */
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { Suspense, useEffect, useRef, useState } from 'react';
import { Dialog as AriaDialog, Modal, ModalOverlay } from 'react-aria-components';
import { useFollow, useThrottled } from '../api/data';
import { type Connection, connection } from '../api/service';
import { useStore } from '../api/store';
import { Button, MenuButton } from '../ui/controls';
import { words } from '../ui/format';
import { LogOut, Menu as MenuIcon, Monitor, Moon, Plus, Search, Sun, WifiOff, X } from '../ui/icons';
import { Empty, Page, Skeleton } from '../ui/show';
import { theme } from '../ui/theme';
import { Toasts } from '../ui/toast';
import { gridChanges } from './feed';
import { Logo } from './logo';
import { type Place, usePlaces, useRefused } from './places';
import { QuickOpen } from './quick-open';
import { GridNewsDocument } from './shell.gql';
import { signOut } from './sign-in-link';
import { useViewer } from './viewer';

const THEMES = {
  system: { next: 'light', label: 'Colors: as the system', icon: <Monitor size={15} /> },
  light: { next: 'dark', label: 'Colors: light', icon: <Sun size={15} /> },
  dark: { next: 'system', label: 'Colors: dark', icon: <Moon size={15} /> },
} as const;

function Navigation({ onQuickOpen, onGo }: { onQuickOpen(): void; onGo?: () => void }) {
  const viewer = useViewer();
  const sections = usePlaces();
  const within = useRouterState({ select: ({ matches }) => matches.at(-1)?.staticData.within });
  const chosen = useStore(theme);
  const navigate = useNavigate();
  return (
    <>
      <div className="row nav-top">
        <Link to="/" className="brand" onClick={onGo}>
          <Logo size={24} />
          <span>Switchyard</span>
        </Link>
      </div>
      <div className="nav-actions">
        <Link to="/submit" className="button primary" onClick={onGo}>
          <Plus size={15} aria-hidden />
          <span>Submit</span>
        </Link>
        <Button icon={<Search size={15} />} hint="Go to… (Ctrl K)" onPress={onQuickOpen} />
      </div>
      <nav aria-label="Pages" className="nav">
        {sections.map(({ title, places }) => (
          <div key={title}>
            <h2 id={`nav-${title}`}>{title}</h2>
            <ul aria-labelledby={`nav-${title}`}>
              {places.map((place) => (
                <li key={place.to}>
                  {place.page ? (
                    <a href={place.to} className="nav-link">
                      <place.icon size={16} aria-hidden />
                      {place.label}
                    </a>
                  ) : (
                    <Link
                      to={place.to}
                      className="nav-link"
                      activeOptions={{ exact: place.to === '/' }}
                      {...(place.to === within && { className: 'nav-link active', 'aria-current': 'page' })}
                      onClick={onGo}
                    >
                      <place.icon size={16} aria-hidden />
                      {place.label}
                    </Link>
                  )}
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div className="nav-foot">
        <LiveMark />
        <div className="row spread">
          <MenuButton
            variant="quiet"
            entries={[
              {
                id: 'account',
                label: 'Account and keys',
                onAction: () => {
                  onGo?.();
                  void navigate({ to: '/users/$id', params: { id: viewer.id } });
                },
              },
              {
                id: 'out',
                label: (
                  <span className="row">
                    <LogOut size={14} aria-hidden /> Sign out
                  </span>
                ),
                text: 'Sign out',
                onAction: signOut,
              },
            ]}
          >
            <span className="who">
              <span className="avatar" aria-hidden>
                {viewer.name.slice(0, 1).toUpperCase()}
              </span>
              <span className="cut">
                <span className="hidden-visually">Signed in as </span>
                {viewer.name}
                <small>{words(viewer.role)}</small>
              </span>
            </span>
          </MenuButton>
          <Button
            variant="quiet"
            icon={THEMES[chosen].icon}
            hint={THEMES[chosen].label}
            onPress={() => theme.set(THEMES[chosen].next)}
          />
        </div>
      </div>
    </>
  );
}

const MARKS: Record<Connection, string> = {
  idle: 'Live updates are off',
  connecting: 'Connecting…',
  open: 'Live',
  lost: 'Connection lost',
};

function LiveMark() {
  const state = useStore(connection);
  return (
    <p className={`live-mark ${state}`} data-connection={state}>
      <i className="dot" aria-hidden />
      {MARKS[state]}
    </p>
  );
}

/** Says that news do not arrive, and that none are missed. Not for a blink. */
function ConnectionBanner() {
  const state = useStore(connection);
  const [shown, setShown] = useState<'no' | 'lost' | 'back'>('no');
  useEffect(() => {
    if (state === 'lost') {
      const timer = setTimeout(() => setShown('lost'), 700);
      return () => clearTimeout(timer);
    }
    if (state !== 'open') return;
    setShown((before) => (before === 'lost' ? 'back' : before));
    const timer = setTimeout(() => setShown('no'), 4_000);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <div role="status" aria-live="polite">
      {shown !== 'no' && (
        <div className={`connection ${shown}`}>
          {shown === 'lost' ? (
            <>
              <WifiOff size={15} aria-hidden />
              Connection lost. Trying again; updates will continue from where they stopped.
            </>
          ) : (
            'Connected again. Updates continue from where they stopped.'
          )}
        </div>
      )}
    </div>
  );
}

/** At the address of a page that is not offered. */
function NotForYou({ place: { label, icon: Icon, role = 'USER' } }: { place: Place }) {
  return (
    <Page title={label}>
      <Empty
        icon={<Icon size={16} aria-hidden />}
        title={`This page is for ${role === 'ADMIN' ? 'administrators' : 'operators and administrators'}`}
        action={<Link to="/jobs">To your jobs</Link>}
      >
        You are signed in as {useViewer().name}. An administrator can give you that role.
      </Empty>
    </Page>
  );
}

export function Shell() {
  const [menu, setMenu] = useState(false);
  const [quick, setQuick] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const shown = useRouterState({ select: (state) => state.resolvedLocation?.href });
  const main = useRef<HTMLElement>(null);
  // Of what is shown: while another page loads, the one that is left would be seen.
  const refused = useRefused(useRouterState({ select: ({ matches }) => matches.at(-1)?.pathname ?? '' }));
  const first = useRef(true);

  const changed = useThrottled(() => gridChanges.set(gridChanges.get() + 1), 1_000);
  useFollow(GridNewsDocument, 'siteUpdated', {}, { onUpdates: changed, onResync: changed });

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).closest('input, textarea, [contenteditable]') !== null;
      if (((event.ctrlKey || event.metaKey) && event.key === 'k') || (event.key === '/' && !typing)) {
        event.preventDefault();
        setQuick(true);
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: of a new page a screen reader begins at its top
  useEffect(() => {
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
  }, [path]);

  return (
    <div className="shell">
      <a href="#main" className="skip">
        Skip to the page
      </a>
      <aside className="side">
        <Navigation onQuickOpen={() => setQuick(true)} />
      </aside>
      <header className="top">
        <Button
          variant="quiet"
          icon={<MenuIcon size={18} />}
          aria-label="Menu"
          onPress={() => setMenu(true)}
        />
        <Link to="/" className="brand">
          <Logo size={22} />
          <span>Switchyard</span>
        </Link>
        <span className="grow" />
        <Button
          variant="quiet"
          icon={<Search size={17} />}
          aria-label="Go to"
          onPress={() => setQuick(true)}
        />
        <Link to="/submit" className="button primary">
          <Plus size={15} aria-hidden />
          <span>Submit</span>
        </Link>
      </header>
      <ModalOverlay className="drawer-overlay" isOpen={menu} onOpenChange={setMenu} isDismissable>
        <Modal className="drawer">
          <AriaDialog aria-label="Menu" className="drawer-inside">
            <Button
              variant="quiet"
              className="drawer-close"
              icon={<X size={18} />}
              aria-label="Close the menu"
              onPress={() => setMenu(false)}
            />
            <Navigation
              onGo={() => setMenu(false)}
              onQuickOpen={() => {
                setMenu(false);
                setQuick(true);
              }}
            />
          </AriaDialog>
        </Modal>
      </ModalOverlay>
      <main id="main" ref={main} tabIndex={-1} data-shows={shown}>
        <ConnectionBanner />
        <Suspense
          fallback={
            <div className="page">
              <Skeleton height={34} />
              <Skeleton height={320} />
            </div>
          }
        >
          {refused ? <NotForYou place={refused} /> : <Outlet />}
        </Suspense>
      </main>
      <QuickOpen open={quick} onClose={() => setQuick(false)} />
      <Toasts />
    </div>
  );
}
