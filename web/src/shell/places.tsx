/** Where the portal's pages are. */
import {
  Activity,
  ChartColumn,
  ClipboardList,
  Database,
  FlaskConical,
  KeyRound,
  LayoutDashboard,
  ListChecks,
  Network,
  Server,
  SlidersHorizontal,
  Terminal,
  Users,
} from 'lucide-react';
import type { ReactNode } from 'react';
import type { UserRole } from './shell.gql';
import type { useViewer } from './viewer';

export interface Place {
  to: string;
  label: string;
  icon: ReactNode;
  /** Offered from this role on. */
  role?: UserRole;
  /** Another page, not a route of this one. */
  page?: true;
}

const icon = { size: 16, 'aria-hidden': true } as const;
const PLACES: readonly { title: string; places: readonly Place[] }[] = [
  {
    title: 'Work',
    places: [
      { to: '/', label: 'Overview', icon: <LayoutDashboard {...icon} /> },
      { to: '/jobs', label: 'Jobs', icon: <ListChecks {...icon} /> },
    ],
  },
  {
    title: 'Grid',
    places: [
      { to: '/sites', label: 'Sites', icon: <Server {...icon} /> },
      { to: '/tree', label: 'Scheduler tree', icon: <Network {...icon} /> },
      { to: '/data', label: 'Data', icon: <Database {...icon} /> },
      { to: '/licenses', label: 'Licenses', icon: <KeyRound {...icon} /> },
      { to: '/usage', label: 'Usage', icon: <ChartColumn {...icon} /> },
    ],
  },
  {
    title: 'Scheduling',
    places: [
      { to: '/ratios', label: 'Job ratios', icon: <Activity {...icon} /> },
      { to: '/policy', label: 'Policy', icon: <SlidersHorizontal {...icon} /> },
      { to: '/simulator', label: 'Simulator', icon: <FlaskConical {...icon} />, role: 'OPERATOR' },
    ],
  },
  {
    title: 'Administration',
    places: [
      { to: '/users', label: 'Users and shares', icon: <Users {...icon} /> },
      { to: '/audit', label: 'Audit log', icon: <ClipboardList {...icon} />, role: 'ADMIN' },
      { to: '/graphql', label: 'GraphQL explorer', icon: <Terminal {...icon} />, page: true },
    ],
  },
];

type Who = Pick<ReturnType<typeof useViewer>, 'may'>;

/** The pages that somebody may see. To users, who see no others, all jobs are theirs, and come first. */
export function placesFor(viewer: Who): { title: string; places: readonly Place[] }[] {
  return PLACES.map(({ title, places }) => {
    const offered = places.filter(({ role }) => !role || viewer.may(role));
    if (viewer.may('OPERATOR')) return { title, places: offered };
    const own = offered.filter(({ to }) => to === '/jobs').map((place) => ({ ...place, label: 'My jobs' }));
    return { title, places: [...own, ...offered.filter(({ to }) => to !== '/jobs')] };
  }).filter(({ places }) => places.length > 0);
}

/** The page at this address, if it is none of theirs. */
export function refusedAt(viewer: Who, path: string): Place | null {
  const at = PLACES.flatMap(({ places }) => places).find(
    ({ to, role }) => role && (path === to || path.startsWith(`${to}/`)),
  );
  return at?.role && !viewer.may(at.role) ? at : null;
}
