/** What can be set in a policy, in words: of each field what it does, its unit, and what is accepted. */

export interface Field {
  path: string;
  label: string;
  about: string;
  unit?: string;
  type: 'number' | 'whole' | 'choice' | 'classes';
  min?: number;
  max?: number;
  options?: readonly string[];
  /** May be empty: null. */
  nullable?: true;
  /** What an empty field means. */
  empty?: string;
}

export interface Kind {
  value: string;
  label: string;
  about: string;
  /** What the policy is when it is chosen. */
  document: Record<string, unknown>;
  fields: readonly Field[];
}

const weight = (path: string, label: string, about: string): Field => ({
  path,
  label,
  about,
  type: 'number',
  min: 0,
  max: 1e6,
});

const AGE_BOUND: Field = {
  path: 'ageBoundS',
  label: 'Overtaken at most for',
  about:
    'A job that has waited so long is overtaken no more: others wait for it. Without it, wide and long jobs can starve.',
  unit: 's',
  type: 'number',
  min: 1,
  max: 31_536_000,
  nullable: true,
  empty: 'for ever',
};

const QUEUE_LIMIT: Field = {
  path: 'queueLimit',
  label: 'Jobs in a site’s queue',
  about:
    'So many jobs wait at a site at most; what comes beyond is held before it, and can still go elsewhere.',
  unit: 'jobs',
  type: 'whole',
  min: 1,
  max: 1_000_000,
};

const costs = (path: string, kind: string): Field[] => [
  weight(
    `${path}.network`,
    `${kind}: network`,
    'How much the cost of moving the sandbox counts, for jobs of this kind.',
  ),
  weight(
    `${path}.computation`,
    `${kind}: computation`,
    'How much what is ahead, the run and the load count.',
  ),
  weight(`${path}.data`, `${kind}: data`, 'How much moving inputs and output counts.'),
];

export const DISPATCH: readonly Kind[] = [
  {
    value: 'two-level',
    label: 'Two levels',
    about:
      'Each job goes at once to the site with the least queued work of its priority or above (Pasquali et al.).',
    document: {
      kind: 'two-level',
      mode: 'MS',
      maxDelta: 10,
      window: 100,
      weights: { deadline: 1, licenses: 1, user: 1, project: 1, service: 1 },
      userClassDelta: null,
      projectDelta: {},
      serviceDelta: {},
    },
    fields: [
      {
        path: 'mode',
        label: 'Who gives priorities',
        about:
          'MS: the root, at dispatch. LS: each site, computed anew in every cycle. NONE: nobody; first come, first served.',
        type: 'choice',
        options: ['MS', 'LS', 'NONE'],
      },
      weight(
        'weights.deadline',
        'Weight of a near deadline',
        'The nearer its deadline, the higher a job’s priority. Twice the weight, twice the points.',
      ),
      weight(
        'weights.licenses',
        'Weight of many licenses',
        'Jobs that ask for many licenses go before those that ask for few.',
      ),
      weight('weights.user', 'Weight of the user’s class', 'Gold before silver before regular.'),
      weight(
        'weights.project',
        'Weight of the project',
        'The document’s projectDelta gives projects their values; others have 0.',
      ),
      weight(
        'weights.service',
        'Weight of the application',
        'The document’s serviceDelta gives applications their values; others have 0.',
      ),
      {
        path: 'maxDelta',
        label: 'Highest value of a term',
        about: 'Each of the terms is between 0 and this. A finer scale tells jobs apart better.',
        type: 'whole',
        min: 1,
        max: 64,
      },
      {
        path: 'window',
        label: 'Margins in the mean',
        about: 'A deadline is near or far compared with the mean margin of so many earlier jobs.',
        unit: 'jobs',
        type: 'whole',
        min: 1,
        max: 1000,
      },
      {
        path: 'userClassDelta',
        label: 'Value of each class',
        about:
          'What gold, silver and regular count before the weight. As by default: the highest value, half of it, and 0.',
        type: 'classes',
        nullable: true,
      },
    ],
  },
  {
    value: 'queues',
    label: 'Queues at the root',
    about:
      'Jobs wait at the root until a site has room; then the first of the order leaves (Santoso et al.).',
    document: { kind: 'queues', order: 'FCFS', queueLimit: 0, ageBoundS: 86_400 },
    fields: [
      {
        path: 'order',
        label: 'Order',
        about:
          'FCFS: by arrival. SJF: shortest first. FF: by arrival, passing over what does not fit. S-SJF and L-SJF: a queue for each number of tasks, from the fewest up or the most down.',
        type: 'choice',
        options: ['FCFS', 'SJF', 'FF', 'S-SJF', 'L-SJF'],
      },
      {
        ...QUEUE_LIMIT,
        min: 0,
        about: 'So many jobs wait at a site at most. 0: a job leaves the root only when it can start.',
      },
      AGE_BOUND,
    ],
  },
  {
    value: 'job-ratio',
    label: 'Job ratio',
    about:
      'Batches of jobs go to the sites that rank best for them by power, data and queue (AL-Khateeb et al.).',
    document: { kind: 'job-ratio', queueLimit: 100 },
    fields: [QUEUE_LIMIT],
  },
  {
    value: 'diana',
    label: 'DIANA',
    about:
      'Jobs go where network, computation and data cost least, are ordered by their users’ quotas, and leave congested sites in groups (Anjum et al.).',
    document: {
      kind: 'diana',
      weights: {
        computational: { network: 1, computation: 1, data: 4 },
        dataIntensive: { network: 1, computation: 1, data: 4 },
        both: { network: 1, computation: 1, data: 4 },
      },
      computationalFrom: 0.75,
      dataIntensiveTo: 0.25,
      loadPenaltyS: 60,
      placement: 'LEAST_COST',
      metaOrder: 'QUOTA',
      queueLimit: 10,
      congestionThreshold: 0.5,
      congestionWindowS: 600,
      migration: { rule: 'BOTH_LOWER' },
      holdOffS: 300,
    },
    fields: [
      ...costs('weights.computational', 'Computing jobs'),
      ...costs('weights.dataIntensive', 'Data jobs'),
      ...costs('weights.both', 'Other jobs'),
      {
        path: 'computationalFrom',
        label: 'Computing from',
        about: 'A job that computes at least this share of its time is a computing job.',
        type: 'number',
        min: 0,
        max: 1,
      },
      {
        path: 'dataIntensiveTo',
        label: 'Data job up to',
        about: 'A job that computes at most this share of its time is a data job.',
        type: 'number',
        min: 0,
        max: 1,
      },
      {
        path: 'loadPenaltyS',
        label: 'Cost of a busy site',
        about: 'A fully busy site costs so much more than an idle one.',
        unit: 's',
        type: 'number',
        min: 0,
        max: 86_400,
      },
      {
        path: 'placement',
        label: 'New jobs',
        about:
          'LEAST_COST: where they cost least. ORIGIN_FIRST: where they were submitted if they can start there at once, elsewhere only if not.',
        type: 'choice',
        options: ['LEAST_COST', 'ORIGIN_FIRST'],
      },
      {
        path: 'metaOrder',
        label: 'Order of meta-queues',
        about: 'QUOTA: by the users’ quotas. SJF: fewest processors first.',
        type: 'choice',
        options: ['QUOTA', 'SJF'],
      },
      QUEUE_LIMIT,
      {
        path: 'congestionThreshold',
        label: 'Congested from',
        about:
          'A site is congested when (arrivals − services) / arrivals is above this. Then groups of jobs may leave it.',
        type: 'number',
        min: -1e6,
        max: 1,
      },
      {
        path: 'congestionWindowS',
        label: 'Counted over',
        about: 'Arrivals and services are counted over so long.',
        unit: 's',
        type: 'number',
        min: 10,
        max: 3600,
      },
      {
        path: 'migration.rule',
        label: 'May leave for',
        about:
          'BOTH_LOWER: sites with fewer jobs ahead and a lower cost. NOT_BOTH_HIGHER: all but those with more jobs ahead and a higher cost.',
        type: 'choice',
        options: ['BOTH_LOWER', 'NOT_BOTH_HIGHER'],
      },
      {
        path: 'holdOffS',
        label: 'Stays after a move',
        about: 'A job that has moved to another site stays there for so long.',
        unit: 's',
        type: 'number',
        min: 1,
        max: 2_592_000,
      },
    ],
  },
  {
    value: 'round-robin',
    label: 'Round robin',
    about: 'To each site in turn. A baseline.',
    document: { kind: 'round-robin' },
    fields: [],
  },
  {
    value: 'random',
    label: 'Random',
    about: 'To a drawn site. A baseline.',
    document: { kind: 'random' },
    fields: [],
  },
  {
    value: 'most-flops',
    label: 'Most power',
    about: 'To the site with the most power. A baseline.',
    document: { kind: 'most-flops' },
    fields: [],
  },
];

export const LOCAL: readonly Kind[] = [
  {
    value: 'flexible',
    label: 'Flexible backfilling',
    about:
      'In the order of priority; the first that does not fit has a reservation, others fill in where they do not delay it (Pasquali et al.).',
    document: {
      kind: 'flexible',
      weights: {
        aging: 0.01,
        licenses: 1,
        waitMinimization: 1,
        deadlineMin: 0.1,
        deadlineMax: 5,
        deadlineK: 1.5,
      },
    },
    fields: [
      weight(
        'weights.aging',
        'Aging',
        'Added for each second waited, where the site gives priorities (mode LS). So that nobody waits for ever.',
      ),
      weight('weights.licenses', 'Scarce licenses', 'For jobs that ask for licenses which many ask for.'),
      weight(
        'weights.waitMinimization',
        'Short jobs',
        'For jobs that are short compared with the shortest in the queue.',
      ),
      weight('weights.deadlineMin', 'Far deadline', 'For a deadline that is far, or past.'),
      weight('weights.deadlineMax', 'Last moment', 'For a deadline that can just be met.'),
      {
        path: 'weights.deadlineK',
        label: 'Urgency begins',
        about: 'So many run times before its deadline a job’s urgency begins to grow.',
        unit: 'run times',
        type: 'number',
        min: 0,
        max: 1000,
      },
    ],
  },
  {
    value: 'easy',
    label: 'EASY backfilling',
    about:
      'In the order of arrival; the first that does not fit has a reservation, others fill in where they do not delay it.',
    document: { kind: 'easy' },
    fields: [
      {
        path: 'backfill',
        label: 'Fill in by',
        about: 'In which order jobs behind the reservation are tried.',
        type: 'choice',
        options: ['ARRIVAL', 'SHORTEST', 'LONGEST', 'NARROWEST', 'WIDEST'],
        nullable: true,
      },
    ],
  },
  {
    value: 'conservative',
    label: 'Conservative backfilling',
    about: 'As EASY, with a promised start for every job, which stands.',
    document: { kind: 'conservative', depth: 1000 },
    fields: [
      {
        path: 'depth',
        label: 'Promises',
        about: 'So many jobs of the queue have a promised start at most.',
        unit: 'jobs',
        type: 'whole',
        min: 1,
        max: 100_000,
      },
    ],
  },
  {
    value: 'hybrid',
    label: 'Hybrid backfilling',
    about: 'As EASY, with reservations for the first so many jobs that do not fit.',
    document: { kind: 'hybrid', reservations: 4 },
    fields: [
      {
        path: 'reservations',
        label: 'Reservations',
        about: 'Between EASY (1) and conservative (all).',
        unit: 'jobs',
        type: 'whole',
        min: 1,
        max: 1000,
      },
    ],
  },
  {
    value: 'fcfs',
    label: 'First come, first served',
    about: 'In the order of arrival; nobody overtakes.',
    document: { kind: 'fcfs' },
    fields: [],
  },
  {
    value: 'sjf',
    label: 'Shortest first',
    about: 'The shortest job first.',
    document: { kind: 'sjf', ageBoundS: 86_400 },
    fields: [AGE_BOUND],
  },
  {
    value: 'first-fit',
    label: 'First fit',
    about: 'In the order of arrival, passing over what does not fit.',
    document: { kind: 'first-fit', ageBoundS: 86_400 },
    fields: [AGE_BOUND],
  },
];

export const GENERAL: readonly Field[] = [
  {
    path: 'maxAttempts',
    label: 'Runs of a job',
    about: 'A job whose run was lost is started again until it has had so many in all.',
    unit: 'runs',
    type: 'whole',
    min: 1,
    max: 100,
  },
  {
    path: 'timers.onDeadlinePassed',
    label: 'A deadline that passes',
    about: 'RECORD notes it, CANCEL ends the job.',
    type: 'choice',
    options: ['RECORD', 'CANCEL'],
  },
  {
    path: 'timers.agentSilentS',
    label: 'A machine is silent after',
    about: 'One whose agent was not heard for so long gets nothing new.',
    unit: 's',
    type: 'number',
    min: 1,
    max: 2_592_000,
  },
  {
    path: 'timers.lostAfterS',
    label: 'Its runs are lost after',
    about: 'After so long without a sign the runs on a silent machine end as lost.',
    unit: 's',
    type: 'number',
    min: 1,
    max: 2_592_000,
  },
  {
    path: 'timers.cycleS',
    label: 'Look again every',
    about: 'Schedulers with waiting jobs look at least so often, in case a wake-up was lost.',
    unit: 's',
    type: 'number',
    min: 1,
    max: 2_592_000,
  },
  {
    path: 'referencePower',
    label: 'Reference power',
    about: 'Run times in the history of job ratios are scaled to a machine of this power.',
    type: 'number',
    min: 0,
    max: 1e9,
  },
  {
    path: 'seed',
    label: 'Seed',
    about: 'Of every draw among equals: the same snapshot, seed and policy give the same plan.',
    type: 'whole',
    min: 0,
    max: 4_294_967_295,
  },
];
