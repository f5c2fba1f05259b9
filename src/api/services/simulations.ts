/** What-ifs: a policy tried on a window of the service's own jobs. A worker computes them; here they are asked for and read. */
import { MAX } from '../../platform/limits.js';
import type { NewSimulation } from '../../store/directory.js';
import type { SimulationRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { reason, textFault } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput } from '../errors.js';
import type { CreateSimulationInput } from '../generated/types.js';
import { localId } from '../ids.js';
import { guarded } from './access.js';
import { actor, done, type ServiceParts } from './parts.js';
import { checked } from './policy.js';

export function createSimulationsService({ directory, queries, limits, now }: ServiceParts) {
  /** Where the jobs come from, as far as it can be said at once; the worker counts again, and reads the trace. */
  async function jobsOf({
    from: first,
    to: end,
    trace,
  }: CreateSimulationInput): Promise<Pick<NewSimulation, 'window' | 'trace'>> {
    if (trace !== null && trace !== undefined) {
      if (first || end) throw badInput('trace', '(a text)', 'a trace, or `from` and `to`, not both');
      const wrong = textFault(trace, MAX.traceChars, 1);
      if (wrong) throw badInput('trace', `(${trace.length} characters)`, wrong);
      return { window: null, trace };
    }
    if (!first) throw badInput('from', first, 'a time, unless there is a `trace`');
    if (!end) throw badInput('to', end, 'a time, unless there is a `trace`');
    const from = first.getTime() / 1000;
    const to = end.getTime() / 1000;
    if (!(from < to)) throw badInput('to', end, `a time after \`from\``);
    const jobs = await queries.jobCount({ submittedFrom: from, submittedBefore: to }, MAX.simulatedJobs + 1);
    if (jobs === 0) throw badInput('from', first, 'a time window with submitted jobs');
    if (jobs > MAX.simulatedJobs) {
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `from, to: more than ${MAX.simulatedJobs} jobs were submitted in this time window; accepted: a shorter one`,
        { field: 'to' },
      );
    }
    return { window: { from, to }, trace: null };
  }

  return guarded({
    async simulation(_viewer: Viewer, id: string): Promise<SimulationRow | null> {
      return (await queries.simulationsByIds([localId('simulation', id, 'id')]))[0] ?? null;
    },

    async simulations(
      _viewer: Viewer,
      { first, after }: ForwardArguments,
    ): Promise<Connection<SimulationRow>> {
      const size = pageSize('first', first, limits);
      const before = after ? decodeCursor('after', after, 'simulation', ['number'])[0] : null;
      const rows = await queries.simulations(before, size + 1);
      return connection(rows, size, (one) => encodeCursor('simulation', [one.id]), {
        continued: before !== null,
      });
    },

    async createSimulation(
      viewer: Viewer,
      input: CreateSimulationInput,
      requestId: string,
    ): Promise<SimulationRow> {
      const candidate = checked(input.candidate);
      const why = input.reason === null || input.reason === undefined ? null : reason(input.reason);
      const { acceptDistance } = input;
      const asked = {
        ...{ userId: viewer.userId, candidate, acceptDistance, reason: why, now: now() },
        ...(await jobsOf(input)),
      };
      return done(await directory.addSimulation(asked, MAX.openSimulations, actor(viewer, requestId)));
    },

    async cancelSimulation(viewer: Viewer, simulation: string, requestId: string): Promise<SimulationRow> {
      const id = localId('simulation', simulation, 'simulationId');
      return done(await directory.cancelSimulation(id, now(), actor(viewer, requestId)));
    },
  });
}
