/**
 * How much a query may ask for. One walk over the operation counts its depth, its aliases and its cost; the walk of a
 * fragment is remembered, so that nested fragments cost no more than their text.
 *
 * Cost counts the objects that an answer may hold: an object is 1, a page of `first` or `last` counts its selection so many
 * times, any other list of objects LIST_FACTOR times; a few fields that compute, or lead to long lists, count more. Values
 * within objects count nothing, their number is bounded by the text.
 *
 * Why not a library: those at hand coerce all variables once more to read `first`, which doubles the cost of a submission
 * of 10 000 jobs. Introspection is left to graphql-js, whose own rule bounds it.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Limits } from '../platform/limits.js';
import { type ApiError, refusedRequest } from './errors.js';

/** What a list of objects without `first` is taken to hold. */
const LIST_FACTOR = 10;
/**
 * Cost of fields that do more than read a row that is looked up together with others: statements of their own, texts that
 * may be large, or a scheduler's walk along a whole queue.
 */
const FIELD_COST: Readonly<Record<string, number>> = {
  'Query.placement': 400,
  'Job.whyWaiting': 400,
  'Job.expectedStart': 400,
  'Job.output': 200,
  'Job.decisions': 50,
  'Job.events': 50,
  'User.apiKeys': 10,
  'Query.jobCount': 50,
  'JobConnection.totalCount': 50,
  'Query.loadHistory': 200,
  'Query.licenseHistory': 200,
  'Query.usage': 200,
  'Query.peers': 50,
  'Query.userStandings': 50,
  'Query.jobRatio': 10,
  'JobRatio.history': 20,
  'Link.history': 10,
  'JobGroup.jobs': 20,
  'Job.batch': 1,
  'Job.inputs': 5,
  'Dataset.replicas': 20,
};

export interface Measure {
  depth: number;
  aliases: number;
  cost: number;
}

const NOTHING: Measure = { depth: 0, aliases: 0, cost: 0 };

/** Measures a valid operation. `variables` as they came: only whole numbers among them are looked at. */
export function measure(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): Measure {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const defaults = new Map(
    (operation.variableDefinitions ?? []).map((v) => [
      v.variable.name.value,
      v.defaultValue?.kind === Kind.INT ? Number(v.defaultValue.value) : null,
    ]),
  );
  const remembered = new Map<string, Measure>();
  const root = schema.getRootType(operation.operation);
  return root ? ofSelections(operation.selectionSet, root) : NOTHING;

  function ofSelections(selections: SelectionSetNode, parent: { name: string } | null): Measure {
    const total = { ...NOTHING };
    for (const selection of selections.selections) {
      const one =
        selection.kind === Kind.FIELD
          ? ofField(selection, parent)
          : selection.kind === Kind.INLINE_FRAGMENT
            ? ofSelections(selection.selectionSet, named(selection.typeCondition?.name.value) ?? parent)
            : ofFragment(selection.name.value);
      total.depth = Math.max(total.depth, one.depth);
      total.aliases += one.aliases;
      total.cost += one.cost;
    }
    return total;
  }

  function ofFragment(name: string): Measure {
    const known = remembered.get(name);
    if (known) return known;
    const fragment = fragments.get(name);
    if (!fragment) return NOTHING;
    const result = ofSelections(fragment.selectionSet, named(fragment.typeCondition.name.value));
    remembered.set(name, result);
    return result;
  }

  function ofField(node: FieldNode, parent: { name: string } | null): Measure {
    const aliases = node.alias ? 1 : 0;
    const field = parent && fieldOf(parent, node.name.value);
    if (!field) return { depth: 0, aliases, cost: 0 };
    const type = getNamedType(field.type);
    const own = FIELD_COST[`${parent.name}.${field.name}`] ?? (isCompositeType(type) ? 1 : 0);
    if (!node.selectionSet) return { depth: 1, aliases, cost: own };
    const inner = ofSelections(node.selectionSet, type);
    const page = pageSize(node, field);
    // The parts of a page (edges, nodes) are lists that the page's own size has counted already.
    const list = isListType(getNullableType(field.type)) && !parent.name.endsWith('Connection');
    const times = page ?? (list ? LIST_FACTOR : 1);
    // Of a list that is a page by itself, each object counts; those of connections are counted as their nodes.
    const each = inner.cost + (page !== null && list ? 1 : 0);
    return { depth: 1 + inner.depth, aliases: aliases + inner.aliases, cost: own + times * each };
  }

  function pageSize(node: FieldNode, field: GraphQLField<unknown, unknown>): number | null {
    const sizes = field.args.filter((a) => a.name === 'first' || a.name === 'last');
    if (sizes.length === 0) return null;
    let size: number | null = null;
    for (const argument of sizes) {
      const value = node.arguments?.find((a) => a.name.value === argument.name)?.value;
      const number =
        value?.kind === Kind.INT
          ? Number(value.value)
          : value?.kind === Kind.VARIABLE
            ? (variables[value.name.value] ?? defaults.get(value.name.value))
            : null;
      if (typeof number === 'number') size = Math.max(size ?? 0, number);
    }
    // Without a size the page has its default; a negative one is refused by the service.
    return Math.max(size ?? 100, 1);
  }

  function named(name: string | undefined): { name: string } | null {
    return (name && schema.getType(name)) || null;
  }

  function fieldOf(parent: { name: string }, name: string): GraphQLField<unknown, unknown> | null {
    const type = parent as GraphQLObjectType;
    return isObjectType(type) || isInterfaceType(type) ? (type.getFields()[name] ?? null) : null;
  }
}

/** The error for an operation that asks for too much; null: it may be run. */
export function tooComplex(measured: Measure, limits: Limits): ApiError | null {
  const over = (
    [
      ['depth', measured.depth, limits.depthMax],
      ['number of aliases', measured.aliases, limits.aliasesMax],
      ['cost', measured.cost, limits.costMax],
    ] as const
  ).find(([, value, max]) => value > max);
  if (!over) return null;
  const [what, value, max] = over;
  return refusedRequest('QUERY_TOO_COMPLEX', `the query's ${what} is ${value}; accepted: up to ${max}`, {
    [what]: value,
  });
}
