/** Runs that are stopped to make room for jobs of higher ranks. */
import type { Preemption } from '../../core/model.js';
import { ReasonCode } from '../../core/reasons.js';
import { list, table } from '../columns.js';
import { commitWith, type Database, transaction } from '../pool.js';
import { sayMakesRoom, sayPreempted } from '../retries.js';
import { type PreemptionJob, preemptedBy, refusePreemption } from '../rules.js';
import { sql } from '../sql.js';
import { rows } from '../statement.js';
import type { PlanContext } from '../store.js';
import { changeJobs } from './change-jobs.js';
import { insertDecisions } from './decisions.js';

export function preempt(
  database: Pick<Database, 'pool'>,
  siteId: number,
  preemptions: readonly Preemption[],
  context: PlanContext,
): Promise<number[]> {
  return transaction(database, async (tx) => {
    const ids = preemptions.flatMap(({ jobId, victims }) => [
      jobId,
      ...victims.map((victim) => victim.jobId),
    ]);
    // Sites before jobs.
    const up = await rows(
      tx,
      sql`SELECT id FROM sites WHERE id = ${siteId} AND state = 'UP' AND removed_at IS NULL FOR SHARE`,
    );
    const found = await rows<PreemptionJob>(
      tx,
      sql`
SELECT id, state, site_id AS "siteId", epoch, restartable, class, preemption_class AS "preemptionClass", promised
  FROM jobs WHERE id = ANY (${list('bigint', ids)}) ORDER BY id FOR NO KEY UPDATE`,
    );
    const jobs = new Map(found.map((job) => [job.id, job]));
    const done = preemptions.filter((one) => refusePreemption(one, jobs, up.length > 0) === null);
    if (done.length === 0) return [];
    const stopped = done.flatMap(preemptedBy);
    const decision = { fromSiteId: siteId, siteId };
    await insertDecisions(tx, 'PREEMPT', () => context, [
      ...done.map(({ jobId, victims }) => ({
        ...{ ...decision, jobId, reason: ReasonCode.MAKES_ROOM, explanation: { victims } },
      })),
      ...stopped.map(({ id, preempted }) => ({
        ...{ ...decision, jobId: id, reason: ReasonCode.PREEMPTED, explanation: preempted },
      })),
    ]);
    const winners = table('t', done, {
      id: ['bigint', ({ jobId }) => jobId],
      room: ['text', ({ room }) => JSON.stringify(room)],
      note: ['text', ({ victims }) => sayMakesRoom(victims)],
    });
    const victims = table('t', stopped, {
      id: ['bigint', ({ id }) => id],
      preempted: ['text', ({ preempted }) => JSON.stringify(preempted)],
      note: ['text', ({ preempted }) => sayPreempted(preempted)],
    });
    await commitWith(tx, [
      changeJobs('promiseRoom', winners, { promised: sql`t.room::jsonb`, note: sql`t.note` }),
      ...(stopped.length === 0
        ? []
        : [
            changeJobs('preempt', victims, {
              ...{
                stopCause: sql`'PREEMPTED'::end_cause`,
                preempted: sql`t.preempted::jsonb`,
                note: sql`t.note`,
              },
            }),
          ]),
    ]);
    return done.map(({ jobId }) => jobId);
  });
}
