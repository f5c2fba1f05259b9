import { describe, expect, it } from 'vitest';
import { fieldsOf, LeanJobs } from '../../src/core/lean-jobs.js';
import { type Job, plainJob } from '../../src/core/model.js';

const plain = plainJob({ id: 1, userId: 1, submittedAt: 10.25, estimateS: 60 });
/** Another value of each field, but of those that leave a job as it is. */
const others: Omit<Job, 'data' | 'parts' | 'avoids' | 'promised' | 'workflow'> = {
  id: 2,
  userId: 2,
  userClass: 'GOLD',
  submittedAt: 20.5,
  estimateS: 61.5,
  benchmark: 200,
  deadline: 99,
  tasks: 3,
  cpusPerTask: 4,
  memoryMbPerTask: 512,
  resourcesPerTask: { gpu: 1 },
  devicesPerTask: [],
  tasksPerMachine: { min: 1, max: 2 },
  exclusive: 'MACHINE',
  allAlike: ['cpu'],
  sameSwitch: { maxWaitS: 5 },
  licenses: ['solver'],
  resources: { tokens: 2 },
  os: 'linux',
  architecture: 'x86_64',
  machineConstraint: 'gen > 2',
  image: 'image',
  boost: 7,
  priority: 3,
  runTimeLimitS: 120,
  killGraceS: 5,
  application: 'app',
  project: 'project',
  groupId: 9,
  migratedAt: 30,
  eligibleAt: 20.5,
  dispatchedAt: 31.75,
  preferences: [{ os: 'linux', cpusPerTask: 2 }],
  schedulerId: 4,
  treeMoves: 2,
  reservationId: 6,
  class: 'night',
  preemptionClass: 5,
  restartable: false,
};

describe('lean jobs', () => {
  it('read like the jobs that they are made of, whichever field differs from jobs before', () => {
    const lean = new LeanJobs();
    const jobs: Job[] = [plain];
    for (const [name, value] of Object.entries(others)) jobs.push({ ...plain, [name]: value });
    const made = jobs.map((job) => lean.of(job));
    made.forEach((one, i) => {
      expect(fieldsOf(one)).toEqual(jobs[i]);
      for (const name of Object.keys(plain) as (keyof Job)[])
        expect(one[name], name).toEqual(jobs[i]?.[name]);
    });
  });

  it('have few fields of their own, and share the rest', () => {
    const lean = new LeanJobs();
    const [a, b] = [1, 2].map((id) => lean.of({ ...plain, id, licenses: ['solver'] }));
    expect(Object.keys(a as Job).length).toBeLessThan(12);
    expect(a?.licenses).toBe(b?.licenses);
    expect(lean.of(a as Job)).toBe(a);
  });

  it('stay as they are where they are like no other', () => {
    const job = { ...plain, workflow: { since: 1, rankS: 2, place: 3 } } as Job;
    expect(new LeanJobs().of(job)).toBe(job);
  });

  it('are right behind more different ones than are kept', () => {
    const lean = new LeanJobs();
    const wrong: Job[] = [];
    for (let i = 0; i < 30_000; i++) {
      const job = { ...plain, id: i, application: `app-${i % 15_000}`, killGraceS: i % 7 };
      const made = lean.of(job);
      if (made.id !== i || made.application !== job.application || made.killGraceS !== i % 7) wrong.push(job);
    }
    expect(wrong).toEqual([]);
  });
});
