import { type Allocation, envelopeOf, type JobPart } from '../../src/core/model.js';
import type { NewJob } from '../../src/store/store.js';

/** A job as a client submits it who gives nothing but the command. Every field is named: a new one is missed here by the compiler. */
export const PLAIN_JOB: NewJob = {
  ...{ name: null, application: 'app', project: null, groupName: null, arrayIndex: null },
  ...{ command: 'true', arguments: [], environment: {}, workingDirectory: null },
  ...{
    tasks: 1,
    cpusPerTask: 1,
    memoryMbPerTask: 0,
    resourcesPerTask: null,
    devicesPerTask: null,
    tasksPerMachine: null,
    exclusive: null,
    allAlike: null,
    sameSwitch: null,
    parts: null,
    machineConstraint: null,
    image: null,
    terminal: null,
    siteTerms: null,
    checkpoint: null,
    licenses: [],
    resources: null,
    os: null,
    architecture: null,
  },
  ...{ estimateS: 100, benchmark: 100, runTimeLimitS: null, deadline: null },
  ...{ warnS: null, warnSignal: 'SIGTERM', killGraceS: 30 },
  ...{ sandboxMb: 0, outputMb: 0, inputs: [], originSiteId: null, outputs: [], computationShare: null },
  ...{ downloads: null, uploads: null },
  ...{ preferences: [], restartable: true, retry: null, launch: 'EVERY_TASK', onTaskFailure: 'END_ALL' },
  ...{
    simulatedRunS: null,
    simulatedIoS: null,
    mail: null,
    reservationId: null,
    boost: 0,
    class: null,
    charged: true,
    preemptionClass: 0,
    held: false,
  },
};

/** A part that asks for one CPU. */
export const PLAIN_PART: JobPart = {
  ...{ tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0, resourcesPerTask: null, tasksPerMachine: null },
  ...{ exclusive: null, allAlike: null, machineConstraint: null },
};

/** What a job of these parts has. */
export function withParts(given: readonly Partial<JobPart>[]) {
  const parts = given.map((part): JobPart => ({ ...PLAIN_PART, ...part }));
  const none = { tasksPerMachine: null, exclusive: null, allAlike: null, machineConstraint: null };
  return { ...envelopeOf(parts), ...none, parts };
}

/** What a job has on its machines, with what each of its tasks there asks for: a job without parts is one of itself. */
export function placedParts(
  job: JobPart & { readonly parts: readonly JobPart[] | null },
  allocations: readonly Allocation[],
) {
  const parts = job.parts ?? [job];
  let at = 0;
  let left = parts[0]?.tasks ?? 0;
  return allocations.map((allocation) => {
    if (left <= 0) left = parts[++at]?.tasks ?? 0;
    left -= allocation.tasks;
    return { ...allocation, part: parts[at] as JobPart, at, left };
  });
}
