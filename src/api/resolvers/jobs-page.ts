/** Pages of jobs, read no wider than they are asked for. */
import type { GraphQLResolveInfo } from 'graphql';
import type { JobRow } from '../../store/rows.js';
import { jobColumns } from '../columns.js';
import type { Context } from '../context.js';
import type { QueryJobsArgs } from '../generated/types.js';
import type { Loaders } from '../loaders.js';
import type { JobConnectionModel } from '../models.js';

export async function jobsPage(
  options: QueryJobsArgs,
  { services, viewer, loaders }: Context,
  info: GraphQLResolveInfo,
): Promise<JobConnectionModel> {
  const columns = jobColumns(info);
  const page = await services.jobs.jobs(viewer, options, columns);
  await preload(page.nodes, columns, loaders);
  return { ...page, filter: options.filter ?? null };
}

/** Loads what all jobs of a page name, so that none of them has to wait for it. */
async function preload(
  jobs: readonly JobRow[],
  columns: readonly (keyof JobRow)[],
  loaders: Loaders,
): Promise<void> {
  const users = columns.includes('userId') ? new Set(jobs.map((job) => job.userId)) : [];
  const sites = columns.includes('siteId') ? new Set(jobs.map((job) => job.siteId)) : [];
  await Promise.all([
    ...[...users].map((id) => loaders.user(id)),
    ...[...sites].map((id) => (id === null ? null : loaders.site(id))),
  ]);
}
