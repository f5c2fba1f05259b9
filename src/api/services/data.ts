/** Datasets with their replicas, and the links between sites: an operator's changes, and what agents measured. */
import type { Link } from '../../core/model.js';
import { MAX } from '../../platform/limits.js';
import type { NewDataset, ReplicaLocation } from '../../store/directory.js';
import type { DatasetRow, LinkMeasurementRow, LinkRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { atMost, clearable, given, patch, text, textFault, within } from '../check.js';
import { type Connection, connection, decodeCursor, encodeCursor, pageSize } from '../connections.js';
import { badInput, notAccepted } from '../errors.js';
import type {
  DatasetInput,
  DatasetLocationInput,
  LinkInput,
  LinkMeasurementInput,
  QueryDatasetsArgs,
  QueryLinksArgs,
  RemoveLinkInput,
  UpdateDatasetInput,
  UpdateReplicasInput,
} from '../generated/types.js';
import { localId, parseGlobalId } from '../ids.js';
import type { ImportDatasetsPayloadModel } from '../models.js';
import { guarded, ownSite } from './access.js';
import { actor, done, type ServiceParts, wakeAfter } from './parts.js';

type LinkValues = Pick<Link, 'bandwidthMbPerS' | 'rttS' | 'loss'>;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createDataService(parts: ServiceParts) {
  const { directory, queries, limits, now } = parts;

  /** After a change to what schedulers reckon with. */
  async function changed<T>(value: T): Promise<T> {
    await wakeAfter(parts, { of: 'DATA' });
    return value;
  }

  /** What is wrong with datasets to import, as far as one can say without the sites. */
  function checkImport(
    datasets: readonly DatasetInput[],
    sites: ReadonlySet<number>,
  ): ImportDatasetsPayloadModel['errors'] {
    const errors: ImportDatasetsPayloadModel['errors'][number][] = [];
    const names = new Set<string>();
    datasets.forEach(({ name, sizeMb, sha256, replicaSiteIds, locations }, index) => {
      const refuse = (field: string, value: unknown, accepted: string): void => {
        if (errors.length === MAX.faults) return;
        errors.push({ index, field, code: 'BAD_USER_INPUT', message: notAccepted(field, value, accepted) });
      };
      const wrong = textFault(name, MAX.nameChars, 1);
      if (wrong) refuse('name', name, wrong);
      if (names.has(name)) refuse('name', name, 'each name once');
      names.add(name);
      if (!(sizeMb >= 0 && sizeMb <= MAX.sizeMb)) refuse('sizeMb', sizeMb, `0 to ${MAX.sizeMb}`);
      if (replicaSiteIds.length > MAX.replicas)
        refuse('replicaSiteIds', replicaSiteIds.length, `up to ${MAX.replicas} sites`);
      for (const site of replicaSiteIds) {
        const parsed = parseGlobalId(site);
        if (parsed?.type !== 'site' || !sites.has(parsed.id))
          refuse('replicaSiteIds', site, 'the id of a site');
      }
      if (sha256 != null && !SHA256.test(sha256)) refuse('sha256', sha256, SHA256_FORM);
      if (locations.length > MAX.replicas)
        refuse('locations', locations.length, `up to ${MAX.replicas} locations`);
      for (const { siteId, location } of locations) {
        const parsed = parseGlobalId(siteId);
        if (parsed?.type !== 'site' || !sites.has(parsed.id)) refuse('locations', siteId, 'the id of a site');
        const fault = locationFault(location);
        if (fault) refuse('locations', location, fault);
      }
      if (new Set(locations.map(({ siteId }) => siteId)).size < locations.length)
        refuse('locations', locations.length, 'each site once');
    });
    return errors;
  }

  /** Of the sites named, those in service. */
  async function inService(named: Iterable<string>): Promise<Set<number>> {
    const ids = new Set<number>();
    for (const id of named) {
      const parsed = parseGlobalId(id);
      if (parsed?.type === 'site') ids.add(parsed.id);
    }
    const found = await queries.sitesByIds([...ids]);
    return new Set(found.filter((site) => site.removedAt === null).map((site) => site.id));
  }

  /** The measured or set values of a link. Throws BAD_USER_INPUT naming the field. */
  const linkValues = (
    { bandwidthMbPerS, rttS, loss }: LinkValues,
    field: (name: string) => string,
  ): LinkValues => ({
    bandwidthMbPerS: within(
      field('bandwidthMbPerS'),
      bandwidthMbPerS,
      MAX.leastBandwidthMbPerS,
      MAX.bandwidthMbPerS,
    ),
    rttS: within(field('rttS'), rttS, 0, MAX.rttS),
    loss: within(field('loss'), loss, 0, MAX.loss),
  });

  return {
    ...guarded({
      async dataset(_viewer: Viewer, id: string): Promise<DatasetRow | null> {
        const [found] = await queries.datasetsByIds([localId('dataset', id, 'id')]);
        return found && found.removedAt === null ? found : null;
      },

      async datasets(
        _viewer: Viewer,
        { name, first, after }: QueryDatasetsArgs,
      ): Promise<Connection<DatasetRow>> {
        const size = pageSize('first', first, limits);
        const containing = name ? text('name', name, MAX.nameChars) : null;
        const behind = after ? decodeCursor('after', after, 'dataset', ['text'])[0] : '';
        const rows = await queries.datasets(containing, behind, size + 1);
        return connection(rows, size, (one) => encodeCursor('dataset', [one.name]), {
          continued: behind !== '',
        });
      },

      async links(
        _viewer: Viewer,
        { fromSiteId, toSiteId, first, after }: QueryLinksArgs,
      ): Promise<Connection<LinkRow>> {
        const size = pageSize('first', first, limits);
        const cursor = after ? decodeCursor('after', after, 'link', ['number', 'number']) : null;
        const rows = await queries.links(
          {
            ...(fromSiteId ? { fromSiteId: localId('site', fromSiteId, 'fromSiteId') } : {}),
            ...(toSiteId ? { toSiteId: localId('site', toSiteId, 'toSiteId') } : {}),
          },
          cursor && { fromSiteId: cursor[0], toSiteId: cursor[1] },
          size + 1,
        );
        return connection(rows, size, (link) => encodeCursor('link', [link.fromSiteId, link.toSiteId]), {
          continued: cursor !== null,
        });
      },

      async createDataset(viewer: Viewer, input: DatasetInput, requestId: string): Promise<DatasetRow> {
        const dataset = {
          name: text('name', input.name, MAX.nameChars, 1),
          sizeMb: within('sizeMb', input.sizeMb, 0, MAX.sizeMb),
          sha256: clearable('sha256', input.sha256, checksum) ?? null,
          siteIds: siteIds('replicaSiteIds', input.replicaSiteIds),
          locations: locationsOf(input.locations),
        };
        return changed(done(await directory.createDataset(dataset, actor(viewer, requestId))));
      },
      async updateDataset(viewer: Viewer, input: UpdateDatasetInput, requestId: string): Promise<DatasetRow> {
        const change = patch({
          name: given('name', input.name, text, MAX.nameChars, 1),
          sizeMb: given('sizeMb', input.sizeMb, within, 0, MAX.sizeMb),
          sha256: clearable('sha256', input.sha256, checksum),
        });
        const id = localId('dataset', input.datasetId, 'datasetId');
        return changed(done(await directory.updateDataset(id, change, actor(viewer, requestId))));
      },
      async removeDataset(viewer: Viewer, dataset: string, requestId: string): Promise<DatasetRow> {
        const id = localId('dataset', dataset, 'datasetId');
        return changed(done(await directory.removeDataset(id, now(), actor(viewer, requestId))));
      },
      async updateReplicas(
        viewer: Viewer,
        { datasetId, addSiteIds, locations, removeSiteIds }: UpdateReplicasInput,
        requestId: string,
      ): Promise<DatasetRow> {
        const id = localId('dataset', datasetId, 'datasetId');
        const change = {
          add: siteIds('addSiteIds', addSiteIds),
          locations: locationsOf(locations),
          remove: siteIds('removeSiteIds', removeSiteIds),
        };
        return changed(done(await directory.setReplicas(id, change, actor(viewer, requestId))));
      },

      async importDatasets(
        viewer: Viewer,
        datasets: readonly DatasetInput[],
        requestId: string,
      ): Promise<ImportDatasetsPayloadModel> {
        if (datasets.length === 0) throw badInput('datasets', [], `1 to ${MAX.datasetsImported} datasets`);
        atMost('datasets', datasets, MAX.datasetsImported);
        const sites = await inService(replicasOf(datasets));
        const errors = checkImport(datasets, sites);
        if (errors.length > 0) return { created: 0, updated: 0, errors };
        const made = datasets.map(
          ({ name, sizeMb, sha256, replicaSiteIds, locations }): NewDataset => ({
            name,
            sizeMb,
            sha256: clearable('sha256', sha256, checksum) ?? null,
            locations: locationsOf(locations),
            siteIds: siteIds('replicaSiteIds', replicaSiteIds),
          }),
        );
        const { created, updated } = done(await directory.importDatasets(made, actor(viewer, requestId)));
        return changed({ created, updated, errors: [] });
      },

      async setLinkValues(
        viewer: Viewer,
        inputs: readonly LinkInput[],
        requestId: string,
      ): Promise<LinkRow[]> {
        if (inputs.length === 0) throw badInput('links', [], `1 to ${MAX.links} links`);
        atMost('links', inputs, MAX.links);
        const sites = await inService(inputs.flatMap(({ fromSiteId, toSiteId }) => [fromSiteId, toSiteId]));
        const seen = new Set<string>();
        const links = inputs.map((input, index): Link => {
          const field = (name: string): string => `links[${index}].${name}`;
          const end = (name: 'fromSiteId' | 'toSiteId'): number => {
            const id = localId('site', input[name], field(name));
            if (!sites.has(id)) throw badInput(field(name), input[name], 'the id of a site');
            return id;
          };
          const [fromSiteId, toSiteId] = [end('fromSiteId'), end('toSiteId')];
          if (fromSiteId === toSiteId)
            throw badInput(field('toSiteId'), input.toSiteId, 'a site other than `fromSiteId`');
          const way = `${fromSiteId} ${toSiteId}`;
          if (seen.has(way))
            throw badInput(
              `links[${index}]`,
              { fromSiteId: input.fromSiteId, toSiteId: input.toSiteId },
              'each link once',
            );
          seen.add(way);
          return { fromSiteId, toSiteId, ...linkValues(input, field) };
        });
        return changed(done(await directory.setLinks(links, now(), actor(viewer, requestId))));
      },
      async removeLink(viewer: Viewer, input: RemoveLinkInput, requestId: string): Promise<LinkRow> {
        const [fromSiteId, toSiteId] = (['fromSiteId', 'toSiteId'] as const).map((field) =>
          localId('site', input[field], field),
        ) as [number, number];
        return changed(done(await directory.removeLink(fromSiteId, toSiteId, actor(viewer, requestId))));
      },

      async reportLinks(
        viewer: Viewer,
        site: string,
        inputs: readonly LinkMeasurementInput[],
      ): Promise<(LinkMeasurementRow | LinkRow | null)[]> {
        const siteId = localId('site', site, 'site');
        ownSite(viewer, siteId);
        atMost('measurements', inputs, MAX.measurements);
        const names = new Set<string>();
        const values = inputs.map((input, index) => {
          const field = (name: string): string => `measurements[${index}].${name}`;
          text(field('from'), input.from, MAX.nameChars, 1);
          if (names.has(input.from)) throw badInput(field('from'), input.from, 'each site once');
          names.add(input.from);
          const { bandwidthMbPerS, rttS, loss } = input;
          linkValues({ bandwidthMbPerS, rttS: rttS ?? 0, loss: loss ?? 0 }, field);
          return { bandwidthMbPerS, rttS, loss };
        });
        const found = await Promise.all([...names].map((name) => queries.siteByName(name)));
        const froms = found.map((from) => (from === null || from.id === siteId ? null : from.id));
        const partly = values.some(({ rttS, loss }) => rttS == null || loss == null);
        const links = partly ? await queries.links({ toSiteId: siteId }, null, MAX.links) : [];
        const before = new Map(links.map((link) => [link.fromSiteId, link]));
        const measured = values.flatMap(({ bandwidthMbPerS, rttS, loss }, i) => {
          const fromSiteId = froms[i] ?? null;
          if (fromSiteId === null) return [];
          const known = before.get(fromSiteId) ?? { rttS: 0, loss: 0 };
          return [{ fromSiteId, bandwidthMbPerS, rttS: rttS ?? known.rttS, loss: loss ?? known.loss }];
        });
        if (measured.length === 0) return froms.map(() => null);
        const after = done(await directory.reportLinks(siteId, measured, now()));
        await changed(after);
        const byFrom = new Map(after.map((link) => [link.fromSiteId, link]));
        return froms.map((from) => (from === null ? null : (byFrom.get(from) ?? null)));
      },
    }),

    /** Of a link that the viewer has been shown. */
    historyOf({ fromSiteId, toSiteId }: Link, first: number | null): Promise<LinkMeasurementRow[]> {
      return queries.linkHistory(fromSiteId, toSiteId, pageSize('first', first, limits));
    },
  };
}

function* replicasOf(datasets: readonly DatasetInput[]): Generator<string> {
  for (const { replicaSiteIds, locations } of datasets) {
    yield* replicaSiteIds;
    for (const { siteId } of locations) yield siteId;
  }
}

/** Distinct sites of a list. Throws BAD_USER_INPUT or LIMIT_EXCEEDED. */
function siteIds(field: string, ids: readonly string[]): number[] {
  atMost(field, ids, MAX.replicas);
  return [...new Set(ids.map((id) => localId('site', id, field)))];
}

const SHA256 = /^[0-9a-f]{64}$/;
const SHA256_FORM = '64 hexadecimal digits, in lower case';
/** A path or a URL. A scheme of one letter would be a drive of Windows. */
const LOCATION = /^(\/|[A-Za-z][A-Za-z0-9+.-]+:).+$/s;

function checksum(field: string, value: string): string {
  if (!SHA256.test(value)) throw badInput(field, value, SHA256_FORM);
  return value;
}

function locationFault(location: string): string | null {
  const wrong = textFault(location, MAX.locationChars, 1);
  if (wrong) return wrong;
  return LOCATION.test(location) ? null : 'an absolute path or a URL';
}

/** Throws BAD_USER_INPUT or LIMIT_EXCEEDED. */
function locationsOf(given: readonly DatasetLocationInput[]): ReplicaLocation[] {
  atMost('locations', given, MAX.replicas);
  const found = given.map(({ siteId, location }, i) => {
    const fault = locationFault(location);
    if (fault) throw badInput(`locations[${i}].location`, location, fault);
    return { siteId: localId('site', siteId, `locations[${i}].siteId`), location };
  });
  const twice = found.find(({ siteId }, i) => found.findIndex((one) => one.siteId === siteId) < i);
  if (twice) throw badInput('locations', given.length, 'each site once');
  return found;
}
