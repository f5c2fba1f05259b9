/**
 * How much a query asks for, reckoned before it runs. One walk over the operation counts its depth, its aliases and its cost; the
 * walk of a fragment is remembered, so that nested fragments cost no more than their text.
 *
 * Cost counts objects: an object of the answer is 1, a page counts its selection `first` or `last` times, a list without pages as
 * often as such a list is long, and a few fields that compute, or read more than a row, count more. The lists in the answer of a
 * mutation are as long as what it was given. While the query runs the same things are counted as they come (budget.ts): here what
 * cannot be worth starting is refused.
 *
 * Values within objects cost nothing, their number is bounded by the text or by the row. Connections, edges and payloads are no
 * objects, only what is in them.
 *
 * Why not a library: those at hand coerce all variables once more to read `first`, which doubles the cost of a submission
 * of 10 000 jobs.
 */
import {
  type ConstValueNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isObjectType,
  isWrappingType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from 'graphql';
import type { Limits } from '../../platform/limits.js';
import { PAGE_DEFAULT } from '../connections.js';
import { type ApiError, refusedRequest } from '../errors.js';

/**
 * What fields cost beside the objects that they lead to: statements of their own, texts that may be large, or a scheduler's walk along a
 * whole queue.
 */
export const FIELD_COST: Readonly<Record<string, number>> = {
  'Query.placement': 400,
  'Job.whyWaiting': 400,
  'Job.expectedStart': 400,
  'Job.earliestStart': 400,
  'Job.output': 200,
  'Task.output': 200,
  'Run.tasks': 20,
  'Run.steps': 2,
  'Job.decisions': 50,
  'Job.path': 50,
  'Site.promises': 100,
  'Scheduler.holds': 50,
  'Scheduler.waiting': 50,
  'Scheduler.channels': 50,
  'Tree.holds': 50,
  'Tree.waiting': 50,
  'Tree.channels': 50,
  'Job.events': 50,
  'Job.neededBy': 20,
  'Job.foreign': 5,
  'Job.peers': 20,
  'FederationPeer.foreignJobs': 5,
  'FederationPeer.offeredJobs': 5,
  'FederationPeer.claimedJobs': 5,
  'User.keys': 10,
  'User.mail': 5,
  'Query.jobGraph': 500,
  'Query.jobCount': 50,
  'Query.jobCounts': 200,
  'JobConnection.totalCount': 50,
  'Query.loadHistory': 200,
  'Query.licenseHistory': 200,
  'Query.resourceHistory': 200,
  'Query.usage': 200,
  'Query.lostWork': 200,
  'Query.congestion': 50,
  'Query.inputTransfers': 50,
  'Query.userStandings': 50,
  'Mutation.testWebhook': 200,
  'Query.jobRatio': 10,
  'JobRatio.history': 20,
  'Link.history': 10,
  'JobGroup.jobs': 20,
  'Dataset.replicas': 20,
};

/** What each of the things costs that a mutation is given in a list, whatever becomes of it: to be looked at. */
const GIVEN_COST = 0.1;

/** How long lists without pages mostly are. Longer ones are counted when they come. */
export const LIST_SIZE: Readonly<Record<string, number>> = {
  'Job.runs': 2,
  'Job.parts': 1,
  'Run.licenses': 2,
  'Run.pools': 2,
  'Machine.licenses': 5,
  'Agent.machines': 2,
  'Dataset.locations': 5,
  'Hold.times': 2,
  'Hold.machines': 5,
  'Usage.resources': 2,
};
const LIST_SIZE_DEFAULT = 10;

/** What only holds objects together, and values that come with the row they are in. */
const HOLDER =
  /(Connection|Edge|PageInfo|Payload)$|^(Term|Variable|Retry|RetryRule|RetryDecision|ExitCodes|ResourceAmount|DeviceRequest|DeviceShare|TasksPerMachine|SameSwitch|SiteTerms|JobPart|JobStateCount|JobConditions|Simulation(Result|OfClass|OfSite|Comparison|Figures))$/;

/** Whether what a field of this type leads to counts as objects. */
export const isCounted = (type: GraphQLOutputType): boolean => {
  const named = getNamedType(type);
  return isCompositeType(named) && !HOLDER.test(named.name);
};

/** What the field costs beside the objects that it leads to; under a former name as much as under its own. */
export const ownCost = (
  typeName: string,
  { name, astNode }: Pick<GraphQLField<unknown, unknown>, 'name' | 'astNode'>,
): number => FIELD_COST[`${typeName}.${astNode?.name.value ?? name}`] ?? 0;

const isPage = ({ name }: GraphQLNamedType): boolean => name.endsWith('Connection');

export const isList = (type: GraphQLOutputType): boolean => isListType(getNullableType(type));

export interface Measure {
  depth: number;
  aliases: number;
  cost: number;
}

/** `once`: what a page costs beside its objects, however many these are. */
type Part = Measure & { once: number };

const NOTHING: Part = { depth: 0, aliases: 0, cost: 0, once: 0 };

export type MeasureOperation = (
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
) => Measure;

/**
 * What measures valid operations of a schema. `variables` as they came: only whole numbers and the lengths of lists among them are
 * looked at.
 */
export function createMeasure(schema: GraphQLSchema, limits: Pick<Limits, 'jobsMax'>): MeasureOperation {
  const sizes = sizesOfIntrospection(schema);
  return (document, operation, variables) => {
    const root = schema.getRootType(operation.operation);
    if (!root) return NOTHING;
    const walk = new Walk(schema, sizes, limits, document, operation, variables);
    const { depth, aliases, cost } = walk.ofSelections(operation.selectionSet, root, LIST_SIZE_DEFAULT);
    return { depth, aliases, cost: Math.ceil(cost) };
  };
}

/** The walk over one operation. */
class Walk {
  private readonly fragments = new Map<string, FragmentDefinitionNode>();
  private readonly defaults: ReadonlyMap<string, ConstValueNode | undefined>;
  private readonly remembered = new Map<string, Part>();

  constructor(
    private readonly schema: GraphQLSchema,
    /** Of introspection's lists. */
    private readonly sizes: ReadonlyMap<string, number>,
    private readonly limits: Pick<Limits, 'jobsMax'>,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    private readonly variables: Readonly<Record<string, unknown>>,
  ) {
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.fragments.set(definition.name.value, definition);
    }
    this.defaults = new Map(
      (operation.variableDefinitions ?? []).map((v) => [v.variable.name.value, v.defaultValue]),
    );
  }

  /** `given`: how long the lists are that a mutation was given. */
  ofSelections(selections: SelectionSetNode, parent: GraphQLNamedType | null, given: number): Part {
    const total = { ...NOTHING };
    for (const selection of selections.selections) {
      const one =
        selection.kind === Kind.FIELD
          ? this.ofField(selection, parent, given)
          : selection.kind === Kind.INLINE_FRAGMENT
            ? this.ofSelections(
                selection.selectionSet,
                this.named(selection.typeCondition?.name.value) ?? parent,
                given,
              )
            : this.ofFragment(selection.name.value, given);
      total.depth = Math.max(total.depth, one.depth);
      total.aliases += one.aliases;
      total.cost += one.cost;
      total.once += one.once;
    }
    return total;
  }

  private ofFragment(name: string, given: number): Part {
    const key = `${given} ${name}`;
    const known = this.remembered.get(key);
    if (known) return known;
    const fragment = this.fragments.get(name);
    if (!fragment) return NOTHING;
    const result = this.ofSelections(
      fragment.selectionSet,
      this.named(fragment.typeCondition.name.value),
      given,
    );
    this.remembered.set(key, result);
    return result;
  }

  private ofField(node: FieldNode, parent: GraphQLNamedType | null, given: number): Part {
    const aliases = node.alias ? 1 : 0;
    const field = parent && this.fieldOf(parent, node.name.value);
    if (!parent || !field) return { ...NOTHING, aliases };
    const isMutation = parent === this.schema.getMutationType();
    const passed = isMutation ? this.longestList(node) : given;
    const own = ownCost(parent.name, field) + (isMutation ? GIVEN_COST * (passed - LIST_SIZE_DEFAULT) : 0);
    if (!node.selectionSet)
      return { depth: 1, aliases, ...(isPage(parent) ? { cost: 0, once: own } : { cost: own, once: 0 }) };
    const type = getNamedType(field.type);
    const inner = this.ofSelections(node.selectionSet, type, passed);
    // Introspection is as deep as types are wrapped, which its own rule bounds.
    const depth = parent.name.startsWith('__') ? 0 : 1 + inner.depth;
    const each = inner.cost + (isCounted(field.type) ? 1 : 0);
    return {
      depth,
      aliases: aliases + inner.aliases,
      cost: own + inner.once + this.times(node, field, parent, passed) * each,
      once: 0,
    };
  }

  private times(
    node: FieldNode,
    field: GraphQLField<unknown, unknown>,
    parent: GraphQLNamedType,
    given: number,
  ): number {
    const place = `${parent.name}.${field.name}`;
    const expected = this.sizes.get(place);
    if (expected !== undefined) return expected;
    const page = this.pageSize(node, field);
    if (page !== null) return page;
    // The parts of a page (edges, nodes) are lists that the page's own size has counted already.
    if (!isList(field.type) || isPage(parent)) return 1;
    const ofMutation = parent.name.endsWith('Payload') || parent === this.schema.getMutationType();
    if (ofMutation && field.name !== 'errors') return given;
    return LIST_SIZE[place] ?? LIST_SIZE_DEFAULT;
  }

  private pageSize(node: FieldNode, field: GraphQLField<unknown, unknown>): number | null {
    const sizes = field.args.filter((a) => a.name === 'first' || a.name === 'last');
    if (sizes.length === 0) return null;
    let size: number | null = null;
    for (const argument of sizes) {
      const given = node.arguments?.find((a) => a.name.value === argument.name)?.value;
      const number = given && this.sizedValue(given);
      if (typeof number === 'number') size = Math.max(size ?? 0, number);
    }
    // A negative one is refused by the service.
    return Math.max(size ?? PAGE_DEFAULT, 1);
  }

  /** How long the longest list is among the arguments of a mutation, or within one of them: its answer has about as many objects. */
  private longestList(node: FieldNode): number {
    let longest = LIST_SIZE_DEFAULT;
    const look = (value: unknown, levels: number): void => {
      if (Array.isArray(value)) longest = Math.max(longest, value.length);
      else if (value && typeof value === 'object' && levels > 0) {
        for (const [name, part] of Object.entries(value)) {
          // Whatever matches, and nobody knows how many do.
          if ((name === 'filter' && part !== null) || (name === 'all' && part === true))
            longest = Math.max(longest, this.limits.jobsMax);
          else look(part, levels - 1);
        }
      }
    };
    for (const argument of node.arguments ?? []) look(this.sizedValue(argument.value), 2);
    return longest;
  }

  /** A value as far as its size goes: numbers, what is switched on, and objects and lists of whatever. */
  private sizedValue(node: ValueNode, levels = 3): unknown {
    switch (node.kind) {
      case Kind.VARIABLE: {
        const name = node.name.value;
        const fallback = this.defaults.get(name);
        return name in this.variables ? this.variables[name] : fallback && this.sizedValue(fallback, levels);
      }
      case Kind.INT:
        return Number(node.value);
      case Kind.BOOLEAN:
        return node.value;
      case Kind.LIST:
        return node.values;
      case Kind.OBJECT:
        return levels > 0
          ? Object.fromEntries(node.fields.map((f) => [f.name.value, this.sizedValue(f.value, levels - 1)]))
          : null;
      default:
        return null;
    }
  }

  private named(name: string | undefined): GraphQLNamedType | null {
    return (name && this.schema.getType(name)) || null;
  }

  private fieldOf(parent: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | null {
    if (parent === this.schema.getQueryType()) {
      if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
      if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    }
    return isObjectType(parent) || isInterfaceType(parent) ? (parent.getFields()[name] ?? null) : null;
  }
}

/** How many objects a field of introspection leads to, on average over the types of this schema. */
function sizesOfIntrospection(schema: GraphQLSchema): ReadonlyMap<string, number> {
  const types = Object.values(schema.getTypeMap());
  const fields = types.flatMap((type): { type: unknown; args: readonly { type: unknown }[] }[] =>
    isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [],
  );
  const inputs = types.flatMap((type): { type: unknown }[] =>
    isInputObjectType(type) ? Object.values(type.getFields()) : [],
  );
  const args = fields.flatMap((field) => field.args);
  const values = types.flatMap((type) => ('getValues' in type ? type.getValues() : []));
  const implemented = types.flatMap((type) => (isObjectType(type) ? type.getInterfaces() : []));
  const wrappings = [...fields, ...inputs, ...args].map(({ type }) => {
    let levels = 0;
    for (let at = type; isWrappingType(at); at = at.ofType) levels++;
    return levels;
  });
  // A reference to a type is wrapped so many times on average, and each `ofType` of a query unwraps one.
  const perType = (all: readonly unknown[]): number => all.length / types.length;
  return new Map([
    ['__Schema.types', types.length],
    ['__Schema.directives', schema.getDirectives().length],
    ['__Directive.args', 1],
    ['__Type.fields', perType(fields)],
    ['__Type.inputFields', perType(inputs)],
    ['__Type.enumValues', perType(values)],
    ['__Type.interfaces', perType(implemented)],
    ['__Type.possibleTypes', perType(implemented)],
    ['__Type.ofType', wrappings.filter((levels) => levels > 0).length / wrappings.length / 2],
    ['__Field.args', args.length / fields.length],
  ]);
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
