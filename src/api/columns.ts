/** Which columns of a job a query needs, so that a page of thousands reads no more than it shows. */
import { type FieldNode, type GraphQLResolveInfo, Kind, type SelectionSetNode } from 'graphql';
import type { JobRow } from '../store/rows.js';

/** Columns behind the fields of `Job` that are not named like them. Others are: `state`, `deadline`, `submittedAt`, … */
const COLUMNS: Readonly<Record<string, readonly (keyof JobRow)[]>> = {
  __typename: [],
  user: ['userId'],
  site: ['siteId'],
  group: ['groupId'],
  originSite: ['originSiteId'],
  reservation: ['reservationId'],
  scheduler: ['schedulerId'],
  path: [],
  files: ['epoch'],
  foreign: [],
  peers: [
    ...(['state', 'inputs', 'outputs', 'os', 'architecture', 'licenses'] as const),
    ...(['tasks', 'cpusPerTask', 'memoryMbPerTask'] as const),
  ],
  cpus: ['tasks', 'cpusPerTask', 'parts'],
  memoryMb: ['tasks', 'memoryMbPerTask', 'parts'],
  batch: ['siteId'],
  needs: [],
  onUnmet: [],
  unmetBecause: [],
  neededBy: [],
  rerunAs: [],
  notBefore: [],
  runs: [],
  decisions: [],
  events: [],
  output: [],
  whyWaiting: [],
  expectedStart: ['state'],
  earliestStart: ['state'],
};

/** The columns that the `nodes` and `edges.node` of a page of jobs ask for. */
export function jobColumns(info: GraphQLResolveInfo): (keyof JobRow)[] {
  const columns = new Set<keyof JobRow>();
  const seen = new Set<string>();

  function visit(selections: SelectionSetNode, onJob: boolean): void {
    for (const selection of selections.selections) {
      if (selection.kind === Kind.FIELD) visitField(selection, onJob);
      else if (selection.kind === Kind.INLINE_FRAGMENT) visit(selection.selectionSet, onJob);
      else {
        const name = selection.name.value;
        const fragment = info.fragments[name];
        if (!fragment || seen.has(`${name} ${onJob}`)) continue;
        seen.add(`${name} ${onJob}`);
        visit(fragment.selectionSet, onJob);
      }
    }
  }

  function visitField(field: FieldNode, onJob: boolean): void {
    const name = field.name.value;
    if (onJob) {
      for (const column of COLUMNS[name] ?? [name as keyof JobRow]) columns.add(column);
    } else if (field.selectionSet && (name === 'nodes' || name === 'node' || name === 'edges')) {
      visit(field.selectionSet, name !== 'edges');
    }
  }

  for (const node of info.fieldNodes) if (node.selectionSet) visit(node.selectionSet, false);
  return [...columns];
}
