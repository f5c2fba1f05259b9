/**
 * Every reason that the core gives, as one vocabulary: decisions, waiting jobs, the API, the metrics and the screen use
 * these names. A sentence goes with each; `reasonSentence` fills in its numbers.
 */

/** Why jobs wait; the ones down to SITE_QUEUE_FULL also say why a site is not eligible. */
export const WaitingReason = {
  // In a site's local queue, or for a site.
  SITE_DRAINING: 'SITE_DRAINING',
  SITE_DOWN: 'SITE_DOWN',
  NO_MACHINE_NOW: 'NO_MACHINE_NOW',
  NO_LICENSE_AT_SITE: 'NO_LICENSE_AT_SITE',
  SITE_TAKES_NO_PARTS: 'SITE_TAKES_NO_PARTS',
  SITE_TAKES_NO_DEVICES: 'SITE_TAKES_NO_DEVICES',
  LIMIT_TOO_LONG: 'LIMIT_TOO_LONG',
  SITE_QUEUE_FULL: 'SITE_QUEUE_FULL',
  CPUS_BUSY: 'CPUS_BUSY',
  MEMORY_BUSY: 'MEMORY_BUSY',
  RESOURCES_BUSY: 'RESOURCES_BUSY',
  MACHINES_BUSY: 'MACHINES_BUSY',
  OTHER_USERS_BUSY: 'OTHER_USERS_BUSY',
  TASKS_PER_MACHINE_BUSY: 'TASKS_PER_MACHINE_BUSY',
  ALL_ALIKE_BUSY: 'ALL_ALIKE_BUSY',
  LICENSES_BUSY: 'LICENSES_BUSY',
  MAX_TASKS_REACHED: 'MAX_TASKS_REACHED',
  MAX_RUNNING_JOBS_REACHED: 'MAX_RUNNING_JOBS_REACHED',
  JOBS_AHEAD: 'JOBS_AHEAD',
  WOULD_DELAY_RESERVATION: 'WOULD_DELAY_RESERVATION',
  SITE_SCHEDULER_FULL: 'SITE_SCHEDULER_FULL',
  RESERVED: 'RESERVED',
  ROOM_PROMISED: 'ROOM_PROMISED',
  // At the root.
  NO_SITE_UP: 'NO_SITE_UP',
  NO_ELIGIBLE_SITE: 'NO_ELIGIBLE_SITE',
  NEVER_FITS_CPUS: 'NEVER_FITS_CPUS',
  NEVER_FITS_MEMORY: 'NEVER_FITS_MEMORY',
  NEVER_FITS_RESOURCES: 'NEVER_FITS_RESOURCES',
  NEVER_FITS_LICENSES: 'NEVER_FITS_LICENSES',
  NEVER_FITS_PLATFORM: 'NEVER_FITS_PLATFORM',
  NEVER_FITS_CONSTRAINT: 'NEVER_FITS_CONSTRAINT',
  NEVER_FITS_TASKS_PER_MACHINE: 'NEVER_FITS_TASKS_PER_MACHINE',
  NEVER_FITS_ALL_ALIKE: 'NEVER_FITS_ALL_ALIKE',
  NEVER_FITS_TOGETHER: 'NEVER_FITS_TOGETHER',
  QUEUES_FULL: 'QUEUES_FULL',
  NO_SITE_HAS_ROOM: 'NO_SITE_HAS_ROOM',
  BEHIND_HEAD: 'BEHIND_HEAD',
  NO_BRANCH_ASKS: 'NO_BRANCH_ASKS',
  // In a site's meta-queue.
  META_QUEUE: 'META_QUEUE',
  // On machines.
  STAGING: 'STAGING',
  STARTING: 'STARTING',
  WAITS_AT_SITE: 'WAITS_AT_SITE',
  // Anywhere.
  MOVE_LIMIT: 'MOVE_LIMIT',
  READY: 'READY',
  HELD: 'HELD',
  NEEDS: 'NEEDS',
  NOT_BEFORE: 'NOT_BEFORE',
} as const;
export type WaitingReason = (typeof WaitingReason)[keyof typeof WaitingReason];

export const ReasonCode = {
  // Why a site was chosen.
  IDLE_SITE: 'IDLE_SITE',
  LEAST_LOAD: 'LEAST_LOAD',
  LEAST_ORDERING: 'LEAST_ORDERING',
  RANDOM_TIE_BREAK: 'RANDOM_TIE_BREAK',
  STARTS_AT_ONCE: 'STARTS_AT_ONCE',
  SHORTEST_QUEUE: 'SHORTEST_QUEUE',
  BEST_RANK: 'BEST_RANK',
  BEST_RANK_WITH_ROOM: 'BEST_RANK_WITH_ROOM',
  LEAST_COST: 'LEAST_COST',
  LEAST_COST_ELSEWHERE: 'LEAST_COST_ELSEWHERE',
  NEXT_IN_META_QUEUE: 'NEXT_IN_META_QUEUE',
  EXPORTED: 'EXPORTED',
  BRANCH_SHARE: 'BRANCH_SHARE',
  BUTTERFLY: 'BUTTERFLY',
  LOAD_BALANCE: 'LOAD_BALANCE',
  FALLBACK: 'FALLBACK',
  DISPLACED: 'DISPLACED',
  AHEAD: 'AHEAD',
  CLAIMED: 'CLAIMED',
  ROUND_ROBIN: 'ROUND_ROBIN',
  RANDOM_SITE: 'RANDOM_SITE',
  MOST_POWER: 'MOST_POWER',
  CLAIMED_BY_PEER: 'CLAIMED_BY_PEER',
  HAS_RESERVATION: 'HAS_RESERVATION',
  // Why a job started.
  HEAD: 'HEAD',
  BACKFILLED_BEFORE_RESERVATION: 'BACKFILLED_BEFORE_RESERVATION',
  BACKFILLED_BESIDE_RESERVATION: 'BACKFILLED_BESIDE_RESERVATION',
  FITTED_OUT_OF_TURN: 'FITTED_OUT_OF_TURN',
  HANDED_OVER: 'HANDED_OVER',
  ROOM_MADE: 'ROOM_MADE',
  // Why it was promised room, and why another job was stopped.
  MAKES_ROOM: 'MAKES_ROOM',
  PREEMPTED: 'PREEMPTED',
  // Why the root took a job back, beside why its site could not run it.
  NO_META_QUEUES: 'NO_META_QUEUES',
  STARTS_ELSEWHERE: 'STARTS_ELSEWHERE',
  SCHEDULER_REMOVED: 'SCHEDULER_REMOVED',
  ...WaitingReason,
} as const;
export type ReasonCode = (typeof ReasonCode)[keyof typeof ReasonCode];

/** Whether this release gives it: decisions that are kept may be of one before. */
export const isReasonCode = (code: string): code is ReasonCode => Object.hasOwn(ReasonCode, code);

const sentences: Record<ReasonCode, string> = {
  IDLE_SITE: 'Nothing of equal or higher priority is queued there.',
  LEAST_LOAD: 'Least queued work of equal or higher priority.',
  LEAST_ORDERING:
    'Fewest queued jobs among the sites with the least queued work, of equal or higher priority.',
  RANDOM_TIE_BREAK: 'Chosen at random among the sites with the least queued work and the fewest queued jobs.',
  STARTS_AT_ONCE: 'It can start there now, and this site runs the fewest jobs of those where it can.',
  SHORTEST_QUEUE:
    'It cannot start anywhere now; of the sites with room in their queues, this one has the shortest queue.',
  BEST_RANK: 'Highest rank of all sites for this job.',
  BEST_RANK_WITH_ROOM: 'Highest rank for this job among the sites with room in their queues.',
  LEAST_COST: 'Lowest total cost of network, computation and data.',
  LEAST_COST_ELSEWHERE:
    'Its previous site can no longer run it; of the other sites, this one has the lowest total cost.',
  NEXT_IN_META_QUEUE: "Next in the site's meta-queue, and the local queue has room.",
  EXPORTED: 'Its previous site was congested; here fewer jobs are ahead of it, and its cost is lower.',
  BRANCH_SHARE: 'This branch of the tree requested work, and the job is part of its portion.',
  BUTTERFLY:
    'Another branch requested work, and more of the preferences are satisfied there, or it is closer.',
  LOAD_BALANCE: 'Another branch requested work, and the branch that held the job had more than its portion.',
  FALLBACK: 'It can no longer run where it was, so it goes ahead of later jobs elsewhere.',
  DISPLACED: 'A job with precedence took its place here.',
  AHEAD: 'It has precedence over jobs that wait here, and took the place of the last of them.',
  CLAIMED: 'Next at its site, which has resources for it or room in its local queue.',
  ROUND_ROBIN: 'Next site in turn.',
  RANDOM_SITE: 'Chosen at random among the sites that can run it.',
  MOST_POWER:
    'This site has the most powerful machine that can run it, or the most powerful free one if any is free.',
  CLAIMED_BY_PEER: 'The peer has resources for it, and claimed it first.',
  HAS_RESERVATION: 'Its reservation is there.',
  HEAD: 'Head of the queue, resources free.',
  BACKFILLED_BEFORE_RESERVATION:
    'Backfilled; according to its estimate it ends before the reserved start of a job ahead of it.',
  BACKFILLED_BESIDE_RESERVATION: 'Backfilled; it uses no resources reserved for a job ahead of it.',
  FITTED_OUT_OF_TURN: 'Resources free; under this policy, jobs ahead of it in the queue do not block it.',
  HANDED_OVER: "Submitted to the site's own scheduler, which decides when and where it runs.",
  ROOM_MADE: 'These resources were promised to it because of its class.',
  MAKES_ROOM: 'Because of its class, it is promised the resources of jobs being stopped for it.',
  PREEMPTED: 'Stopped to make room for a job of a higher class.',
  NO_META_QUEUES: 'The current policy has no meta-queues.',
  STARTS_ELSEWHERE: 'Its own scheduler has not started it, and another site can start it now.',
  SCHEDULER_REMOVED: 'The scheduler that held it was removed.',
  NO_SITE_UP: 'No site is up.',
  NO_ELIGIBLE_SITE: 'Every site that could run it is down, is draining, or has no machine available for it.',
  NEVER_FITS_CPUS: 'No site has machines for {tasks} tasks with {cpusPerTask} CPUs each.',
  NEVER_FITS_MEMORY: 'No site has machines for {tasks} tasks with {memoryMbPerTask} MB of memory each.',
  NEVER_FITS_RESOURCES: 'No site has machines for {tasks} tasks with {further} each.',
  NEVER_FITS_LICENSES:
    'No site has all the licenses and other amounts of sites and the grid that it needs{pools}, and machines that can use them.',
  NEVER_FITS_PLATFORM: 'No machine has the required operating system and architecture.',
  NEVER_FITS_CONSTRAINT: 'No machine with the required platform satisfies its constraint.',
  NEVER_FITS_TASKS_PER_MACHINE:
    'No site can run its {tasks} tasks with {perMachine} on each machine, although one could with fewer or more.',
  NEVER_FITS_ALL_ALIKE:
    'No site can run its {tasks} tasks on machines as alike as it requires, although one could on others.',
  NEVER_FITS_TOGETHER: 'Each of its requirements is met at some site, but no site meets all of them.',
  MOVE_LIMIT: 'The scheduling cycle reached its limit of moves; the next cycle continues with this job.',
  QUEUES_FULL: 'The queue of every site that could run it is full.',
  NO_SITE_HAS_ROOM: 'It cannot start anywhere now, and no site has room for it in its queue.',
  BEHIND_HEAD: 'Job {headJob} is ahead of it in the global queue and must be dispatched first.',
  NO_BRANCH_ASKS: 'No branch of the tree that could run it requests work: none has free CPUs.',
  META_QUEUE: "In the site's meta-queue, with {ahead} jobs ahead of it, until the local queue has room.",
  SITE_DRAINING: 'The site is draining.',
  SITE_DOWN: 'The site is down.',
  NO_MACHINE_NOW: 'None of the currently available machines could run it, even when idle.',
  NO_LICENSE_AT_SITE:
    'The site and the grid together have less of a license, or of another resource, than it needs{pools}.',
  SITE_TAKES_NO_PARTS: "The site's own scheduler does not run jobs of several parts.",
  SITE_TAKES_NO_DEVICES:
    "The site's own scheduler cannot be asked for such devices: at most for whole ones, by kind and model.",
  LIMIT_TOO_LONG: 'Its run time limit is longer than the site allows any job.',
  SITE_QUEUE_FULL: 'It cannot start there now, and the queue there is full.',
  CPUS_BUSY:
    'Needs {neededCpus} CPUs for {tasks} tasks; at most {mostFreeCpus} are free on one machine ({freeCpus} in total).',
  MEMORY_BUSY: 'Too little memory is free on the machines with free CPUs.',
  RESOURCES_BUSY: 'Each task needs {further}; too little of this is free on machines with room for the rest.',
  MACHINES_BUSY:
    'Needs exclusive machines: of the {machines} that could run it, {idleMachines} are idle, too few for its {tasks} tasks.',
  OTHER_USERS_BUSY:
    'Needs machines without jobs of other users: of the {machines} that could run it, {idleMachines} are idle, too few for its {tasks} tasks.',
  TASKS_PER_MACHINE_BUSY:
    'There is room for its {tasks} tasks in total, but not for {perMachine} on each machine.',
  ALL_ALIKE_BUSY:
    'Enough is free for its {tasks} tasks in total, but not on machines that are alike as it asks.',
  LICENSES_BUSY:
    'Less is free of a license, or of another resource of the site or the grid, than it needs{pools}: the rest is in use or reserved.',
  MAX_TASKS_REACHED:
    'Too few time-shared machines accept another task: it needs {neededTasks}, {openMachines} do.',
  MAX_RUNNING_JOBS_REACHED: 'The site already runs {maxRunningJobs} jobs, its limit.',
  JOBS_AHEAD: 'Jobs ahead of it in the queue must start first.',
  WOULD_DELAY_RESERVATION: 'It would fit now, but would delay the reserved start of a job ahead of it.',
  SITE_SCHEDULER_FULL:
    "The maximum number of jobs already waits in the site's own scheduler ({handedOver} of {handOverLimit}).",
  RESERVED:
    'A maintenance window or reservation takes the machines that it needs, now or before its time limit ends.',
  ROOM_PROMISED: 'Jobs of lower classes are being stopped for it; it starts once they have ended.',
  READY: 'Ready for the next scheduling cycle.',
  STAGING:
    'Machines are allocated; {movedMb} of {totalMb} MB of its input data were transferred to the site in {measuredS} s; {predictedS} s were expected in total.',
  STARTING: 'Machines are allocated; its agent has not reported its start yet.',
  WAITS_AT_SITE: "It waits in the site's own scheduler.",
  HELD: 'Held until released.',
  NEEDS: 'Waits for {open} of its {needs} conditions on other jobs.',
  NOT_BEFORE: 'Waits for its start time, in {seconds} s.',
};

/** Of a decision that is kept, whose code this release does not give any more. */
const OF_EARLIER_RELEASE = 'A reason that only an earlier release gave.';

/** Of a job of one task. */
const ofOneTask: Partial<Record<ReasonCode, string>> = {
  NEVER_FITS_CPUS: 'No site has a machine with {cpusPerTask} CPUs.',
  NEVER_FITS_MEMORY: 'No site has a machine with {memoryMbPerTask} MB of memory.',
  MACHINES_BUSY: 'Needs an exclusive machine; of the {machines} that could run it, none is idle.',
  OTHER_USERS_BUSY:
    'Needs a machine without jobs of other users; of the {machines} that could run it, {idleMachines} are idle.',
  CPUS_BUSY:
    'Needs {neededCpus} CPUs on one machine; at most {mostFreeCpus} are free on any one ({freeCpus} in total).',
};

/** How many tasks may be on a machine: "exactly 4". */
export function perMachine({ min, max }: { min: number; max: number | null }): string {
  if (max === null) return `at least ${min}`;
  if (max === min) return `exactly ${max}`;
  return min === 1 ? `at most ${max}` : `${min} to ${max}`;
}

/** What a task asks for besides CPUs and memory, from its numbers: "2 gpu, 1 tape". */
const further = (numbers: Readonly<Record<string, number>>): string =>
  Object.entries(numbers)
    .map(([name, amount]) => [amount, /^(.+)PerTask$/.exec(name)?.[1]] as const)
    .filter(([, kind]) => kind !== undefined && kind !== 'cpus' && kind !== 'memoryMb')
    .map(([amount, kind]) => `${amount} ${kind}`)
    .join(', ');

/** What it needs of pools that have less, with what they have; nothing where that is not known: " (5 tape-drive; 4 free)". */
function pools(numbers: Readonly<Record<string, number>>): string {
  const asked = Object.entries(numbers).flatMap(([name, amount]) => {
    const kind = /^(.+)ForJob$/.exec(name)?.[1];
    if (kind === undefined) return [];
    const free = numbers[`${kind}Free`];
    const there = free ?? numbers[`${kind}AtSite`] ?? amount;
    return there >= amount
      ? []
      : [`${amount} ${kind}; ${there} ${free === undefined ? 'at one site' : 'free'}`];
  });
  return asked.length === 0 ? '' : ` (${asked.join(', ')})`;
}

/** Which part of a job of several is spoken of. */
const partOf = ({ part, partsBefore = 0 }: Readonly<Record<string, number>>): string =>
  part === undefined
    ? ''
    : partsBefore > 0
      ? `Part ${part}, next to the parts before it: `
      : `Part ${part}: `;

const KEPT = ' Of its machines, {keptMachines} are kept for the jobs of one user each.';

/** The sentence of a reason, its `{name}` places filled from `numbers` (those without a number say "?"). */
export function reasonSentence(code: ReasonCode, numbers: Readonly<Record<string, number>> = {}): string {
  const kept = (numbers.keptMachines ?? 0) > 0 && code.endsWith('_BUSY') ? KEPT : '';
  const told = (numbers.tasks === 1 ? ofOneTask[code] : undefined) ?? sentences[code] ?? OF_EARLIER_RELEASE;
  const sentence = told + kept;
  return (partOf(numbers) + sentence).replace(/\{(\w+)\}/g, (_, name: string) =>
    name === 'further'
      ? further(numbers)
      : name === 'pools'
        ? pools(numbers)
        : name === 'perMachine'
          ? perMachine({ min: numbers.minPerMachine ?? 1, max: numbers.maxPerMachine ?? null })
          : String(numbers[name] ?? '?'),
  );
}
