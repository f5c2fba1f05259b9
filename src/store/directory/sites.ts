/** Sites. */
import type { SiteState } from '../../core/model.js';
import type { LocalPolicy } from '../../core/policy.js';
import { Prisma } from '../generated/client.js';
import { instant, json, plain } from '../read-rows.js';
import type { SiteRow } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, inService, type Transaction, unique } from './changes.js';
import { shareScheduler } from './schedulers.js';

export interface NewSite {
  name: string;
  latitude: number | null;
  longitude: number | null;
  localPolicy: LocalPolicy | null;
  /** Null or left out: as many as fit. */
  maxRunningJobs?: number | null;
  /** The longest run time limit of its jobs, seconds; null or left out: any. */
  maxLimitS?: number | null;
  /** The scheduler that it is under; null or left out: the root. */
  schedulerId?: number | null;
  /** CPU-hours that a user may have reserved there at a time; left out: none. */
  reservableCpuHours?: number;
}

export const siteChanges = (change: Changes) => ({
  registerSite(site: NewSite, actor: Actor) {
    return change(actor, 'registerSite', async (tx, note): Promise<SiteRow> => {
      await shareScheduler(tx, site.schedulerId);
      const data = { ...site, localPolicy: localPolicy(site.localPolicy) };
      const after = plain(
        await unique(`there is already a site named ${site.name}`, () => tx.site.create({ data })),
      );
      await note(`site_${after.id}`, null, after);
      return after;
    });
  },

  /** What is absent stays. A site DRAINING or DOWN starts nothing more; the next cycles take its queue back. */
  updateSite(id: number, given: Partial<NewSite & { state: SiteState }>, actor: Actor) {
    return change(actor, 'updateSite', async (tx, note): Promise<SiteRow> => {
      const before = await lockSite(tx, id);
      await shareScheduler(tx, given.schedulerId);
      const data = {
        ...given,
        localPolicy: given.localPolicy === undefined ? undefined : localPolicy(given.localPolicy),
      };
      const after = plain(
        await unique(`there is already a site named ${given.name}`, () =>
          tx.site.update({ where: { id }, data }),
        ),
      );
      await note(`site_${id}`, before, after);
      return after;
    });
  },

  /** Takes a site that is not UP and has no queue and no live runs out of service; its machines, licenses, replicas and links with it. */
  removeSite(id: number, now: number, actor: Actor) {
    return change(actor, 'removeSite', async (tx, note): Promise<SiteRow> => {
      const before = await lockSite(tx, id);
      if (before.state === 'UP') throw conflict(`site ${before.name} is UP: drain it first`);
      const { _sum } = await tx.jobCount.aggregate({
        where: { siteId: id, state: { not: 'HELD' } },
        _sum: { jobs: true },
      });
      if (_sum.jobs)
        throw conflict(`site ${before.name} still has ${_sum.jobs} jobs: wait until it is drained`);
      await tx.$queryRaw(
        sql`SELECT 1 FROM machines WHERE site_id = ${id} AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE`,
      );
      await tx.$queryRaw(
        sql`SELECT 1 FROM licenses WHERE site_id = ${id} AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE`,
      );
      const links = { OR: [{ fromSiteId: id }, { toSiteId: id }] };
      await tx.sitePromises.deleteMany({ where: { siteId: id } });
      await tx.reservation.deleteMany({ where: { siteId: id } });
      await tx.linkMeasurement.deleteMany({ where: links });
      await tx.datasetReplica.deleteMany({ where: { siteId: id } });
      await tx.link.deleteMany({ where: links });
      const inServiceThere = { siteId: id, removedAt: null };
      const data = { removedAt: instant(now) };
      await tx.machine.updateMany({ where: inServiceThere, data });
      await tx.license.updateMany({ where: inServiceThere, data });
      await tx.hold.updateMany({ where: { siteId: id, endedAt: null }, data: { endedAt: instant(now) } });
      const after = plain(await tx.site.update({ where: { id }, data }));
      await note(`site_${id}`, before, after);
      return after;
    });
  },
});

export async function lockSite(tx: Transaction, id: number): Promise<SiteRow> {
  await tx.$queryRaw(sql`SELECT 1 FROM sites WHERE id = ${id} FOR NO KEY UPDATE`);
  return plain(inService('site', id, await tx.site.findUnique({ where: { id } })));
}

const localPolicy = (policy: LocalPolicy | null) => (policy === null ? Prisma.DbNull : json(policy));
