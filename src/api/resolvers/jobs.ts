/** Jobs, their runs, decisions and outputs. */
import {
  type DispatchExplanation,
  describeDispatch,
  describeStart,
  type ReasonCode,
  ranking,
  reasonSentence,
  type StartExplanation,
} from '../../core/index.js';
import { cpusOf, memoryMbOf } from '../../core/model.js';
import { GLOBAL_QUEUE } from '../../core/scheduler.js';
import type { EndCause, JobState } from '../../core/states.js';
import { shownUrl } from '../../platform/urls.js';
import { poolsFrom } from '../../store/images.js';
import type { Retried } from '../../store/retries.js';
import type { Viewer } from '../auth.js';
import type {
  AllocationResolvers,
  CandidateResolvers,
  DecisionResolvers,
  ImageDataResolvers,
  JobConnectionResolvers,
  JobCountResolvers,
  JobFileResolvers,
  JobGraphNodeResolvers,
  JobOutputResolvers,
  JobResolvers,
  JobsPayloadResolvers,
  NeedTermResolvers,
  OutputResolvers,
  PlacementResolvers,
  RerunPayloadResolvers,
  RespectedReservationResolvers,
  RunFileResolvers,
  RunResolvers,
  StagingResolvers,
  SubmitJobsPayloadResolvers,
  TaskResolvers,
  WhyWaitingResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import type { Loaders } from '../loaders.js';
import type { CandidateModel, DecisionModel, Numbers } from '../models.js';
import { reasonOf } from '../reasons.js';
import { amountsShown, partsShown, requestsShown } from '../resources.js';
import { maySeeJob, visibleJob } from '../services/access.js';
import { candidates, imageData } from '../services/explain.js';
import { outputText } from '../services/output.js';

export const Job: JobResolvers = {
  id: (job) => globalId('job', job.id),
  user: (job, _, { loaders }) => loaders.user(job.userId),
  site: (job, _, { loaders }) => (job.siteId === null ? null : loaders.site(job.siteId)),
  foreign: (job, _, { services }) => services.federation.foreignJob(job.id),
  peers: (job, _, { services }) => services.federation.peersOf(job),
  group: (job, _, { loaders }) => (job.groupId === null ? null : loaders.findGroup(job.groupId)),
  originSite: (job, _, { loaders }) => (job.originSiteId === null ? null : loaders.site(job.originSiteId)),
  reservation: (job, _, { loaders }) => (job.reservationId === null ? null : loaders.hold(job.reservationId)),
  scheduler: (job, _, { loaders }) => (job.schedulerId === null ? null : loaders.scheduler(job.schedulerId)),
  path: (job, _, { services }) => services.tree.pathOf(job.id),
  batch: (job, _, { loaders }) => (job.siteId === null ? null : loaders.batch(job.id)),
  environment: (job, _, { viewer }) =>
    maySeeJob(viewer, job) ? Object.entries(job.environment).map(([name, value]) => ({ name, value })) : null,
  resourcesPerTask: ({ resourcesPerTask }) => amountsShown(resourcesPerTask),
  devicesPerTask: ({ devicesPerTask }) => requestsShown(devicesPerTask),
  resources: ({ resources }) => amountsShown(resources),
  cpus: cpusOf,
  memoryMb: memoryMbOf,
  parts: ({ parts }) => partsShown(parts),
  downloads: (job, _, { viewer }) => (job.downloads ?? []).map(withShownUrl(job, viewer)),
  uploads: (job, _, { viewer }) => (job.uploads ?? []).map(withShownUrl(job, viewer)),
  needs: async (job, _, { loaders }) => [...((await loaders.wait(job.id))?.needs ?? [])],
  onUnmet: async (job, _, { loaders }) => (await loaders.wait(job.id))?.onUnmet ?? null,
  notBefore: async (job, _, { loaders }) => (await loaders.wait(job.id))?.notBefore ?? null,
  unmetBecause: async (job, _, context) => {
    const because = (await context.loaders.wait(job.id))?.because ?? null;
    return because === null ? null : visibleJob(because, context);
  },
  neededBy: (job, _, { services, viewer }) => services.jobs.neededBy(viewer, job.id),
  rerunOf: (job, _, context) => (job.rerunOf === null ? null : visibleJob(job.rerunOf, context)),
  rerunAs: async (job, _, context) => {
    const copy = await context.loaders.copy(job.id);
    return copy === null ? null : visibleJob(copy, context);
  },
  runs: ({ id, epoch }, { beforeEpoch }, { loaders }) => {
    if (epoch === 0) return [];
    return beforeEpoch == null ? loaders.runs(id) : loaders.runsBefore(id, beforeEpoch);
  },
  decisions: (job, page, { services }) => services.jobs.decisionsOf(job.id, page),
  events: (job, page, { services }) => services.jobs.eventsOf(job.id, page),
  output: (job, { stream, epoch, task }, { loaders }) =>
    job.epoch === 0 ? null : loaders.output({ jobId: job.id, epoch: epoch ?? null, task, stream }),
  files: (job, { epoch }, { loaders }) =>
    job.epoch === 0 ? [] : loaders.files({ jobId: job.id, epoch: epoch ?? job.epoch }),
  whyWaiting: (job, _, context) => context.services.explain.whyWaiting(job, context),
  expectedStart: async (job, _, context) => (await context.services.explain.startOf(job, context)).startsAt,
  earliestStart: async (job, _, context) =>
    (await context.services.explain.startOf(job, context)).earliestStart,
};

/** What is secret in a URL that its owner has given to a job is shown to nobody else, operators included. */
const withShownUrl =
  (job: { userId: number }, viewer: Viewer) =>
  <T extends { url: string }>(one: T): T =>
    viewer.userId === job.userId ? one : { ...one, url: shownUrl(one.url) };

export const NeedTerm: NeedTermResolvers = {
  job: (term, _, context) => ('job' in term ? visibleJob(term.job, context) : null),
  jobGroup: (term, _, { loaders }) => ('jobGroup' in term ? loaders.findGroup(term.jobGroup) : null),
  group: (term) => ('group' in term ? term.group : null),
};

export const JobGraphNode: JobGraphNodeResolvers = { id: ({ id }) => globalId('job', id) };

export const JobOutput: JobOutputResolvers = {
  keep: ({ dataset }) => (dataset === undefined ? 'SERVICE' : 'DATASET'),
};

export const JobFile: JobFileResolvers = {
  receivedBytes: ({ received }) => received,
  keptUntil: ({ keptAt }, _, { services }) => services.files.keptUntil(keptAt),
  rateMbPerS: ({ beganAt, keptAt, bytes }) =>
    keptAt === null || bytes === 0 ? null : bytes / 1e6 / Math.max(0.001, keptAt - beganAt),
};

export const RunFile: RunFileResolvers = {
  id: ({ id }) => String(id),
  receivedBytes: ({ received }) => received,
};

export const JobConnection: JobConnectionResolvers = {
  totalCount: ({ filter }, _, { services, viewer }) => services.jobs.jobCount(viewer, filter),
};

export const JobCount: JobCountResolvers = {
  state: ({ by, value }) => (by === 'STATE' ? (value as JobState) : null),
  user: ({ by, value }, _, { loaders }) => (by === 'USER' ? loaders.user(Number(value)) : null),
  site: ({ by, value }, _, { loaders }) =>
    by === 'SITE' && value !== null ? loaders.site(Number(value)) : null,
  application: ({ by, value }) => (by === 'APPLICATION' ? value : null),
  cause: ({ by, value }) => (by === 'CAUSE' ? (value as EndCause | null) : null),
  class: ({ by, value }) => (by === 'CLASS' ? value : null),
};

export const Run: RunResolvers = {
  site: (run, _, { loaders }) => loaders.site(run.siteId),
  allocations: (run) =>
    run.machineIds.map((machineId, i) => ({
      ...{ machineId, tasks: run.machineTasks[i] ?? 0, devices: run.devices?.[i] ?? [] },
    })),
  licenses: (run, _, { loaders }) => loaders.licenses(run.licenseIds),
  pools: async ({ licenseIds, licenseAmounts }, _, { loaders }) => {
    const held = poolsFrom(licenseIds, licenseAmounts);
    const pools = await loaders.licenses(held.map(({ id }) => id));
    return pools.map((pool) => ({ pool, amount: held.find(({ id }) => id === pool.id)?.amount ?? 0 }));
  },
  // Runs of releases before have none noted.
  runTimeLimitS: async ({ limitS, jobId }, _, { loaders }) =>
    limitS ?? (await loaders.job(jobId)).runTimeLimitS,
  retry: ({ retry }) => {
    const retried = retry as Retried | null;
    if (retried === null) return null;
    const { rule, memoryMb, ...decision } = retried;
    return { ...decision, rule: rule === null ? null : rule + 1, memoryMbPerTask: memoryMb };
  },
  liveUse: async (run, _, { loaders, services }) =>
    services.liveUse.liveUseOf(run, await loaders.job(run.jobId)),
  staging: ({ jobId, epoch }, _, { loaders }) => loaders.staging({ jobId, epoch }),
  tasks: async (run, page, { loaders, services }) =>
    services.jobs.tasksOf(run, await loaders.job(run.jobId), page),
  steps: (run, page, { loaders, services }) => services.jobs.stepsOf(run, page, loaders),
};

export const Task: TaskResolvers = {
  machine: ({ machineId }, _, { loaders }) => (machineId === null ? null : loaders.machine(machineId)),
  state: ({ startedAt, endedAt }) =>
    endedAt !== null ? 'ENDED' : startedAt !== null ? 'RUNNING' : 'WAITING',
  output: ({ jobId, epoch, index: task }, { stream }, { loaders }) =>
    loaders.output({ jobId, epoch, task, stream }),
};

export const Staging: StagingResolvers = {
  measuredS: ({ beganAt, endedAt }) => (endedAt === null ? null : endedAt - beganAt),
};

export const Output: OutputResolvers = {
  text: (output, { maxBytes }) => outputText(output, maxBytes),
  truncated: ({ bytes, kept }) => kept < bytes,
};

export const Allocation: AllocationResolvers = {
  devices: ({ devices }) => [...(devices ?? [])],
  machine: ({ machineId }, _, { loaders }) => loaders.machine(machineId),
};

export const SubmitJobsPayload: SubmitJobsPayloadResolvers = {
  jobs: ({ ids }, _, { loaders }) => loaders.jobs(ids),
  jobIds: ({ ids }) => ids.map((id) => globalId('job', id)),
};

export const JobsPayload: JobsPayloadResolvers = {
  jobs: ({ ids }, _, { loaders }) => loaders.jobs(ids),
  jobIds: ({ ids }) => ids.map((id) => globalId('job', id)),
};

export const RerunPayload: RerunPayloadResolvers = {
  jobs: ({ ids }, _, { loaders }) => loaders.jobs(ids),
  jobIds: ({ ids }) => ids.map((id) => globalId('job', id)),
  repointedJobIds: ({ repointed }) => repointed.map((id) => globalId('job', id)),
};

export const Decision: DecisionResolvers = {
  id: (decision) => globalId('decision', decision.id),
  job: (decision, _, { loaders }) => loaders.job(decision.jobId),
  reason: ({ reason }) => reasonOf(reason),
  message: (decision, _, { loaders }) => sentenceOf(decision, loaders),
  from: (decision, _, { loaders }) =>
    decision.fromSiteId === null ? null : loaders.site(decision.fromSiteId),
  site: (decision, _, { loaders }) => (decision.siteId === null ? null : loaders.site(decision.siteId)),
  candidates: (decision) => candidatesOf(decision),
  jobTerms: (decision) => {
    const { terms, priorityTerms } = detailOf(decision) as Partial<DispatchExplanation>;
    // The detail of a start has numbers where that of a dispatch has a list of terms.
    return termsOf((decision.kind === 'START' ? (terms as unknown as Numbers) : priorityTerms) ?? {});
  },
  image: async (decision, _, { loaders }) => {
    const detail = detailOf(decision);
    return detail.image === undefined ? null : imageData((await loaders.job(decision.jobId)).image, detail);
  },
  level: (decision) => detailOf(decision).level ?? null,
  queued: (decision) => detailOf(decision).queued ?? null,
  order: (decision) => detailOf(decision).order ?? null,
  orderValue: (decision) => detailOf(decision).orderValue ?? null,
  respected: (decision) => detailOf(decision).reservation ?? null,
};

export const RespectedReservation: RespectedReservationResolvers = {
  job: ({ jobId }, _, context) => visibleJob(jobId, context),
};

export const Candidate: CandidateResolvers = {
  reason: ({ reason }) => reason && reasonOf(reason),
  terms: ({ terms }) => termsOf(terms),
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};

export const ImageData: ImageDataResolvers = {
  sizeMb: ({ known }) => known?.sizeMb ?? null,
  sites: ({ known }, _, { loaders }) => Promise.all((known?.siteIds ?? []).map((id) => loaders.site(id))),
};

export const Placement: PlacementResolvers = {
  site: ({ siteId }, _, { loaders }) => (siteId === null ? null : loaders.site(siteId)),
  jobTerms: ({ jobTerms }) => termsOf(jobTerms),
};

export const WhyWaiting: WhyWaitingResolvers = {
  numbers: ({ numbers }) => termsOf(numbers),
  missing: ({ missing }) => missing ?? [],
};

/** Those that are numbers: what is infinite was not kept. */
const termsOf = (numbers: Numbers): { name: string; value: number }[] =>
  Object.entries(numbers).flatMap(([name, value]) => (Number.isFinite(value) ? [{ name, value }] : []));

/** As the scheduler explained it. */
function detailOf(decision: DecisionModel): Partial<DispatchExplanation & Omit<StartExplanation, 'terms'>> {
  return JSON.parse(decision.detail) as DispatchExplanation;
}

/** What was done, and why: `Dispatched to north: highest rank of all sites for this job`. */
async function sentenceOf(decision: DecisionModel, loaders: Loaders): Promise<string> {
  const reason = decision.reason as ReasonCode;
  const nameOf = async (siteId: number | null): Promise<string> =>
    siteId === null ? GLOBAL_QUEUE : (await loaders.site(siteId)).name;
  switch (decision.kind) {
    case 'DISPATCH': {
      const explanation = detailOf(decision) as DispatchExplanation;
      const why = clause(describeDispatch(reason, explanation).sentence);
      return `Dispatched to ${await nameOf(decision.siteId)}: ${why}`;
    }
    case 'START':
      return `Started: ${clause(describeStart(reason))}`;
    case 'PREEMPT':
      return reasonSentence(reason);
    case 'TAKE_BACK': {
      const why = clause(reasonSentence(reason)).replace(/^the site\b/, await nameOf(decision.fromSiteId));
      return `Returned to the ${GLOBAL_QUEUE}: ${why}`;
    }
  }
}

/** A sentence as it stands behind a colon. */
const clause = (sentence: string): string =>
  sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '');

/** The sites of a dispatch decision as it ranked them; other decisions had none to choose from. */
function candidatesOf(decision: DecisionModel): CandidateModel[] {
  if (decision.kind !== 'DISPATCH') return [];
  return candidates(ranking(decision.siteId, detailOf(decision) as DispatchExplanation));
}
