/** The portal's menu: each route (routes.tsx) says where it is in it. */
import { useRouter } from '@tanstack/react-router';
import { type Icon, Terminal } from '../ui/icons';
import type { UserRole } from './shell.gql';
import { useViewer } from './viewer';

const SECTIONS = ['Work', 'Grid', 'Scheduling', 'Administration'] as const;

interface MenuEntry {
  section: (typeof SECTIONS)[number];
  label: string;
  icon: Icon;
  /** Offered from this role on. */
  role?: UserRole;
}

declare module '@tanstack/react-router' {
  interface StaticDataRouteOption {
    /** Where the page is in the menu; left out: not there. */
    menu?: MenuEntry;
    /** The page of the menu that it belongs to; left out: the one that its address begins with. */
    within?: string;
  }
}

export interface Place extends MenuEntry {
  to: string;
  /** Another page, not a route of this one. */
  page?: true;
}

const EXPLORER: Place = {
  ...{ to: '/graphql', section: 'Administration', label: 'GraphQL explorer', icon: Terminal, page: true },
};

/** The pages that the viewer may see, in sections. To users, who see no others, all jobs are theirs, and come first. */
export function usePlaces(): { title: string; places: readonly Place[] }[] {
  const { may } = useViewer();
  const all = [...useMenu(), EXPLORER];
  return SECTIONS.map((title) => {
    const places = all.filter(({ section, role }) => section === title && (!role || may(role)));
    if (may('OPERATOR')) return { title, places };
    const own = places.filter(({ to }) => to === '/jobs').map((place) => ({ ...place, label: 'My jobs' }));
    return { title, places: [...own, ...places.filter(({ to }) => to !== '/jobs')] };
  }).filter(({ places }) => places.length > 0);
}

/** The page at this address, if the viewer may not see it. */
export function useRefused(path: string): Place | null {
  const { may } = useViewer();
  const at = useMenu().find(({ to, role }) => role && (path === to || path.startsWith(`${to}/`)));
  return at?.role && !may(at.role) ? at : null;
}

/** In the order of the routes. */
const useMenu = (): Place[] =>
  Object.values(useRouter().routesById).flatMap(({ fullPath: to, options }) => {
    const menu = options.staticData?.menu;
    return menu === undefined ? [] : [{ to, ...menu }];
  });
