/** The job of the page, and its words. */
import type { JobPageQuery, MeasurementMethod } from './job.gql';

export type Job = NonNullable<JobPageQuery['job']>;

/** Numbers that only name something which is shown beside them. */
export const SILENT: ReadonlySet<string> = new Set(['siteId', 'bestSiteId']);

/** How an agent measured something. */
export const METHODS: Record<MeasurementMethod, string> = {
  CGROUP: 'by its control group',
  DELAY_ACCOUNTING: 'by delay accounting',
  PROC: 'by process accounting',
  SAMPLES: 'by samples',
  SCHEDULER: "by the site's scheduler",
  SIMULATED: 'simulated',
};
