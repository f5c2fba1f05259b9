/**
 * The style of schema.graphql, rule by rule, of everything that portals are meant to use (docs/ARCHITECTURE.md, "One style"). What only agents or peers use is
 * protocol: it changes with the version of that, and follows other rules. A linter for GraphQL would bring a hundred packages for these.
 */
import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isObjectType,
} from 'graphql';
import { expect, test } from 'vitest';
import { SCHEMA_FILE } from '../../src/api/schema.js';

const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const audience = schema.getDirective('audience')!;
const unlessRefused = schema.getDirective('unlessRefused')!;
type AnyField = GraphQLField<unknown, unknown> | GraphQLInputField;

const isForPortals = ({ astNode }: GraphQLField<unknown, unknown>): boolean =>
  (getDirectiveValues(audience, astNode!)?.of as string[] | undefined)?.includes('PORTALS') ?? true;
const ofPortals = (root: GraphQLObjectType | null | undefined) =>
  Object.values(root?.getFields() ?? {}).filter(isForPortals);
const queries = ofPortals(schema.getQueryType());
const mutations = ofPortals(schema.getMutationType());
const roots = [...queries, ...mutations, ...ofPortals(schema.getSubscriptionType())];

/** What the fields for portals lead to. */
const types = (() => {
  const found = new Set<GraphQLNamedType>();
  const take = (type: GraphQLNamedType): void => {
    if (found.has(type)) return;
    found.add(type);
    if (isInterfaceType(type)) schema.getPossibleTypes(type).forEach(take);
    if (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type))
      for (const field of Object.values(type.getFields())) takeField(field);
  };
  const takeField = (field: AnyField): void => {
    take(getNamedType(field.type));
    for (const argument of 'args' in field ? field.args : []) take(getNamedType(argument.type));
  };
  roots.forEach(takeField);
  return [...found].sort((a, b) => (a.name < b.name ? -1 : 1));
})();

/** Every field for portals, with its place. */
const fields: { place: string; field: AnyField; type: GraphQLNamedType }[] = [
  schema.getQueryType()!,
  schema.getSubscriptionType()!,
  ...types,
].flatMap((type) =>
  isObjectType(type) || isInterfaceType(type) || isInputObjectType(type)
    ? Object.values(type.getFields())
        .filter((field) => !('args' in field) || isForPortals(field))
        .map((field) => ({ place: `${type.name}.${field.name}`, field, type }))
    : [],
);

const capital = (name: string): string => `${name[0]!.toUpperCase()}${name.slice(1)}`;

/** Each verb for one act. */
const VERBS: Readonly<Record<string, string>> = {
  create: 'makes one or several of a kind; refused if there is one of that name',
  update: 'changes what is given of it; the rest stays',
  set: 'makes it what is given, whether it existed or not',
  remove: 'takes it out of service; what refers to it still finds it',
  import: 'creates and updates many by name',
  submit: 'hands over work',
  cancel: 'ends what has not ended yet',
  hold: 'keeps from starting',
  release: 'lets start again',
  requeue: 'stops and starts again',
  rerun: 'submits copies',
  reprioritize: 'moves within queues',
  drain: 'starts nothing more there',
  rotate: 'replaces a secret',
  revoke: 'ends the power of a secret',
  end: 'ends sessions',
  invite: 'makes an invitation',
  change: 'replaces what one has to know',
  test: 'tries it out',
  revert: 'restores an earlier version',
  isolate: 'stops exchange with it',
  rejoin: 'ends isolation',
};

test('verbs: a mutation begins with one of the list, for the act that the list says', () => {
  const verb = (name: string): string => /^[a-z]+/.exec(name)![0];
  expect(mutations.map(({ name }) => name).filter((name) => !(verb(name) in VERBS))).toEqual([]);
  const used = new Set(mutations.map(({ name }) => verb(name)));
  expect(Object.keys(VERBS).filter((one) => !used.has(one))).toEqual([]);
});

test('input: a mutation takes one argument, `input`, of a type of its own', () => {
  const wrong = mutations.filter(
    ({ name, args }) =>
      args.length !== 1 ||
      args[0]?.name !== 'input' ||
      String(args[0].type) !== `${OTHER_INPUTS[name] ?? `${capital(name)}Input`}!`,
  );
  expect(wrong.map(({ name }) => name)).toEqual([]);
});
/** Variables of operations name the type, which cannot have two names: the one of a mutation that keeps its own stays. */
const OTHER_INPUTS: Readonly<Record<string, string>> = { createDataset: 'DatasetInput' };

/** Payloads of several mutations that lead to the same. */
const SHARED: Readonly<Record<string, readonly string[]>> = {
  JobsPayload: ['cancelJobs', 'requeueJobs', 'updateJobs', 'holdJobs', 'releaseJobs', 'reprioritizeJobs'],
  RerunPayload: ['rerunJobs'],
  CreateApiKeyPayload: ['createApiKey', 'rotateApiKey'],
  WebhookSecretPayload: ['createWebhook', 'rotateWebhookSecret'],
  ReservePayload: ['createHold'],
  FederatePayload: ['setPeer'],
};

test('payload: a mutation returns a payload, not null, with `errors`', () => {
  const wrong = mutations.filter(({ name, type }) => {
    const payload = getNamedType(type);
    const errors = isObjectType(payload) ? payload.getFields().errors : undefined;
    const isNamed = SHARED[payload.name]?.includes(name) ?? payload.name === `${capital(name)}Payload`;
    return String(type) !== `${payload.name}!` || !isNamed || String(errors?.type) !== '[UserError!]!';
  });
  expect(wrong.map(({ name }) => name)).toEqual([]);
});

test('payload: what is marked as null only if refused is an object or a text, and can be null', () => {
  const marked = fields.filter(
    ({ field }) => getDirectiveValues(unlessRefused, field.astNode!) !== undefined,
  );
  expect(marked.length).toBeGreaterThan(40);
  const isOfPayload = (type: GraphQLNamedType): boolean =>
    mutations.some((mutation) => getNamedType(mutation.type) === type);
  expect(
    marked
      .filter(({ field, type }) => field.type !== getNullableType(field.type) || !isOfPayload(type))
      .map(({ place }) => place),
  ).toEqual([]);
  // There is nothing to put in place of an object.
  const payloads = fields.filter(({ type }) => isOfPayload(type));
  const needed = payloads.filter(({ field }) => {
    const inner = getNullableType(field.type);
    return field.type !== inner && !isListType(inner) && !['Int', 'Boolean'].includes(String(inner));
  });
  expect(needed.map(({ place }) => place)).toEqual([]);
});

test('errors: each type of an error says what it adds to the interface', () => {
  const own = schema.getPossibleTypes(schema.getType('UserError') as never);
  expect(own.length).toBeGreaterThan(2);
  const silent = own.filter(
    (type) => !['InputError', 'EntryError'].includes(type.name) && Object.keys(type.getFields()).length <= 4,
  );
  expect(silent.map(({ name }) => name)).toEqual([]);
});

const isId = (field: { type: AnyField['type'] }): boolean => getNamedType(field.type).name === 'ID';
const hasIdName = (name: string, isList: boolean): boolean =>
  isList ? /(^i|I)ds$/.test(name) : /(^i|I)d$/.test(name);

test('ids: what takes or has one ends in Id, or Ids for several', () => {
  const inFields = fields.filter(
    ({ field, place }) =>
      isId(field) && !OTHER_IDS.has(place) && !hasIdName(field.name, isListType(getNullableType(field.type))),
  );
  const inArguments = fields.flatMap(({ place, field }) =>
    'args' in field
      ? field.args.flatMap((argument) =>
          isId(argument) &&
          !OTHER_IDS.has(`${place}.${argument.name}`) &&
          !hasIdName(argument.name, isListType(getNullableType(argument.type)))
            ? [`${place}(${argument.name})`]
            : [],
        )
      : [],
  );
  expect([...inFields.map(({ place }) => place), ...inArguments]).toEqual([]);
});
/** Jobs are described in files, too, where these name places and jobs by their names; and the id of a peer's job, which is not one of this service. */
const OTHER_IDS: ReadonlySet<string> = new Set([
  ...['ForeignJob.job', 'InputDataInput.dataset', 'InputDataInput.site', 'JobInput.originSite'],
  ...['JobPreferenceInput.site', 'NeedTermInput.job', 'NeedTermInput.jobGroup'],
]);
