/**
 * What it would take to validate a document, counted before it is validated. The rules of GraphQL compare fields of one name with one
 * another, and go through fragments from each operation: work that grows with the square of the text.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { type ApiError, refusedRequest } from '../errors.js';

/** Fields with those of fragments wherever they are spread, pairs that are compared, fragments times operations: each at the most. */
const STEPS_MAX = 10_000;
const FRAGMENTS_MAX = 200;
/** Levels of selections: beyond what any limit on the depth of a query accepts. */
const LEVELS_MAX = 150;

/** Why a document is not validated at all; null: it may be. */
export function faultOfShape({ definitions }: DocumentNode): ApiError | null {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const roots: SelectionSetNode[] = [];
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
    if ('selectionSet' in definition) roots.push(definition.selectionSet);
  }
  if (fragments.size > FRAGMENTS_MAX) return tooMuch('number of fragments', fragments.size, FRAGMENTS_MAX);
  const visits = (roots.length - fragments.size) * (fragments.size + 1);
  if (visits > STEPS_MAX) return tooMuch('number of operations, times that of fragments,', visits, STEPS_MAX);
  const count = { fields: 0, pairs: 0, levels: 0 };
  for (const root of roots) walk([root], 1);
  if (count.levels > LEVELS_MAX) return tooMuch('depth', count.levels, LEVELS_MAX);
  if (count.fields > STEPS_MAX) return tooMuch('number of fields', count.fields, STEPS_MAX);
  return count.pairs > STEPS_MAX
    ? tooMuch('number of fields compared with others of the same name', count.pairs, STEPS_MAX)
    : null;

  /** Selections that become those of one object: of each name, fields of all of them are compared. */
  function walk(selections: readonly SelectionSetNode[], level: number): void {
    count.levels = Math.max(count.levels, level);
    const byName = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    const collect = ({ selections }: SelectionSetNode, inner: number): void => {
      count.levels = Math.max(count.levels, inner);
      for (const selection of selections) {
        if (isOver()) return;
        if (selection.kind === Kind.FIELD) {
          count.fields++;
          const name = (selection.alias ?? selection.name).value;
          const others = byName.get(name);
          count.pairs += others?.length ?? 0;
          if (others) others.push(selection);
          else byName.set(name, [selection]);
        } else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet, inner + 1);
        else if (!spread.has(selection.name.value)) {
          // Fragments beside one another are compared with one another.
          count.pairs += spread.size;
          spread.add(selection.name.value);
          const fragment = fragments.get(selection.name.value);
          if (fragment) collect(fragment.selectionSet, inner + 1);
        }
      }
    };
    for (const one of selections) collect(one, level);
    for (const fields of byName.values()) {
      const below = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (below.length > 0 && !isOver()) walk(below, level + 1);
    }
  }

  function isOver(): boolean {
    return count.fields > STEPS_MAX || count.pairs > STEPS_MAX || count.levels > LEVELS_MAX;
  }
}

/** The error for a document that is too much work. */
export const tooMuch = (what: string, value: number, max: number): ApiError =>
  refusedRequest('QUERY_TOO_COMPLEX', `the query's ${what} is ${value} or more; accepted: up to ${max}`);
