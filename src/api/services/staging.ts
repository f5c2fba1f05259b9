/** Bringing input data to runs: where their agents can have them from, and how far they are. */
import { basename } from 'node:path/posix';
import { DataCatalog, sendS, UNKNOWN_LINK } from '../../core/data/catalog.js';
import type { JobInput, KeptOutput, Link } from '../../core/model.js';
import { MAX } from '../../platform/limits.js';
import type { StagingReport } from '../../store/directory.js';
import { type KeptFile, outputKey } from '../../store/files.js';
import type { Queries } from '../../store/queries.js';
import type { DatasetRow } from '../../store/rows.js';
import type { Assignment } from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { atMost, within } from '../check.js';
import { badInput } from '../errors.js';
import type { AssignedCheckpoint, AssignedInput, StagingReportInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { guarded, ownSite } from './access.js';
import { done, type ServiceParts } from './parts.js';

export function createStagingService({ queries, directory, limits }: ServiceParts) {
  /** What bringing its inputs to each run was reckoned to take, before anything of it was reported. */
  async function predictions(
    siteId: number,
    runs: readonly { jobId: number; epoch: number }[],
  ): Promise<(run: { jobId: number; epoch: number }) => number> {
    const known = new Set((await queries.stagings(runs)).map(keyOf));
    const jobs = await queries.jobsByIds(
      runs.filter((run) => !known.has(keyOf(run))).map(({ jobId }) => jobId),
    );
    const datasets = await stageable(
      queries,
      jobs.flatMap((job) => datasetsOf(job)),
    );
    const catalog = new DataCatalog();
    for (const dataset of datasets.values()) catalog.setDataset(dataset);
    const inputsOf = ({ inputs }: Pick<Assignment, 'inputs'>): readonly JobInput[] =>
      inputs.filter((input) =>
        'datasetId' in input ? datasets.has(input.datasetId) : input.from !== undefined,
      );
    const keptAt = jobs.flatMap((job) => inputsOf(job).flatMap((one) => ('siteId' in one ? one.siteId : [])));
    for (const link of await linksTo(queries, siteId, [...sitesOf(datasets), ...keptAt]))
      catalog.setLink(link);
    const seconds = new Map(
      jobs.map((job) => {
        const inputs = inputsOf(job);
        const data = { sandboxMb: 0, outputMb: 0, inputs, originSiteId: null, computationShare: null };
        return [job.id, catalog.accessS({ data, image: null }, siteId)];
      }),
    );
    return ({ jobId }) => seconds.get(jobId) ?? 0;
  }

  return guarded({
    async reportStaging(
      viewer: Viewer,
      site: string,
      inputs: readonly StagingReportInput[],
    ): Promise<boolean[]> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      atMost('reports', inputs, limits.reportsMax);
      if (inputs.length === 0) return [];
      const told = inputs.map(stagingReport);
      // The last report of a run counts.
      const reports = [...new Map(told.map((report) => [keyOf(report), report])).values()];
      const predictedS = await predictions(siteId, reports);
      const found = done(
        await directory.reportStagings(
          siteId,
          reports.map((report) => ({ ...report, predictedS: predictedS(report) })),
        ),
      );
      const there = new Set(found.map(keyOf));
      return told.map((report) => there.has(keyOf(report)));
    },
  });
}

const keyOf = ({ jobId, epoch }: { jobId: number; epoch: number }): string => `${jobId}/${epoch}`;

function stagingReport(input: StagingReportInput, index: number): Omit<StagingReport, 'predictedS'> {
  const field = (name: string): string => `reports[${index}].${name}`;
  if (input.epoch < 1) throw badInput(field('epoch'), input.epoch, '1 or more');
  const beganAt = input.beganAt.getTime() / 1000;
  return {
    jobId: localId('job', input.job, field('job')),
    epoch: input.epoch,
    token: input.token ?? null,
    beganAt,
    endedAt: input.endedAt ? Math.max(beganAt, input.endedAt.getTime() / 1000) : null,
    totalMb: within(field('totalMb'), input.totalMb, 0, STAGED_MB),
    movedMb: within(field('movedMb'), input.movedMb, 0, STAGED_MB),
    error: input.error?.slice(0, MAX.messageChars) ?? null,
  };
}

/** A hundred inputs of the largest size. */
const STAGED_MB = 100 * MAX.sizeMb;

/** What agents have to bring to these runs at a site, by job. */
export async function assignedInputs(
  queries: Queries,
  siteId: number,
  runs: readonly Pick<Assignment, 'jobId' | 'state' | 'inputs' | 'foreignInputs'>[],
): Promise<(jobId: number) => AssignedInput[]> {
  const starting = runs.filter(
    ({ state, inputs, foreignInputs }) =>
      state === 'ASSIGNED' && (inputs.length > 0 || foreignInputs !== null),
  );
  if (starting.length === 0) return () => [];
  const datasets = await stageable(queries, starting.flatMap(datasetsOf));
  const files = await queries.keptOutputs(
    starting.flatMap(({ inputs }) => inputs.flatMap(({ from }) => from ?? [])),
  );
  const links = new Map(
    (await linksTo(queries, siteId, sitesOf(datasets))).map((link) => [link.fromSiteId, link]),
  );
  const peers = starting.flatMap(({ foreignInputs }) => (foreignInputs ? [foreignInputs.siteId] : []));
  const keptAt = [...files.values()].flatMap((kept) => ('siteId' in kept ? kept.siteId : []));
  const sites = new Map(
    (await queries.sitesByIds([...new Set([...sitesOf(datasets), ...peers, ...keptAt])])).map(
      ({ id, name }) => [id, name],
    ),
  );
  const byJob = new Map(
    starting.map(({ jobId, inputs, foreignInputs }) => [
      jobId,
      foreignInputs !== null
        ? foreignInputs.inputs.map(({ urls, ...input }) => {
            const site = sites.get(foreignInputs.siteId) ?? '';
            return { ...input, sources: urls.map((location) => ({ site, location })) };
          })
        : inputs.flatMap((input, i) => {
            const dataset = 'datasetId' in input ? datasets.get(input.datasetId) : undefined;
            if (dataset) return [assignedInput(dataset, i + 1)];
            const kept = input.from && files.get(outputKey(input.from));
            if (!kept || !('id' in kept)) return [];
            return [assignedFile((input.from as KeptOutput).path, kept, i + 1, sites.get(kept.siteId))];
          }),
    ]),
  );
  return (jobId) => byJob.get(jobId) ?? [];

  function assignedInput({ id, name, sizeMb, sha256, locations }: DatasetRow, place: number): AssignedInput {
    const costS = (from: number): number =>
      from === siteId ? -1 : sendS(links.get(from) ?? UNKNOWN_LINK, sizeMb);
    const sources = [...locations]
      .sort((a, b) => costS(a.siteId) - costS(b.siteId) || a.siteId - b.siteId)
      .flatMap(({ siteId: at, location }) => {
        const site = sites.get(at);
        return site === undefined ? [] : [{ site, location }];
      })
      .slice(0, MAX.sources);
    return { place, dataset: globalId('dataset', id), name, sizeMb, sha256, sources };
  }
}

/** The service has it, wherever the job ran that made it. */
function assignedFile(
  path: string,
  { id, sizeMb, sha256 }: Extract<KeptFile, { id: number }>,
  place: number,
  site = '',
): AssignedInput {
  const sources = [{ site, location: `switchyard:/files/${id}` }];
  return { place, dataset: `file_${id}`, name: basename(path), sizeMb, sha256, sources };
}

/** What these runs are to keep for the next one of their job, and what an earlier one has left. */
export async function assignedCheckpoints(
  queries: Queries,
  runs: readonly Pick<Assignment, 'jobId' | 'epoch' | 'state' | 'checkpoint'>[],
): Promise<
  (
    run: Pick<Assignment, 'jobId' | 'checkpoint' | 'tasks' | 'launch'>,
    /** Of the agent. */
    parts: readonly { firstTask: number; tasks: number }[],
  ) => AssignedCheckpoint | null
> {
  const starting = runs.flatMap(({ jobId, epoch, state, checkpoint }) =>
    checkpoint && state === 'ASSIGNED' && epoch > 1 ? [{ jobId, epoch, path: checkpoint.path }] : [],
  );
  const left = await queries.keptCheckpoints(starting);
  const siteIds = [...new Set([...left.values()].flat().map(({ siteId }) => siteId))];
  const sites = siteIds.length === 0 ? [] : await queries.sitesByIds(siteIds);
  const names = new Map(sites.map(({ id, name }) => [id, name]));
  return ({ jobId, checkpoint, tasks, launch }, parts) => {
    if (checkpoint === null) return null;
    const kept = (left.get(jobId) ?? []).map(({ task, ...file }) => ({
      task,
      from: assignedFile(checkpoint.path, file, 0, names.get(file.siteId)),
    }));
    if (tasks === 1 || launch === 'ONCE') return { ...checkpoint, from: kept[0]?.from ?? null, ofTasks: [] };
    const isHere = (task: number): boolean =>
      parts.some(({ firstTask, tasks: here }) => firstTask <= task && task < firstTask + here);
    return { ...checkpoint, from: null, ofTasks: kept.filter(({ task }) => isHere(task)) };
  };
}

const datasetsOf = ({ inputs }: Pick<Assignment, 'inputs'>): { datasetId: number }[] =>
  inputs.filter((input) => 'datasetId' in input);

/** Those in service that have a known location. */
async function stageable(
  queries: Queries,
  wanted: readonly { datasetId: number }[],
): Promise<Map<number, DatasetRow>> {
  const ids = [...new Set(wanted.map(({ datasetId }) => datasetId))];
  const found = ids.length === 0 ? [] : await queries.datasetsByIds(ids);
  return new Map(
    found
      .filter(({ removedAt, locations }) => removedAt === null && locations.length > 0)
      .map((dataset) => [dataset.id, dataset]),
  );
}

const sitesOf = (datasets: ReadonlyMap<number, DatasetRow>): number[] => [
  ...new Set([...datasets.values()].flatMap(({ siteIds }) => siteIds)),
];

/** The links to a site from these. */
async function linksTo(queries: Queries, toSiteId: number, fromSiteIds: readonly number[]): Promise<Link[]> {
  const from = new Set(fromSiteIds);
  if (from.size === 0) return [];
  const links = await queries.links({ toSiteId }, null, MAX.links);
  return links.filter(({ fromSiteId }) => from.has(fromSiteId));
}
