/**
 * What a caller did wrong, in the payload of a mutation: where an operation asks for the payload's `errors`, these faults are there, as typed
 * objects, and else among the errors of the answer. So nobody who does not look for them takes a refusal for a success.
 */
import {
  defaultFieldResolver,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { ApiError } from './errors.js';
import type { ErrorCode } from './generated/types.js';
import type { UserErrorModel } from './models.js';

/** Faults that whoever asks can mend by asking for something else, or by asking somebody else. */
const FAULTS: ReadonlySet<string> = new Set<ErrorCode>([
  ...(['BAD_USER_INPUT', 'NEVER_FITS', 'NOT_FOUND', 'CONFLICT', 'FORBIDDEN'] as const),
  ...(['VERSION_CONFLICT', 'IDEMPOTENCY_KEY_REUSED', 'QUOTA_EXCEEDED', 'LIMIT_EXCEEDED'] as const),
]);

/** The payload of a mutation that was refused: beside the errors, nothing. */
class Refused {
  constructor(readonly errors: readonly UserErrorModel[]) {}
}

/** Lets mutations whose payloads have `errors: [UserError!]!` tell faults there. */
export function tellUserErrors(schema: GraphQLSchema): void {
  const payloads = new Set<GraphQLObjectType>();
  for (const field of Object.values(schema.getMutationType()?.getFields() ?? {})) {
    const payload = getNamedType(field.type);
    if (!isObjectType(payload)) continue;
    const { errors } = payload.getFields();
    if (!errors || getNamedType(errors.type).name !== 'UserError') continue;
    payloads.add(payload);
    field.resolve = refusing(resolverOf(field));
  }
  for (const payload of payloads) {
    for (const field of Object.values(payload.getFields())) field.resolve = ofPayload(field);
  }
}

type ErrorType =
  | 'EntryError'
  | 'HoldConflictError'
  | 'InputError'
  | 'PolicyDocumentError'
  | 'QuotaExceededError'
  | 'VersionConflictError';

/** The type of an error: by what else is known of it. */
export function typeOfError(error: UserErrorModel): ErrorType {
  if (error.code === 'VERSION_CONFLICT') return 'VersionConflictError';
  if (error.code === 'QUOTA_EXCEEDED') return 'QuotaExceededError';
  if (error.index !== null) return 'EntryError';
  if ('faults' in error) return 'PolicyDocumentError';
  return 'runsInTheWay' in error ? 'HoldConflictError' : 'InputError';
}

type Resolve = GraphQLFieldResolver<unknown, unknown>;

const refusing =
  (resolve: Resolve): Resolve =>
  async (source, args, context, info) => {
    try {
      const payload = await resolve(source, args, context, info);
      const [first] = errorsIn(payload);
      if (!first || asksForErrors(info)) return payload;
      const { code, message, ...more } = first;
      throw new ApiError(code, message, more);
    } catch (error) {
      if (!(error instanceof ApiError && FAULTS.has(error.code) && asksForErrors(info))) throw error;
      const { code, message, extensions } = error;
      return new Refused([{ field: null, index: null, ...extensions, code: code as ErrorCode, message }]);
    }
  };

/** What resolves a field, also under another name: graphql-js would look for a property of that. */
export const resolverOf = (field: GraphQLField<unknown, unknown>): Resolve =>
  field.resolve ??
  ((source, args, context, info) =>
    defaultFieldResolver(source, args, context, { ...info, fieldName: field.name }));

/** Those that a service has found in entries of a list are in what it answers; it throws the others. */
const errorsIn = (payload: unknown): readonly UserErrorModel[] =>
  (payload as { errors?: readonly UserErrorModel[] }).errors ?? [];

function ofPayload(field: GraphQLField<unknown, unknown>): Resolve {
  const resolve = resolverOf(field);
  if (field.name === 'errors') return errorsIn;
  const nothing = nothingOf(field.type);
  return (source, args, context, info) =>
    source instanceof Refused ? nothing : resolve(source, args, context, info);
}

/** What stands in a payload where nothing was done. Objects in it can be null. */
function nothingOf(type: GraphQLOutputType): unknown {
  if (!isNonNullType(type)) return null;
  const inner = getNullableType(type);
  if (isListType(inner)) return [];
  return getNamedType(inner).name === 'Boolean' ? false : 0;
}

function asksForErrors({ fieldNodes, fragments }: GraphQLResolveInfo): boolean {
  const asks = ({ selections }: SelectionSetNode): boolean =>
    selections.some((one) => {
      if (one.kind === Kind.FIELD) return one.name.value === 'errors';
      if (one.kind === Kind.INLINE_FRAGMENT) return asks(one.selectionSet);
      return asks((fragments[one.name.value] as FragmentDefinitionNode).selectionSet);
    });
  return fieldNodes.some(({ selectionSet }) => selectionSet && asks(selectionSet));
}
