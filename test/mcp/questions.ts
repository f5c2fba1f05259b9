/** Questions that people ask of jobs, as the calls that answer them. */
import { expect } from 'vitest';
import type { Service } from '../cli/service.js';
import type { Data } from './answers.js';

interface Step {
  name: string;
  input: Record<string, unknown>;
}

interface Question {
  question: string;
  /** What there must be; it gives what the steps need, such as an id. */
  prepare?: (service: Service) => Promise<string>;
  /** Of each call what it asks, from what was prepared and the data of the call before. */
  steps: ((prepared: string | undefined, before: Data) => Step)[];
  /** The data of the last one. */
  expected: Record<string, unknown>;
}

const submitted =
  (...args: string[]) =>
  async (service: Service): Promise<string> =>
    (await service.cli('submit', ...args)).stdout.trim().split('\n')[0]!;
const one = (name: string, input: Record<string, unknown> = {}) => [() => ({ name, input })];
const ofJob =
  (name: string, input: Record<string, unknown> = {}) =>
  (id: string | undefined) => ({
    name,
    input: { id, ...input },
  });
const some = (value: object) => expect.arrayContaining([expect.objectContaining(value)]);
/** More than there is. */
const HUGE = 90_000;

export const QUESTIONS: readonly Question[] = [
  {
    question: 'Which sites are there?',
    steps: one('find_sites'),
    expected: { sites: some({ name: 'local', state: 'UP' }) },
  },
  {
    question: 'Where is a GPU free?',
    steps: one('find_sites', { resource: 'fpga' }),
    expected: { sites: [] },
  },
  {
    question: 'Where are two free CPUs, or one?',
    steps: one('find_sites', { minFreeCpus: 0 }),
    expected: { sites: some({ name: 'local', freeCpus: expect.any(Number) }) },
  },
  {
    question: 'Where would a job with one CPU start?',
    steps: one('estimate_start', { command: 'true', cpusPerTask: 1 }),
    expected: { site: 'local', sites: some({ site: 'local', eligible: true }) },
  },
  {
    question: 'Could a job with very many CPUs ever start?',
    steps: one('estimate_start', { command: 'true', cpusPerTask: HUGE }),
    expected: { message: expect.any(String), sites: some({ site: 'local', eligible: false }) },
  },
  {
    question: 'Did my last job work?',
    prepare: submitted('--wait', '--name', 'last one', '--', 'true'),
    steps: one('find_jobs', { mine: true }),
    expected: { jobs: some({ name: 'last one', state: 'COMPLETED' }) },
  },
  {
    question: 'What failed today?',
    prepare: submitted('--wait', '--name', 'broken', '--', 'false'),
    steps: one('find_jobs', { states: ['FAILED'], endedAfter: '2020-01-01T00:00:00Z' }),
    expected: { jobs: some({ name: 'broken', cause: 'EXITED_NONZERO', exitCode: 1 }) },
  },
  {
    question: 'Why did this job fail, and what did it say?',
    prepare: submitted('--wait', '--', 'sh', '-c', 'echo no such file >&2; exit 3'),
    steps: [ofJob('find_jobs'), ofJob('read_output', { stream: 'STDERR' })],
    expected: { text: 'no such file\n' },
  },
  {
    question: 'How many jobs of this group are done?',
    prepare: submitted('--wait', '--group', 'sweep', '--array', '1-3', '--', 'true'),
    steps: one('find_jobs', { groupName: 'sweep', states: ['COMPLETED'] }),
    expected: { total: 3 },
  },
  {
    question: 'What is the end of the output of this job?',
    prepare: submitted('--wait', '--', 'sh', '-c', 'seq 100000'),
    steps: [ofJob('read_output')],
    expected: { text: expect.stringMatching(/99999\n100000\n$/) },
  },
  {
    question: 'And what is before that?',
    prepare: submitted('--wait', '--', 'sh', '-c', 'seq 2000'),
    steps: [ofJob('read_output'), (id, { from }) => ({ name: 'read_output', input: { id, before: from } })],
    expected: { to: expect.any(Number), text: expect.stringMatching(/\n1[0-9]{3}\n/) },
  },
  {
    question: 'Why does this job wait?',
    prepare: submitted('--allow-unfit', '--cpus', String(HUGE), '--', 'true'),
    steps: [ofJob('explain_wait')],
    expected: { whyWaiting: { code: expect.stringMatching(/./), message: expect.any(String) } },
  },
  {
    question: 'When will this held job start?',
    prepare: submitted('--hold', '--', 'true'),
    steps: [ofJob('find_jobs'), ofJob('explain_wait')],
    expected: { state: 'HELD', whyWaiting: { message: expect.any(String) } },
  },
  {
    question: 'What does this job wait for?',
    prepare: async (service) => {
      const first = await submitted('--hold', '--', 'true')(service);
      return submitted('--after', first, '--', 'true')(service);
    },
    steps: [ofJob('explain_wait')],
    expected: { state: 'BLOCKED', whyWaiting: { missing: some({ term: expect.anything() }) } },
  },
  {
    question: 'Why did this job go to that site?',
    prepare: submitted('--wait', '--', 'true'),
    steps: [ofJob('explain_decision')],
    expected: { decisions: some({ kind: 'DISPATCH', site: 'local' }) },
  },
  {
    question: 'Which application uses the most?',
    prepare: submitted('--wait', '--application', 'solver', '--', 'true'),
    steps: one('usage', { by: 'APPLICATION' }),
    expected: { usage: some({ application: 'solver' }) },
  },
  {
    question: 'Who uses how much?',
    steps: one('usage', { by: 'USER' }),
    expected: { usage: some({ user: 'admin' }) },
  },
  {
    question: 'Tell me when it has ended, and what it said.',
    prepare: submitted('--', 'sh', '-c', 'echo done'),
    steps: [ofJob('wait_for_job'), ofJob('read_output')],
    expected: { state: 'COMPLETED', text: 'done\n' },
  },
  {
    question: 'Is it there yet? Do not wait long.',
    prepare: submitted('--hold', '--', 'true'),
    steps: [ofJob('wait_for_job', { seconds: 0.2 })],
    expected: { reached: false, job: { state: 'HELD' } },
  },
  {
    question: 'How do I submit an array of jobs?',
    steps: one('search_docs', { query: 'submit array of jobs' }),
    expected: {
      sections: some({ page: expect.stringMatching(/^docs\//), text: expect.stringMatching(/array/i) }),
    },
  },
];
