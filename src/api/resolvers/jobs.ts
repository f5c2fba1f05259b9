/** Jobs, their runs, decisions and outputs. */
import {
  type DispatchExplanation,
  describeDispatch,
  describeStart,
  type ReasonCode,
  ranking,
  reasonSentence,
} from '../../core/index.js';
import { GLOBAL_QUEUE } from '../../core/scheduler.js';
import type {
  AllocationResolvers,
  CandidateResolvers,
  DecisionResolvers,
  JobConnectionResolvers,
  JobResolvers,
  JobsPayloadResolvers,
  OutputResolvers,
  PlacementResolvers,
  RunResolvers,
  SubmitJobsPayloadResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import type { Loaders } from '../loaders.js';
import type { CandidateModel, DecisionModel } from '../models.js';
import { handlesAll, maySeeJob } from '../services/access.js';
import { candidates } from '../services/explain.js';

export const Job: JobResolvers = {
  id: (job) => globalId('job', job.id),
  user: (job, _, { loaders }) => loaders.user(job.userId),
  site: (job, _, { loaders }) => (job.siteId === null ? null : loaders.site(job.siteId)),
  group: (job, _, { loaders }) => (job.groupId === null ? null : loaders.findGroup(job.groupId)),
  originSite: (job, _, { loaders }) => (job.originSiteId === null ? null : loaders.site(job.originSiteId)),
  scheduler: (job, _, { loaders }) => (job.schedulerId === null ? null : loaders.scheduler(job.schedulerId)),
  path: (job, _, { services }) => services.tree.pathOf(job.id),
  batch: (job, _, { loaders }) => (job.siteId === null ? null : loaders.batch(job.id)),
  environment: (job, _, { viewer }) => (maySeeJob(viewer, job) ? job.environment : null),
  runs: (job, _, { loaders }) => (job.epoch === 0 ? [] : loaders.runs(job.id)),
  decisions: (job, page, { services }) => services.jobs.decisionsOf(job.id, page),
  events: (job, page, { services }) => services.jobs.eventsOf(job.id, page),
  output: (job, { stream, epoch }, { loaders }) =>
    job.epoch === 0 ? null : loaders.output({ jobId: job.id, epoch: epoch ?? null, stream }),
  whyWaiting: (job, _, context) => context.services.explain.whyWaiting(job, context),
  expectedStart: (job, _, context) => context.services.explain.expectedStart(job, context),
};

export const JobConnection: JobConnectionResolvers = {
  totalCount: ({ filter }, _, { services, viewer }) => services.jobs.jobCount(viewer, filter),
};

export const Run: RunResolvers = {
  site: (run, _, { loaders }) => loaders.site(run.siteId),
  allocations: (run) =>
    run.machineIds.map((machineId, i) => ({ machineId, tasks: run.machineTasks[i] ?? 0 })),
  licenses: (run, _, { loaders }) => loaders.licenses(run.licenseIds),
};

export const Output: OutputResolvers = {
  text: (output) => output.body,
};

export const Allocation: AllocationResolvers = {
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

export const Decision: DecisionResolvers = {
  id: (decision) => globalId('decision', decision.id),
  job: (decision, _, { loaders }) => loaders.job(decision.jobId),
  message: (decision, _, { loaders }) => sentenceOf(decision, loaders),
  from: (decision, _, { loaders }) =>
    decision.fromSiteId === null ? null : loaders.site(decision.fromSiteId),
  site: (decision, _, { loaders }) => (decision.siteId === null ? null : loaders.site(decision.siteId)),
  candidates: (decision) => candidatesOf(decision),
  detail: (decision, _, { viewer }) => detailFor(decision, handlesAll(viewer)),
};

export const Candidate: CandidateResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};

export const Placement: PlacementResolvers = {
  site: ({ siteId }, _, { loaders }) => (siteId === null ? null : loaders.site(siteId)),
};

function detailOf(decision: DecisionModel): Record<string, unknown> {
  return JSON.parse(decision.detail) as Record<string, unknown>;
}

/** The job whose reservation was respected may be another user's. */
function detailFor(decision: DecisionModel, mayKnow: boolean): Record<string, unknown> {
  const detail = detailOf(decision);
  const reservation = detail.reservation as { jobId: number; at: number } | null | undefined;
  return mayKnow || !reservation ? detail : { ...detail, reservation: { at: reservation.at } };
}

/** What was done, and why: `Dispatched to north: highest rank of all sites for this job`. */
async function sentenceOf(decision: DecisionModel, loaders: Loaders): Promise<string> {
  const reason = decision.reason as ReasonCode;
  const nameOf = async (siteId: number | null): Promise<string> =>
    siteId === null ? GLOBAL_QUEUE : (await loaders.site(siteId)).name;
  switch (decision.kind) {
    case 'DISPATCH': {
      const explanation = detailOf(decision) as unknown as DispatchExplanation;
      const why = clause(describeDispatch(reason, explanation).sentence);
      return `Dispatched to ${await nameOf(decision.siteId)}: ${why}`;
    }
    case 'START':
      return `Started: ${clause(describeStart(reason))}`;
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
  return candidates(ranking(decision.siteId, detailOf(decision) as unknown as DispatchExplanation));
}
