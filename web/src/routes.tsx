/** Every page, by its address and in the order of the menu. A page is loaded when it is first opened; filters and columns are in the address. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Link,
  lazyRouteComponent,
} from '@tanstack/react-router';
import { Shell } from './shell/shell';
import type { Search } from './ui/address';
import { Button } from './ui/controls';
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
  Users,
} from './ui/icons';
import { Empty, Page, Problem } from './ui/show';

function Failed({ error: thrown, reset }: ErrorComponentProps) {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  // A chunk of an older build is gone after an upgrade: the new page has it.
  const outdated = /dynamically imported module|Failed to fetch/.test(error.message);
  return (
    <Page title={outdated ? 'The portal was updated' : 'Something went wrong on this page'}>
      <Problem error={outdated ? 'Reload it to continue.' : error.message} />
      <div>
        <Button onPress={() => (outdated ? location.reload() : reset())}>
          {outdated ? 'Load again' : 'Try again'}
        </Button>
      </div>
    </Page>
  );
}

const root = createRootRoute({
  component: Shell,
  validateSearch: (search): Search =>
    Object.fromEntries(Object.entries(search).filter(([, value]) => typeof value === 'string')) as Search,
  notFoundComponent: () => (
    <Page title="No such page">
      <Empty title="There is nothing at this address." action={<Link to="/">To the overview</Link>} />
    </Page>
  ),
});
const getParentRoute = () => root;

const routes = [
  createRoute({
    getParentRoute,
    path: '/',
    staticData: { menu: { section: 'Work', label: 'Overview', icon: LayoutDashboard } },
    component: lazyRouteComponent(() => import('./pages/overview/overview'), 'Overview'),
  }),
  createRoute({
    getParentRoute,
    path: '/jobs',
    staticData: { menu: { section: 'Work', label: 'Jobs', icon: ListChecks } },
    component: lazyRouteComponent(() => import('./pages/jobs/jobs'), 'Jobs'),
  }),
  createRoute({
    getParentRoute,
    path: '/jobs/$id',
    component: lazyRouteComponent(() => import('./pages/job/job'), 'JobPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/groups/$id',
    staticData: { within: '/jobs' },
    component: lazyRouteComponent(() => import('./pages/jobs/groups'), 'GroupPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/graph',
    staticData: { within: '/jobs' },
    component: lazyRouteComponent(() => import('./pages/graph/graph'), 'GraphPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/submit',
    component: lazyRouteComponent(() => import('./pages/submit/submit'), 'Submit'),
  }),
  createRoute({
    getParentRoute,
    path: '/sites',
    staticData: { menu: { section: 'Grid', label: 'Sites', icon: Server } },
    component: lazyRouteComponent(() => import('./pages/sites/sites'), 'Sites'),
  }),
  createRoute({
    getParentRoute,
    path: '/sites/$id',
    component: lazyRouteComponent(() => import('./pages/sites/site'), 'SitePage'),
  }),
  createRoute({
    getParentRoute,
    path: '/tree',
    staticData: { menu: { section: 'Grid', label: 'Scheduler tree', icon: Network } },
    component: lazyRouteComponent(() => import('./pages/tree/tree'), 'Tree'),
  }),
  createRoute({
    getParentRoute,
    path: '/data',
    staticData: { menu: { section: 'Grid', label: 'Data', icon: Database } },
    component: lazyRouteComponent(() => import('./pages/data/data'), 'DataPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/licenses',
    staticData: { menu: { section: 'Grid', label: 'Licenses', icon: KeyRound } },
    component: lazyRouteComponent(() => import('./pages/licenses/licenses'), 'Licenses'),
  }),
  createRoute({
    getParentRoute,
    path: '/usage',
    staticData: { menu: { section: 'Grid', label: 'Usage', icon: ChartColumn } },
    component: lazyRouteComponent(() => import('./pages/usage/usage'), 'UsagePage'),
  }),
  createRoute({
    getParentRoute,
    path: '/ratios',
    staticData: { menu: { section: 'Scheduling', label: 'Job ratios', icon: Activity } },
    component: lazyRouteComponent(() => import('./pages/ratios/ratios'), 'Ratios'),
  }),
  createRoute({
    getParentRoute,
    path: '/policy',
    staticData: { menu: { section: 'Scheduling', label: 'Policy', icon: SlidersHorizontal } },
    component: lazyRouteComponent(() => import('./pages/policy/policy'), 'PolicyPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/simulator',
    staticData: { menu: { section: 'Scheduling', label: 'Simulator', icon: FlaskConical, role: 'OPERATOR' } },
    component: lazyRouteComponent(() => import('./pages/simulator/simulator'), 'Simulator'),
  }),
  createRoute({
    getParentRoute,
    path: '/simulator/$id',
    component: lazyRouteComponent(() => import('./pages/simulator/simulator'), 'SimulationPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/users',
    staticData: { menu: { section: 'Administration', label: 'Users and quotas', icon: Users } },
    component: lazyRouteComponent(() => import('./pages/users/users'), 'UsersPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/users/$id',
    component: lazyRouteComponent(() => import('./pages/users/user'), 'UserPage'),
  }),
  createRoute({
    getParentRoute,
    path: '/audit',
    staticData: {
      menu: { section: 'Administration', label: 'Audit log', icon: ClipboardList, role: 'ADMIN' },
    },
    component: lazyRouteComponent(() => import('./pages/audit/audit'), 'Audit'),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultPreload: 'intent',
  defaultErrorComponent: Failed,
  scrollRestoration: true,
  // Plain addresses that can be read and written by hand: `?states=RUNNING,QUEUED`.
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch(search) {
    const given = Object.entries(search).filter((entry): entry is [string, string] => Boolean(entry[1]));
    const text = new URLSearchParams(given).toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
    return text ? `?${text}` : '';
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
