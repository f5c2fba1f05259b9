/**
 * Names of the release before, which the service accepts for one release: `@formerly` in schema.graphql says what something was called, and here
 * the old name is put beside the new one, deprecated, with the new one in the reason. Resolvers and services only know new names: what comes under
 * an old one is moved before they are called, and what was a mutation's result is taken out of its payload.
 */
import {
  type GraphQLArgument,
  type GraphQLDirective,
  type GraphQLField,
  type GraphQLInputField,
  GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLList,
  GraphQLNonNull,
  type GraphQLNullableType,
  type GraphQLSchema,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { badInput } from './errors.js';
import { resolverOf } from './user-errors.js';

interface Formerly {
  name?: string;
  result?: string;
  arguments: readonly string[];
}
type Values = Record<string, unknown>;
type Field = GraphQLField<unknown, unknown>;
/** A value that may stand under an old name. */
interface Renamed {
  old: string;
  now: string;
  isRequired: boolean;
  takesNull: boolean;
}
/** What has old names of an input object, or of a field's arguments: itself, and what is in it. */
interface Plan {
  renamed: Renamed[];
  within: [name: string, type: GraphQLInputObjectType][];
}

/** Adds the old names to a schema that has its resolvers. */
export function acceptFormerNames(schema: GraphQLSchema): void {
  const directive = schema.getDirective('formerly');
  if (directive) new FormerNames(schema, directive).accept();
}

class FormerNames {
  private readonly plans = new Map<string, Plan>();
  /** Input objects under their old names, by the new ones: variables of operations name them. */
  private readonly copies = new Map<string, GraphQLInputObjectType>();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly directive: GraphQLDirective,
  ) {}

  accept(): void {
    const types = Object.values(this.schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));
    const inputs = types.filter(isInputObjectType);
    for (const type of inputs) this.plans.set(type.name, this.planOf(type));
    // Nobody looks again into input objects without old names.
    for (const plan of this.plans.values()) plan.within = plan.within.filter(([, type]) => this.has(type));
    for (const type of inputs) this.copy(type);
    const mutations = this.schema.getMutationType();
    const results: [field: Field, result: string][] = [];
    for (const type of types) {
      if (!isObjectType(type) && !isInterfaceType(type)) continue;
      const fields = type.getFields();
      for (const field of Object.values(fields)) {
        this.acceptArguments(field);
        const was = this.formerly(field);
        if (!was) continue;
        // Under a new name there are no loose arguments: nobody has ever given them.
        const old = was.name === undefined ? field : this.former(field, was, was.name);
        if (was.name !== undefined) fields[was.name] = old;
        else if (type === mutations && was.result !== undefined) results.push([field, was.result]);
        if (was.arguments.length > 0) this.acceptLoose(old, was.arguments);
      }
    }
    for (const [field, result] of results) acceptResult(field, result);
  }

  private formerly({ astNode }: { astNode?: object | null | undefined }): Formerly | undefined {
    return astNode ? (getDirectiveValues(this.directive, astNode) as Formerly | undefined) : undefined;
  }

  /** The old names of the fields of an input object: they are added to it. */
  private planOf(type: GraphQLInputObjectType): Plan {
    const fields = type.getFields();
    const renamed: Renamed[] = [];
    for (const field of Object.values(fields)) {
      const old = this.formerly(field)?.name;
      if (old === undefined) continue;
      renamed.push({ old, now: field.name, ...needsOf(field) });
      field.type = getNullableType(field.type);
      fields[old] = {
        ...{ ...field, name: old, defaultValue: undefined },
        deprecationReason: use(field.name),
      };
    }
    const within = Object.values(fields).flatMap(({ name, type: inner }): Plan['within'] => {
      const named = getNamedType(inner);
      return isInputObjectType(named) ? [[name, named]] : [];
    });
    return { renamed, within };
  }

  /** Lets a field take its arguments, and what is in them, under old names. */
  private acceptArguments(field: Field): void {
    const plan: Plan = { renamed: [], within: [] };
    for (const argument of [...field.args]) {
      const named = getNamedType(argument.type);
      if (isInputObjectType(named) && this.has(named)) plan.within.push([argument.name, named]);
      const old = this.formerly(argument)?.name;
      if (old === undefined) continue;
      plan.renamed.push({ old, now: argument.name, ...needsOf(argument) });
      argument.type = getNullableType(argument.type);
      add(field, { ...argument, name: old, defaultValue: undefined, deprecationReason: use(argument.name) });
    }
    if (plan.renamed.length + plan.within.length > 0) before(field, (args) => this.moved(args, plan, ''));
  }

  private has(type: GraphQLInputObjectType, seen = new Set<string>()): boolean {
    if (seen.has(type.name)) return false;
    seen.add(type.name);
    const plan = this.plans.get(type.name);
    return !!plan && (plan.renamed.length > 0 || plan.within.some(([, inner]) => this.has(inner, seen)));
  }

  /** The values under their new names. They are the operation's own: nobody else sees them change. */
  private moved(values: Values, { renamed, within }: Plan, path: string): Values {
    for (const { old, now, isRequired, takesNull } of renamed) {
      if (old in values) {
        values[now] = values[old];
        delete values[old];
      }
      if (isRequired ? (values[now] ?? null) === null : !takesNull && values[now] === null)
        throw badInput(`${path}${now}`, values[now], 'a value');
    }
    for (const [name, type] of within) {
      const value = values[name];
      const plan = this.plans.get(type.name);
      if (!plan || !value) continue;
      // Errors name what is in `input` without it.
      const inner = name === 'input' ? path : `${path}${name}.`;
      for (const one of Array.isArray(value) ? value : [value])
        if (one) this.moved(one as Values, plan, inner);
    }
    return values;
  }

  private copy(type: GraphQLInputObjectType): void {
    const name = this.formerly(type)?.name;
    if (name === undefined) return;
    const copy = new GraphQLInputObjectType({ ...type.toConfig(), name, astNode: null });
    this.copies.set(type.name, copy);
    this.schema.getTypeMap()[name] = copy;
  }

  /** A mutation takes some of what is in its `input` as arguments, too: `field`, or `argument: field`. */
  private acceptLoose(field: Field, names: readonly string[]): void {
    const input = field.args.find(({ name }) => name === 'input') as GraphQLArgument;
    const type = getNamedType(input.type) as GraphQLInputObjectType;
    const own = type.getFields();
    const strict = Object.values(own).filter((one) => !needsOf(one).takesNull);
    input.type = getNullableType(input.type);
    const renamed: Renamed[] = [];
    for (const pair of names) {
      const [old, name = old] = pair.split(': ') as [string, string?];
      const { description, type: given } = own[name] as GraphQLInputField;
      if (old !== name) renamed.push({ old, now: name, isRequired: false, takesNull: true });
      add(field, {
        ...{ name: old, description, type: this.formerType(given) },
        ...{
          defaultValue: undefined,
          deprecationReason: use(`input { ${name} }`),
          extensions: {},
          astNode: null,
        },
      });
    }
    before(field, ({ input: whole, ...loose }) => {
      const defaults = Object.values(own).flatMap(({ name, defaultValue }) =>
        defaultValue === undefined ? [] : [[name, defaultValue]],
      );
      const asNow = this.moved(loose, { renamed, within: [] }, '');
      const given: Values = { ...Object.fromEntries(defaults), ...(whole as Values | undefined), ...asNow };
      for (const one of strict) {
        const value = given[one.name];
        if (value === null || (value === undefined && isRequired(one)))
          throw badInput(one.name, value, 'a value');
      }
      return this.moved({ input: given }, { renamed: [], within: [['input', type]] }, '');
    });
  }

  /** A type as variables of operations name it, and nobody has to give it. */
  private formerType(type: GraphQLInputType): GraphQLInputType {
    const renamed = (one: GraphQLInputType): GraphQLInputType =>
      isNonNullType(one)
        ? new GraphQLNonNull(renamed(one.ofType) as GraphQLNullableType & GraphQLInputType)
        : isListType(one)
          ? new GraphQLList(renamed(one.ofType))
          : (this.copies.get(one.name) ?? one);
    return getNullableType(renamed(type)) as GraphQLInputType;
  }

  /** The field under its old name, with the result that it had. */
  private former(field: Field, { result }: Formerly, name: string): Field {
    const found = result === undefined ? null : resultOf(field, result);
    const resolve = resolverOf(field);
    // As it is now: what is charged for it later is charged for the field under its old name.
    const taken = found && resolverOf(found);
    return {
      ...field,
      name,
      args: field.args.map((one) => {
        const type = this.formerType(one.type);
        return {
          ...one,
          type: isNonNullType(one.type)
            ? new GraphQLNonNull(type as GraphQLNullableType & GraphQLInputType)
            : type,
        };
      }),
      deprecationReason: use(field.name),
      type: found ? new GraphQLNonNull(getNullableType(found.type)) : field.type,
      resolve: taken
        ? async (source, args, context, info) =>
            taken(await resolve(source, args, context, info), {}, context, info)
        : resolve,
    };
  }
}

/** A payload has the fields of what it leads to, which was the mutation's result. */
function acceptResult(field: Field, result: string): void {
  const payload = getNamedType(field.type);
  const found = resultOf(field, result);
  const type = getNamedType(found.type);
  if (!isObjectType(payload) || !isObjectType(type)) return;
  for (const one of Object.values(type.getFields())) {
    payload.getFields()[one.name] ??= {
      ...one,
      type: getNullableType(one.type),
      deprecationReason: `Use \`${result} { ${one.name} }\`.`,
      resolve: async (source, args, context, info) => {
        const held = await resolverOf(found)(source, {}, context, info);
        return held ? resolverOf(one)(held, args, context, info) : null;
      },
    };
  }
}

const use = (name: string): string => `Use \`${name}\`.`;

const isRequired = ({ type, defaultValue }: { type: GraphQLInputType; defaultValue?: unknown }): boolean =>
  isNonNullType(type) && defaultValue === undefined;

/** What was demanded of a value before its type was widened. */
const needsOf = (one: { type: GraphQLInputType; defaultValue?: unknown }) => ({
  isRequired: isRequired(one),
  takesNull: !isNonNullType(one.type),
});

function resultOf(field: Field, name: string): Field {
  const payload = getNamedType(field.type);
  const found = isObjectType(payload) ? payload.getFields()[name] : undefined;
  if (!found) throw new Error(`the payload of ${field.name} has no ${name}`);
  return found;
}

/** In graphql-js the arguments of a field are a list that nobody changes once a schema is in use. */
const add = (field: Field, argument: GraphQLArgument): void =>
  void (field.args as GraphQLArgument[]).push(argument);

/** Lets a field see its arguments as `change` makes them. */
function before(field: Field, change: (args: Values) => Values): void {
  const { resolve, subscribe } = field;
  if (resolve) field.resolve = (source, args, ...rest) => resolve(source, change({ ...args }), ...rest);
  if (subscribe) field.subscribe = (source, args, ...rest) => subscribe(source, change({ ...args }), ...rest);
}
