/** What code and database must agree on, written once. A test compares it with the constraints of the migrations. */

/** Held by whoever writes events, from then on until the commit. Any number that nobody else uses. */
export const EVENT_LOCK = 5_928_041;
/** Held by whoever changes what jobs need, alone, and shared by submissions of jobs that need something: so that no circle closes unseen. */
export const NEEDS_LOCK = 5_928_042;
/** Notified with each commit that has written events. */
export const EVENT_CHANNEL = 'switchyard_events';
/** What API processes say to one another, and nobody keeps. */
export const WORD_CHANNEL = 'switchyard_words';
/** Bytes of what is said at once (NOTIFY takes 8 000). */
export const WORD_BYTES_MAX = 7_900;

/** An operator's boost, either way. */
export const BOOST_MAX = 1_000;
/** Inputs of one job. */
export const INPUTS_MAX = 100;

/** Margins kept: more than any policy's window (core/data/margins.ts, MAX_WINDOW). */
export const MARGINS_KEPT = 10_000;
/** How long arrivals and services are kept (s): the widest window over which a policy may count them. */
export const TRAFFIC_KEPT_S = 3_600;
/** Records of what runs came to kept: applications × users × kinds of resource. All of them are in every mirror. */
export const TOTALS_KEPT = 100_000;
/** Of each link. */
export const MEASUREMENTS_KEPT = 100;

/** How far back starts at a site that schedules itself are seen for what jobs wait there (s), and how many of them, the latest ones. */
export const WAITS_SEEN_S = 86_400;
export const WAITS_SEEN_MAX = 1_000;

/**
 * Times of a hold that schedulers know, the next ones. What starts now respects all: whatever reaches into a later time reaches into the
 * next one first.
 */
export const TIMES_KNOWN = 8;
/** Times of a hold that people are shown, the next ones. */
export const TIMES_SHOWN = 100;
