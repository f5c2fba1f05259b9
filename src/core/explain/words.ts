/** What the numbers of explanations are (`WhyWaiting.numbers`), those apart that are terms of a kind of policy. */
import type { TermWords } from '../described.js';

export const numberWords: TermWords = {
  orderValue: { label: 'Place in the order' },
  reservedInS: { label: 'Reserved start in', unit: 'S' },
  heldOffUntil: { label: 'Held off until', unit: 'AT' },
  reservedAt: { label: 'Reserved start', unit: 'AT' },
  earliestStart: { label: 'Earliest start', unit: 'AT' },
  expectedStart: { label: 'Expected start', unit: 'AT' },
  reservedJob: { label: 'Reserved for', unit: 'JOB' },
  headJob: { label: 'Job at the head', unit: 'JOB' },
  neededCpus: { label: 'CPUs needed', unit: 'CPUS' },
  mostFreeCpus: { label: 'Most on one machine', unit: 'CPUS' },
  neededMemoryMb: { label: 'Memory needed', unit: 'MB' },
  freeMemoryMb: { label: 'Memory free', unit: 'MB' },
  cpusPerTask: { label: 'CPUs for each task', unit: 'CPUS' },
  memoryMbPerTask: { label: 'Memory for each task', unit: 'MB' },
  freeCpus: { label: 'CPUs free', unit: 'CPUS' },
  part: { label: 'Part of the job' },
  partsBefore: { label: 'Parts before it' },
  fitsIfLimitS: { label: 'Would start now with a limit of', unit: 'S' },
  ahead: { label: 'Jobs ahead', unit: 'JOBS' },
  position: { label: 'Place in the queue' },
};
