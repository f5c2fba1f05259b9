/**
 * How JBMS fills its batches (AL-Khateeb et al., "Job Batcher", steps 1 and 2; exact rules: job-ratio.md): the jobs that one
 * round gives to a site are its batch.
 */
export class Batcher {
  /** For each site, how many more jobs its batch can have (10). */
  constructor(readonly room: number[]) {}

  /** The next job in order of arrival: the first of these sites, best first, that has room; -1: none has. */
  siteFor(ranked: Iterable<number>): number {
    for (const site of ranked) if ((this.room[site] as number) > 0) return site;
    return -1;
  }

  /** The job goes there: one place less. */
  take(site: number): void {
    (this.room[site] as number) -= 1;
  }
}
