/** What becomes of a job on its way to a peer and back: pure, for the store on Postgres and its model alike. */
import { NO_RETRIES, type Retry } from '../../core/runs/retry.js';
import { BOOST_MAX } from '../constants.js';
import { type NewCopy, stayingOfParts } from '../federation.js';
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
/** A copy as it is submitted here; `more`: boost that the peer's jobs get. */
export const copiedJob = ({ request, boost }: NewCopy, more: number): NewJob => ({
  ...request,
  ...NOT_GRANTED,
  ...{
    // Projects are those of whoever runs the service: a peer's name of one must not take the value of ours.
    project: null,
    groupName: null,
    inputs: [],
    ...NOT_OFFERED,
    siteTerms: null,
    checkpoint: null,
    parts: request.parts?.map((part) => ({ ...part, ...NOT_OFFERED_OF_PARTS })) ?? null,
    outputs: request.outputs.map((path) => ({ path })),
    originSiteId: null,
    ...{ warnS: null, warnSignal: 'SIGTERM', killGraceS: 30, mail: [] },
    restartable: false,
    retry: NOT_HERE,
    held: false,
  },
  boost: boostHere(boost, more),
  // Classes of the owner's service mean nothing here.
  class: null,
  charged: true,
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
