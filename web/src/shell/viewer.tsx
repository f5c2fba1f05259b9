import { createContext, useContext } from 'react';
import type { UserRole, ViewerQuery } from './shell.gql';

type Viewer = ViewerQuery['viewer'];

export const ViewerContext = createContext<Viewer | null>(null);

const RANK: Record<UserRole, number> = { AGENT: 0, PEER: 0, USER: 1, OPERATOR: 2, ADMIN: 3 };

export function useViewer(): Viewer & { may(role: UserRole): boolean } {
  const viewer = useContext(ViewerContext);
  if (!viewer) throw new Error('nobody is signed in');
  return { ...viewer, may: (role) => RANK[viewer.role] >= RANK[role] };
}
