/** The names of terms and numbers in decisions and explanations, in words, with their units. */
import { count, duration, figure, megabytes, moment, named } from '../../ui/format';
import type { MeasurementMethod } from './job.gql';

export interface Term {
  label: string;
  about?: string;
  unit?: 's' | 'jobs' | 'CPUs' | 'share' | 'at' | 'MB' | 'job';
  /** Which value a policy prefers. */
  better?: 'low' | 'high';
}

const TERMS: Record<string, Term> = {
  load: {
    label: 'Load',
    about: 'Work queued there with the job’s priority or above: estimate × benchmark',
    better: 'low',
  },
  ordering: {
    label: 'Ordering',
    about: 'Jobs queued there with the job’s priority or above',
    unit: 'jobs',
    better: 'low',
  },
  total: {
    label: 'Total cost',
    about: 'Network, computation and data, weighted by the kind of job',
    unit: 's',
    better: 'low',
  },
  network: { label: 'Network', about: 'Cost of moving the sandbox', unit: 's', better: 'low' },
  computation: {
    label: 'Computation',
    about: 'Cost of what is ahead, the run and the load',
    unit: 's',
    better: 'low',
  },
  data: { label: 'Data', about: 'Cost of moving inputs and output', unit: 's', better: 'low' },
  rank: {
    label: 'Rank',
    about: 'Power and data access weighted by the job ratio, and the queue',
    better: 'high',
  },
  ppr: { label: 'Power', about: 'The site’s share of all power (PPR)', better: 'high' },
  dpr: { label: 'Data', about: 'One less the site’s share of all data access cost (DPR)', better: 'high' },
  qr: { label: 'Queue', about: 'One less the site’s share of all queued jobs (QR)', better: 'high' },
  dataAccessCost: { label: 'Data access', about: 'Time to bring the inputs there', unit: 's', better: 'low' },
  room: { label: 'Room', about: 'Jobs that its queue still takes', unit: 'jobs', better: 'high' },
  waits: { label: 'Would wait', about: '0: it can start there at once', better: 'low' },
  queued: { label: 'Queued', about: 'Jobs in its queue', unit: 'jobs', better: 'low' },
  running: { label: 'Running', about: 'Jobs that run there', unit: 'jobs', better: 'low' },
  power: { label: 'Power', about: 'CPUs × benchmark of its available machines', better: 'high' },
  queueLength: { label: 'Queue', about: 'Jobs in its meta-queue', unit: 'jobs', better: 'low' },
  jobsAhead: { label: 'Ahead', about: 'Jobs ahead of the group there', unit: 'jobs', better: 'low' },
  deadline: { label: 'Deadline' },
  licenses: { label: 'Licenses' },
  user: { label: 'User class' },
  aging: { label: 'Aging' },
  waitMinimization: { label: 'Shortness' },
  orderValue: { label: 'Place in the order' },
  dataIntensive: { label: 'Share of data access', unit: 'share' },
  reservedInS: { label: 'Reserved start in', unit: 's' },
  heldOffUntil: { label: 'Held off until', unit: 'at' },
  reservedJob: { label: 'Reserved for', unit: 'job' },
  headJob: { label: 'Job at the head', unit: 'job' },
  neededCpus: { label: 'CPUs needed', unit: 'CPUs' },
  mostFreeCpus: { label: 'Most on one machine', unit: 'CPUs' },
  neededMemoryMb: { label: 'Memory needed', unit: 'MB' },
  freeMemoryMb: { label: 'Memory free', unit: 'MB' },
  cpusPerTask: { label: 'CPUs for each task', unit: 'CPUs' },
  memoryMbPerTask: { label: 'Memory for each task', unit: 'MB' },
  freeCpus: { label: 'CPUs free', unit: 'CPUs' },
  ahead: { label: 'Jobs ahead', unit: 'jobs' },
  position: { label: 'Place in the queue' },
};

/** Numbers that only name something which is shown beside them. */
export const SILENT: ReadonlySet<string> = new Set(['siteId', 'bestSiteId']);

export function termOf(name: string): Term {
  const known = TERMS[name];
  if (known) return known;
  const { label, unit } = named(name);
  const seconds = /At$|Until$/.test(name);
  return { label, ...(seconds ? { unit: 'at' as const } : unit === 's' || unit === 'MB' ? { unit } : {}) };
}

export function termText({ unit }: Term, value: number): string {
  switch (unit) {
    case 's':
      return duration(value);
    case 'at':
      return moment(value * 1000);
    case 'share':
      return `${Math.round(value * 100)} %`;
    case 'job':
      return `job ${value}`;
    case 'MB':
      return megabytes(value);
    case 'jobs':
    case 'CPUs':
      return count(value);
    default:
      return figure(value);
  }
}

/** How an agent measured something. */
export const METHODS: Record<MeasurementMethod, string> = {
  CGROUP: 'by its control group',
  DELAY_ACCOUNTING: 'by delay accounting',
  PROC: 'by process accounting',
  SAMPLES: 'by samples',
  SIMULATED: 'simulated',
};
