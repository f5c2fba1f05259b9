/** What becomes of a job on its way to a peer and back: pure, for the store on Postgres and its model alike. */
import { type ClassUser, type JobClasses, mayUse } from '../../core/classes.js';
import { NO_RETRIES, type Retry } from '../../core/runs/retry.js';
import { BOOST_MAX } from '../constants.js';
import { kindsOfDevices, type NewCopy, stayingOfParts } from '../federation.js';
import { type GrantedFields, type StayingFields, stayingFields } from '../job-fields.js';
import type { NewJob } from '../store.js';

/** Characters of granted jobs after which no further one is in the answer. */
export const GRANTED_CHARS = 4 * 1024 * 1024;
/** A job that a peer gave back is not offered to it again for so long, seconds. */
export const REST_S = 60;

/** In the place of what it will run, which comes with the grant. */
const NOT_GRANTED: GrantedFields = {
  ...{ command: '(known to its owner)', arguments: [], environment: {}, workingDirectory: null },
};
const NOT_OFFERED = Object.fromEntries(stayingFields.map((field) => [field, null])) as Record<
  keyof StayingFields,
  null
>;
const NOT_OFFERED_OF_PARTS = Object.fromEntries(stayingOfParts.map((field) => [field, null])) as Record<
  (typeof stayingOfParts)[number],
  null
>;
/** The classes of the policy in force in which jobs of a peer are taken: those that the user of its jobs may use. `all` null: there are none. */
export const classesForPeer = (
  all: JobClasses | null,
  user: Pick<ClassUser, 'name' | 'userClass'>,
): JobClasses =>
  Object.fromEntries(
    Object.entries(all ?? {})
      .filter(([, one]) => mayUse(one, { ...user, isOperator: false }))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

/** What of a copy is known here only: its class, if any, and kinds of devices. */
export const isKnownHere = (
  { request }: NewCopy,
  { classes, kinds }: { classes: JobClasses; kinds: ReadonlySet<string> },
): boolean =>
  (request.class === null || Object.hasOwn(classes, request.class)) &&
  kindsOfDevices(request).every((kind) => kinds.has(kind));

/** That there are any is said by amounts, too (store/job-fields.ts). */
const amountsBeside = (devices: boolean): Record<string, number> | null => (devices ? {} : null);

/** A copy as it is submitted here; `more`: boost that the peer's jobs get; `classes`: those in which its jobs are taken. */
export const copiedJob = ({ request, boost }: NewCopy, more: number, classes: JobClasses): NewJob => ({
  ...request,
  ...NOT_GRANTED,
  ...{
    // Projects are those of whoever runs the service: a peer's name of one must not take the value of ours.
    project: null,
    groupName: null,
    inputs: [],
    ...NOT_OFFERED,
    resourcesPerTask: amountsBeside(kindsOfDevices(request).length > 0),
    siteTerms: null,
    checkpoint: null,
    parts:
      request.parts?.map((part) => ({
        ...{ ...part, ...NOT_OFFERED_OF_PARTS },
        resourcesPerTask: amountsBeside(part.devicesPerTask != null),
      })) ?? null,
    outputs: request.outputs.map((path) => ({ path })),
    ...{ downloads: null, uploads: null },
    originSiteId: null,
    ...{ warnS: null, warnSignal: 'SIGTERM', killGraceS: 30, mail: [] },
    restartable: false,
    retry: NOT_HERE,
    held: false,
  },
  boost: boostHere(boost, more),
  // By our policy: its rank, times and charges are those of our class of that name.
  charged: request.class === null || (classes[request.class]?.charged ?? true),
  // A number has no name that both would have agreed on.
  preemptionClass: 0,
});

/** Whether it runs again its owner decides; what has not begun may be started on another machine here. */
const NOT_HERE: Retry = {
  ...NO_RETRIES,
  backoffS: 0,
  rules: [
    {
      ...{ causes: ['LOST', 'REFUSED', 'STAGING_FAILED'], exitCodes: null, signals: null },
      ...{ action: 'FAIL', memoryFactor: 1, memoryMaxMb: null },
    },
  ],
};

/** A peer's job has so much here. */
export const boostHere = (boost: number, more: number): number =>
  Math.max(-BOOST_MAX, Math.min(BOOST_MAX, boost + more));
