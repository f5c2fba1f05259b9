/**
 * Conservative backfilling promises the earliest start that there is. Asked of each plan by counting plainly, on the machines that it has chosen:
 * beside the runs, the starts and all other promises, a new promise could not begin earlier, and one that moved back did not have to.
 * Only jobs of one task that ask nothing of pools and have neighbors, are looked at; beside runs that are late nobody can tell.
 */
import { asksPools, type Grid, type PromisesImage, type Start } from '../../src/core/index.js';
import { placedParts } from '../support/plain-job.js';

/** What clocks and rounding take, seconds. */
const SLACK_S = 1;

interface Taken {
  machineId: number;
  cpus: number;
  memoryMb: number;
  resources: Readonly<Record<string, number>>;
  from: number;
  to: number;
}

/** What is promised later than it had to be; null: nothing. */
export function promisedLate(
  grid: Grid,
  siteId: number,
  now: number,
  starts: readonly Start[],
  before: PromisesImage | null,
  after: PromisesImage,
): string | null {
  const entry = grid.sites.find(({ site }) => site.id === siteId);
  if (entry === undefined) return null;
  const machines = new Map(entry.resources.machines.map(({ machine }) => [machine.id, machine]));
  const taken: Taken[] = [];
  const take = (
    jobId: number,
    allocations: readonly { machineId: number; tasks: number }[],
    from: number,
    to: number,
  ): void => {
    for (const { machineId, tasks, part } of placedParts(grid.job(jobId)!, allocations)) {
      const { cpusPerTask, memoryMbPerTask, resourcesPerTask, exclusive } = part;
      const cpus = exclusive === null ? tasks * cpusPerTask : machines.get(machineId)!.cpus;
      const resources = Object.fromEntries(
        Object.entries(resourcesPerTask ?? {}).map(([name, amount]) => [name, tasks * amount]),
      );
      taken.push({
        ...{ machineId, cpus, memoryMb: tasks * memoryMbPerTask, resources },
        ...{ from, to },
      });
    }
  };
  for (const { run } of entry.resources.runs) take(run.jobId, run.allocations, -Infinity, run.plannedEnd);
  for (const { jobId, allocations, plannedDuration } of starts)
    take(jobId, allocations, now, now + plannedDuration);
  const promises = after.jobs.filter(({ jobId }) => !starts.some((start) => start.jobId === jobId));
  const lengthOf = ({ work, allocations }: PromisesImage['jobs'][number]): number =>
    work / Math.min(...allocations.map(({ machineId }) => machines.get(machineId)!.benchmark));
  for (const one of promises) take(one.jobId, one.allocations, one.at, one.at + lengthOf(one));

  const known = new Map(before?.jobs.map(({ jobId, at }) => [jobId, at]));
  // What another has left behind it is offered by the next plan.
  const someMovedUp = promises.some(({ jobId, at }) => at < (known.get(jobId) ?? at));
  for (const promise of promises) {
    const { jobId, at, allocations } = promise;
    const job = grid.job(jobId)!;
    const since = known.get(jobId);
    const from = Math.max(now, since ?? now);
    if (at <= from + SLACK_S || (since !== undefined && someMovedUp)) continue;
    if (job.tasks > 1 || asksPools(job) || job.exclusive !== null) continue;
    const machine = machines.get(allocations[0]!.machineId)!;
    const others = taken.filter((one) => one.machineId === machine.id && one.to > now);
    const own = others.findIndex((one) => one.from === at && one.cpus === job.cpusPerTask);
    others.splice(own, 1);
    const isLate = taken.some((one) => one.machineId === machine.id && one.from < now && one.to <= now);
    if (isLate || !machine.available || machine.maxTasks !== null) continue;
    const lengthS = Math.max(lengthOf(promise), job.runTimeLimitS ?? 0);
    const fits = (begin: number): boolean =>
      [begin, ...others.map((one) => one.from).filter((one) => one > begin && one < begin + lengthS)].every(
        (instant) => {
          const there = others.filter((one) => one.from <= instant && one.to > instant);
          const sum = (kind: 'cpus' | 'memoryMb') => there.reduce((all, one) => all + one[kind], 0);
          return (
            sum('cpus') + job.cpusPerTask <= machine.cpus &&
            sum('memoryMb') + job.memoryMbPerTask <= machine.memoryMb &&
            Object.entries(job.resourcesPerTask ?? {}).every(
              ([name, amount]) =>
                there.reduce((all, one) => all + (one.resources[name] ?? 0), amount) <=
                (machine.resources?.[name] ?? 0),
            )
          );
        },
      );
    const earlier = [from, ...others.map((one) => one.to)].find(
      (instant) => instant >= from && instant < at - SLACK_S && fits(instant),
    );
    if (earlier !== undefined)
      return `conservative: job ${jobId} is promised a start at site ${siteId} in ${(at - now).toFixed(1)} s${since === undefined ? '' : `, before in ${(since - now).toFixed(1)} s`}, and there is room in ${(earlier - now).toFixed(1)} s`;
  }
  return null;
}
