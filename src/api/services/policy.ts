/** The policy: reading its versions, and an administrator's new ones. It acts from the next cycle. */

import { type Policy as PolicyDocument, PolicyError, parsePolicy } from '../../core/policy.js';
import { type PolicyKinds, policyKinds } from '../../core/policy-kinds.js';
import { MAX } from '../../platform/limits.js';
import type { PolicyRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { reason, within } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type {
  JobClass,
  RevertPolicyInput,
  UpdatePolicyInput,
  UpdateWeightsInput,
} from '../generated/types.js';
import { globalId } from '../ids.js';
import { guarded, submitterOf } from './access.js';
import { shownClasses } from './classes.js';
import { actor, done, type ServiceParts, wakeAfter } from './parts.js';

/** Described once: a process has one version. */
const kinds = policyKinds();

export function createPolicyService(parts: ServiceParts) {
  const { directory, queries, limits } = parts;

  async function version(number: number): Promise<PolicyRow> {
    const found = await queries.policy(number);
    if (!found) throw notFound('policy', globalId('policy', number));
    return found;
  }

  /** Checks a document and puts it in force. */
  async function put(
    viewer: Viewer,
    action: string,
    document: unknown,
    { expectedVersion, reason: why }: { expectedVersion: number; reason: string },
    requestId: string,
    revertsTo: number | null = null,
  ): Promise<PolicyRow> {
    const policy = {
      document: checked(document),
      expectedVersion: within('expectedVersion', expectedVersion, 1, MAX.integer),
      reason: reason(why),
      revertsTo,
    };
    const added = done(await directory.addPolicy(policy, { ...actor(viewer, requestId), action }));
    await wakeAfter(parts, { of: 'POLICY' });
    return added;
  }

  return guarded({
    async policy(_viewer: Viewer, number: number | null): Promise<PolicyRow | null> {
      const found = number !== null && !(number >= 1) ? null : await queries.policy(number);
      return found && complete(found);
    },

    policyKinds: (_viewer: Viewer): PolicyKinds => kinds,

    async jobClasses(viewer: Viewer): Promise<JobClass[]> {
      const inForce = await queries.policy();
      return inForce === null
        ? []
        : shownClasses(queries, submitterOf(viewer), complete(inForce).document as PolicyDocument);
    },

    async policyHistory(_viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<PolicyRow>> {
      const size = pageSize('first', first, limits);
      const before = after ? decodeCursor('after', after, 'policy', ['number'])[0] : null;
      const rows = (await queries.policies(before, size + 1)).map(complete);
      return connection(rows, size, (policy) => encodeCursor('policy', [policy.version]), {
        continued: before !== null,
      });
    },

    async updateWeights(viewer: Viewer, input: UpdateWeightsInput, requestId: string): Promise<PolicyRow> {
      if (!input.dispatch && !input.local)
        throw badInput('dispatch', null, 'weights for `dispatch`, for `local`, or for both');
      // Of the version that the weights are meant for; if it is not in force any more, adding the new one says so.
      const { document } = await version(within('expectedVersion', input.expectedVersion, 1, MAX.integer));
      const changed = withWeights(withWeights(document, 'dispatch', input.dispatch), 'local', input.local);
      return put(viewer, 'setWeights', changed, input, requestId);
    },

    updatePolicy: (viewer: Viewer, input: UpdatePolicyInput, requestId: string) =>
      put(viewer, 'updatePolicy', input.document, input, requestId),

    async revertPolicy(viewer: Viewer, input: RevertPolicyInput, requestId: string): Promise<PolicyRow> {
      const earlier = await version(within('version', input.version, 1, MAX.integer));
      return put(viewer, 'revertPolicy', earlier.document, input, requestId, earlier.version);
    },
  });
}

/** As it acts: a document of an earlier release may lack fields, which have their defaults. One that this release cannot read stays as it is. */
function complete(row: PolicyRow): PolicyRow {
  try {
    return { ...row, document: parsePolicy(row.document) };
  } catch (error) {
    if (error instanceof PolicyError) return row;
    throw error;
  }
}

/** A policy document that a client sent. Throws BAD_USER_INPUT naming its faults. */
export function checked(document: unknown): PolicyDocument {
  try {
    return parsePolicy(document);
  } catch (error) {
    if (error instanceof PolicyError)
      throw new ApiError('BAD_USER_INPUT', error.message, { faults: error.faults });
    throw error;
  }
}

/**
 * The document with some weights of a part replaced; parsing it says whether their names and values are good. Weights may be nested, as
 * those of DIANA are by kind of job: what is not named stays.
 */
function withWeights(document: unknown, part: 'dispatch' | 'local', weights: unknown): unknown {
  if (weights === null || weights === undefined) return document;
  const whole = document as Record<string, Record<string, unknown>>;
  const known = whole[part]?.weights;
  if (known === undefined) {
    throw badInput(
      part,
      weights,
      `no weights, because the current ${part} policy (${JSON.stringify(whole[part]?.kind)}) has none`,
    );
  }
  if (!isObject(weights)) throw badInput(part, weights, 'an object with numbers by weight name');
  return { ...whole, [part]: { ...whole[part], weights: merged(known, weights) } };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const merged = (known: unknown, change: unknown): unknown =>
  isObject(known) && isObject(change)
    ? {
        ...known,
        ...Object.fromEntries(
          Object.entries(change).map(([name, value]) => [name, merged(known[name], value)]),
        ),
      }
    : change;
