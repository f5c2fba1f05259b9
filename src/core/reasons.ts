/**
 * Every reason that the core gives, as one vocabulary: decisions, waiting jobs, the API, the metrics and the screen use
 * these names. A sentence goes with each; `reasonSentence` fills in its numbers.
 */

/** Why jobs wait; the ones down to NO_ROOM_HERE also say why a site is not eligible. */
export const WaitingReason = {
  // In a site's local queue, or for a site.
  SITE_DRAINING: 'SITE_DRAINING',
  SITE_DOWN: 'SITE_DOWN',
  NO_MACHINE_NOW: 'NO_MACHINE_NOW',
  NO_LICENSE_HERE: 'NO_LICENSE_HERE',
  NO_ROOM_HERE: 'NO_ROOM_HERE',
  CPUS_BUSY: 'CPUS_BUSY',
  MEMORY_BUSY: 'MEMORY_BUSY',
  LICENSES_BUSY: 'LICENSES_BUSY',
  PLACES_BUSY: 'PLACES_BUSY',
  RUNS_LIMITED: 'RUNS_LIMITED',
  NOT_HEAD: 'NOT_HEAD',
  WOULD_DELAY_RESERVATION: 'WOULD_DELAY_RESERVATION',
  // At the root.
  NO_SITE_UP: 'NO_SITE_UP',
  NO_ELIGIBLE_SITE: 'NO_ELIGIBLE_SITE',
  NEVER_FITS_CPUS: 'NEVER_FITS_CPUS',
  NEVER_FITS_MEMORY: 'NEVER_FITS_MEMORY',
  NEVER_FITS_LICENSES: 'NEVER_FITS_LICENSES',
  NEVER_FITS_PLATFORM: 'NEVER_FITS_PLATFORM',
  NEVER_FITS_TOGETHER: 'NEVER_FITS_TOGETHER',
  QUEUES_FULL: 'QUEUES_FULL',
  NO_SITE_HAS_ROOM: 'NO_SITE_HAS_ROOM',
  BEHIND_HEAD: 'BEHIND_HEAD',
  // In a site's meta-queue.
  META_QUEUE: 'META_QUEUE',
  // Anywhere.
  MOVE_LIMIT: 'MOVE_LIMIT',
  READY: 'READY',
  HELD: 'HELD',
} as const;
export type WaitingReason = (typeof WaitingReason)[keyof typeof WaitingReason];

export const ReasonCode = {
  // Why a site was chosen.
  IDLE_SITE: 'IDLE_SITE',
  LEAST_LOAD: 'LEAST_LOAD',
  LEAST_ORDERING: 'LEAST_ORDERING',
  DRAWN: 'DRAWN',
  STARTS_AT_ONCE: 'STARTS_AT_ONCE',
  SHORTEST_QUEUE: 'SHORTEST_QUEUE',
  BEST_RANK: 'BEST_RANK',
  BEST_RANK_WITH_ROOM: 'BEST_RANK_WITH_ROOM',
  LEAST_COST: 'LEAST_COST',
  LEAST_COST_ELSEWHERE: 'LEAST_COST_ELSEWHERE',
  FED_FROM_META: 'FED_FROM_META',
  EXPORTED: 'EXPORTED',
  ROUND_ROBIN: 'ROUND_ROBIN',
  RANDOM_SITE: 'RANDOM_SITE',
  MOST_POWER: 'MOST_POWER',
  // Why a job started.
  HEAD: 'HEAD',
  BACKFILLED_BEFORE_RESERVATION: 'BACKFILLED_BEFORE_RESERVATION',
  BACKFILLED_BESIDE_RESERVATION: 'BACKFILLED_BESIDE_RESERVATION',
  FITTED_OUT_OF_TURN: 'FITTED_OUT_OF_TURN',
  // Why the root took a job back, beside why its site could not run it.
  NO_META_QUEUES: 'NO_META_QUEUES',
  ...WaitingReason,
} as const;
export type ReasonCode = (typeof ReasonCode)[keyof typeof ReasonCode];

const sentences: Record<ReasonCode, string> = {
  IDLE_SITE: 'The first site with no queued work of this priority or above takes the job.',
  LEAST_LOAD: 'The site has the least queued work of this priority or above.',
  LEAST_ORDERING:
    'Among the sites with the least work, this one has the fewest jobs of this priority or above.',
  DRAWN: 'Several sites have the same least work and number of jobs; one of them was drawn.',
  STARTS_AT_ONCE: 'The site can start it at once, and of those that can it runs the fewest jobs.',
  SHORTEST_QUEUE:
    'No site can start it at once; of those with room in their queues, this one has the shortest.',
  BEST_RANK: 'The site has the highest rank for the job.',
  BEST_RANK_WITH_ROOM: 'Of the sites whose queue has room, this one has the highest rank for the job.',
  LEAST_COST: 'The site has the least total cost of network, computation and data.',
  LEAST_COST_ELSEWHERE:
    'The site that it waited at can run it no more; of the others this one has the least total cost.',
  FED_FROM_META: "It was next in the site's meta-queue, and the local queue had room.",
  EXPORTED:
    'The site that it waited at was congested; its group has fewer jobs ahead and costs less at this one.',
  ROUND_ROBIN: 'It is the turn of this site.',
  RANDOM_SITE: 'The site was drawn from those that can run it.',
  MOST_POWER: 'The site has the most power of those that can run it.',
  HEAD: 'It was first in the queue and fitted.',
  BACKFILLED_BEFORE_RESERVATION:
    'It fitted, and ends by its estimate before the reservation of job {reservedJob}.',
  BACKFILLED_BESIDE_RESERVATION: 'It fitted beside what is reserved for job {reservedJob}.',
  FITTED_OUT_OF_TURN: 'It fitted, and under this policy jobs ahead of it do not hold it back.',
  NO_META_QUEUES: 'The policy in force has no meta-queues: what waited in one goes back to the root.',
  NO_SITE_UP: 'No site is up.',
  NO_ELIGIBLE_SITE: 'Every site that could run it is down, draining, or has its machines unavailable.',
  NEVER_FITS_CPUS: 'No site has machines with enough CPUs for {tasks} tasks of {cpusPerTask} CPUs.',
  NEVER_FITS_MEMORY: 'No site has machines with enough memory for {tasks} tasks of {memoryMbPerTask} MB.',
  NEVER_FITS_LICENSES: 'No site has machines and copies for all the licenses that it asks for.',
  NEVER_FITS_PLATFORM: 'No machine has the operating system and architecture that it asks for.',
  NEVER_FITS_TOGETHER: 'Each requirement is met somewhere, but all of them together by no site.',
  MOVE_LIMIT: 'The cycle reached its limit of moves; the job is taken up by the next one.',
  QUEUES_FULL: 'The queue of every site that could run it is full.',
  NO_SITE_HAS_ROOM: 'No site can start it now, and no queue of a site has room for it.',
  BEHIND_HEAD: 'Job {headJob} is ahead of it at the root and must leave first.',
  META_QUEUE:
    "It is in the site's meta-queue, {ahead} jobs ahead of it, and goes on when the local queue has room.",
  SITE_DRAINING: 'The site is draining and starts nothing.',
  SITE_DOWN: 'The site is down.',
  NO_MACHINE_NOW: 'None of the machines that are available now could run it, even when idle.',
  NO_LICENSE_HERE: 'No copy of a license that it asks for exists at this site or in the grid-wide pool.',
  NO_ROOM_HERE: 'It cannot start there now, and the queue there is full.',
  CPUS_BUSY: 'Not enough CPUs are free: it needs {neededCpus}, {freeCpus} are free.',
  MEMORY_BUSY: 'Not enough memory is free on the machines with free CPUs.',
  LICENSES_BUSY: 'All copies of a license that it asks for are in use or reserved.',
  PLACES_BUSY: 'Too few time-shared machines take a further task: it needs {neededTasks}, {openMachines} do.',
  RUNS_LIMITED: 'The site runs as many jobs as it may at once: {maxRunningJobs}.',
  NOT_HEAD: 'Jobs ahead of it in the queue must start first.',
  WOULD_DELAY_RESERVATION:
    'It would fit now, but would delay the start reserved for job {reservedJob} at {reservedAt}.',
  READY: 'Nothing stands in its way: the next cycle starts it.',
  HELD: 'It is held until someone releases it.',
};

/** The sentence of a reason, its `{name}` places filled from `numbers` (those without a number say "?"). */
export function reasonSentence(code: ReasonCode, numbers: Readonly<Record<string, number>> = {}): string {
  return sentences[code].replace(/\{(\w+)\}/g, (_, name: string) => String(numbers[name] ?? '?'));
}
