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
  signal: 'tells what runs something',
  send: 'passes on what somebody types',
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
  JobsPayload: [
    'cancelJobs',
    'requeueJobs',
    'signalJobs',
    'updateJobs',
    'holdJobs',
    'releaseJobs',
    'reprioritizeJobs',
  ],
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

/** Places, each with the reason for which it is as it is; the reason goes for all that are beside it. */
type Excused = Readonly<Record<string, readonly string[]>>;
/** What breaks a rule without a reason, and what has a reason and breaks none: a list of exceptions without dead ones. */
function unexcused(broken: readonly string[], reasons: Excused): string[] {
  const excused = Object.values(reasons).flat();
  const twice = excused.filter((place, i) => excused.indexOf(place) !== i);
  const idle = excused.filter((place) => !broken.includes(place));
  return [...broken.filter((place) => !excused.includes(place)), ...idle, ...twice].sort();
}

const isOutput = (type: GraphQLNamedType): boolean => isObjectType(type) || isInterfaceType(type);

test('lists: of objects, what can grow is a connection', () => {
  const lists = fields.filter(
    ({ field, type }) =>
      isOutput(type) &&
      isListType(getNullableType(field.type)) &&
      isOutput(getNamedType(field.type)) &&
      !/Connection$/.test(type.name) &&
      !(/Payload$/.test(type.name) && field.name === 'errors'),
  );
  expect(
    unexcused(
      lists.map(({ place }) => place),
      LISTS,
    ),
  ).toEqual([]);
});
const LISTS: Excused = {
  'parts of the object: given with it, and bounded as it was given': [
    ...['Machine.resources', 'Machine.labels', 'Machine.devices', 'MachineMeasurement.gpus'],
    ...['MachineMeasurement.devices', 'SiteLoad.partitions', 'SiteLoad.waits', 'Job.environment'],
    ...[
      'Job.resourcesPerTask',
      'Job.devicesPerTask',
      'Job.parts',
      'Job.resources',
      'Job.inputs',
      'Job.outputs',
      'Job.downloads',
      'Job.uploads',
    ],
    ...[
      'Job.preferences',
      'Job.needs',
      'NeedClause.of',
      'JobPart.resourcesPerTask',
      'JobPart.devicesPerTask',
    ],
    ...['Retry.rules', 'RetryRule.exitCodes', 'Hold.machines', 'Hold.shared', 'Hold.users', 'Hold.lacking'],
    ...['HeldMachine.resources', 'FederationPeer.users', 'FederationPeer.kinds', 'MachineKind.devices'],
  ],
  'parts of a run: as many as it has machines, pools and tasks, which have indices': [
    ...['Run.allocations', 'Run.licenses', 'Run.pools', 'Run.tasks', 'Reservation.machines'],
    ...['Placement.allocations', 'Job.files'],
  ],
  'as many as an enum has values, or a policy fields, terms or classes': [
    ...['User.limits', 'JobGroup.counts', 'WhyWaiting.numbers', 'Decision.jobTerms', 'Candidate.terms'],
    ...['Placement.jobTerms', 'SimulationResult.userClasses', 'Query.jobClasses', 'PolicyKinds.dispatch'],
    ...['PolicyKinds.local', 'PolicyKinds.general', 'PolicyKinds.numbers', 'PolicyKind.fields'],
    ...['PolicyKind.terms', 'PolicyField.fields', 'PolicyDocumentError.faults', 'Usage.resources'],
  ],
  'the first ones only, up to a number that the description says': [
    ...['Job.path', 'Job.neededBy', 'WhyWaiting.missing', 'SiteLoad.queue', 'Hold.times', 'Link.history'],
    ...[
      'Site.promises',
      'HoldConflictError.jobs',
      'ReservePayload.jobs',
      'ReservePayload.moved',
      'JobGraph.nodes',
    ],
    // What nearly everybody asks for with a job or a site, and is short but for a few; `beforeEpoch` leads to all others, `machines(siteId:)` too.
    ...['Job.runs', 'Site.machines'],
  ],
  'a ranking: who comes first is asked for, and the order changes while somebody reads on': [
    ...['Query.jobCounts', 'Query.usage', 'Query.lostWork', 'Query.userStandings', 'UserStanding.groups'],
  ],
  'intervals of a time, as many as are asked for': [
    ...['Query.loadHistory', 'Query.licenseHistory', 'Query.resourceHistory'],
    ...['SimulationHistory.baseline', 'SimulationHistory.candidate'],
  ],
  'what a mutation was given, one for each': [
    ...['SubmitJobsPayload.jobs', 'JobsPayload.jobs', 'JobsPayload.unchanged', 'RerunPayload.jobs'],
    ...['CreateMachinesPayload.machines', 'SetLinkValuesPayload.links'],
    ...[
      'ReservePayload.machines',
      'ReservePayload.shared',
      'ReservePayload.holds',
      'HoldConflictError.holds',
    ],
  ],
  'the grid as operators set it up, of which a page is of no use: `machines`, `sites` and `licenses` are pages of it':
    [
      ...['Query.schedulers', 'Scheduler.children', 'Scheduler.sites', 'Tree.children', 'Tree.sites'],
      ...['Site.agents', 'Site.licenses', 'Agent.machines', 'Machine.licenses'],
      ...[
        'Dataset.replicas',
        'Dataset.locations',
        'ResourceKind.sites',
        'ImageData.sites',
        'Query.resourceKinds',
      ],
      ...['Query.federationPeers', 'Job.peers', 'Decision.candidates', 'Placement.candidates'],
      ...['SimulationResult.sites'],
    ],
  'a view of what waits, as a policy with a tree sees it at one instant': [
    ...['Scheduler.channels', 'Tree.channels', 'Channel.classes', 'Channel.branches'],
  ],
  'bounded for each user, by limits': ['Query.registryCredentials', 'Query.webhooks', 'User.sessions'],
};

test('JSON: only where the content is the user’s', () => {
  const json = fields.filter(
    ({ field }) => getNamedType(field.type).name === 'JSON' && !field.deprecationReason,
  );
  expect(
    unexcused(
      json.map(({ place }) => place),
      JSON_FIELDS,
    ),
  ).toEqual([]);
});
const JSON_FIELDS: Excused = {
  'a policy, which is a document of its own with a schema that each kind of policy adds to (`policyKinds` has it as data)':
    [
      ...[
        'Site.localPolicy',
        'CreateSiteInput.localPolicy',
        'UpdateSiteInput.localPolicy',
        'Policy.document',
      ],
      ...['UpdatePolicyInput.document', 'UpdateWeightsInput.dispatch', 'UpdateWeightsInput.local'],
      ...[
        'Simulation.candidate',
        'CreateSimulationInput.candidate',
        'PolicyKind.document',
        'PolicyField.initial',
      ],
    ],
  'parameters by the names that the user’s template has': ['SubmitJobGroupInput.parameters'],
  // Its texts are patterns (`{seed}`), not what a job has; an object for showing it would repeat each field of `JobInput` for whoever submits it again.
  'what the user gave, to be submitted again as it is, in the form of the input object that the description names':
    ['JobGroup.template'],
  'any object, as it was when the audit log got it': ['AuditEntry.before', 'AuditEntry.after'],
};

/** Names of what is one of a few words. */
const ONE_OF_A_FEW =
  /(^|[a-z])(kind|state|status|type|mode|code|method|phase|level|action|cause|reason|role|signal|origin|source)s?$/i;

test('enums: what is one of a few words is no text', () => {
  const texts = fields.filter(
    ({ field }) => getNamedType(field.type).name === 'String' && ONE_OF_A_FEW.test(field.name),
  );
  expect(
    unexcused(
      texts.map(({ place }) => place),
      TEXTS,
    ),
  ).toEqual([]);
});
const TEXTS: Excused = {
  'words of whoever does it, or a sentence that says why': [
    ...['AuditEntry.reason', 'CreateHoldInput.reason', 'CreateSimulationInput.reason', 'Hold.reason'],
    ...[
      'JobAtPeer.reason',
      'Machine.reason',
      'Policy.reason',
      'RevertPolicyInput.reason',
      'Simulation.reason',
    ],
    ...['UpdateHoldInput.reason', 'UpdatePolicyInput.reason', 'UpdateQuotaInput.reason'],
    ...['UpdateWeightsInput.reason', 'Webhook.disabledReason', 'Webhook.failedReason', 'WebhookTest.reason'],
  ],
  'a kind of resource, as an operator names it': [
    ...[
      'AlikeDevices.kind',
      'CreateLicenseInput.kind',
      'Device.kind',
      'DeviceInput.kind',
      'DeviceRequest.kind',
    ],
    ...['DeviceRequestInput.kind', 'License.kind', 'MachineResource.kind', 'ResourceAmount.kind'],
    ...['ResourceAmountInput.kind', 'UsedResource.kind'],
  ],
  'a word of documents, which no enum can have (`two-level`)': ['PolicyKind.kind'],
  'in the terms of a site’s own scheduler, which are not ours': [
    ...['Run.localState', 'SitePartition.state', 'SiteQueuedJob.reason'],
  ],
  'a signal as its system names it, real-time ones among them': [
    ...['RetryRule.signals', 'RetryRuleInput.signals', 'Run.signal', 'RunStep.signal', 'Task.signal'],
  ],
  'the name of an act, which stays as it was recorded when the mutation is renamed': ['AuditEntry.action'],
};
