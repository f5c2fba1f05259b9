/** `switchyard data`, `links`: what jobs read, where it lies, and the network between the sites. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import { parseNumber } from '../../words/values.js';
import { addCommand, collect, findDataset, findSite, readJson, show } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode, exitCodeOf } from '../errors.js';
import { table, time } from '../format.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';

type Dataset = documents.DatasetFieldsFragment;
type Link = documents.LinkFieldsFragment;
type LinkValues = Pick<Link, 'bandwidthMbPerS' | 'rttS' | 'loss' | 'measuredAt'>;

/** An entry of a file of datasets, and of links: sites by name or id. */
interface DatasetEntry {
  name: string;
  sizeMb: number;
  sha256?: string;
  replicas?: string[];
  locations?: Record<string, string>;
}
/** As in a file: sites by their names. */
type LinkEntry = Omit<documents.LinkInput, 'fromSiteId' | 'toSiteId'> & { from: string; to: string };

export function addData(program: Command): void {
  addDatasets(program);
  addLinks(program);
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: commands and their options, a line each
function addDatasets(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'data', 'list or change datasets').option(
      '--name <text>',
      'only datasets whose names contain this text',
    ),
    DATASET_COLUMNS,
  );
  list.action(async ({ name }: { name?: string }) => {
    const client = connect();
    await showList(list, DATASET_COLUMNS, () => client.all(documents.DatasetsDocument, 'datasets', { name }));
  });

  const add = addCommand(list, 'add <name>', 'register a dataset (OPERATOR)')
    .requiredOption('--size-mb <mb>', 'size, MB')
    .option('--sha256 <digits>', 'SHA-256 of its content, 64 hexadecimal digits')
    .option(
      '--replica <site>',
      'a site that has a replica, or site=LOCATION: a path there, or a URL; may be repeated',
      collect,
    );
  add.action(async (name: string, options: { sizeMb: string; sha256?: string; replica?: string[] }) => {
    const client = connect();
    const { plain, locations } = await placesOf(client, options.replica);
    const input = {
      name,
      sizeMb: parseNumber('--size-mb', options.sizeMb, { min: 0 }),
      sha256: options.sha256,
      replicaSiteIds: plain,
      locations,
    };
    const data = await client.request(documents.CreateDatasetDocument, { input });
    show(add, data.createDataset.dataset, (one) => datasetTable([one]));
  });

  const set = addCommand(list, 'set <dataset>', 'change a dataset and its replicas (OPERATOR)')
    .option('--name <name>', 'new name')
    .option('--size-mb <mb>', 'new size, MB')
    .option('--sha256 <digits>', 'new SHA-256 of its content; none: not known')
    .option('--add <site>', 'a site that now has a replica, or site=LOCATION; may be repeated', collect)
    .option('--remove <site>', 'a site that no longer has a replica; may be repeated', collect);
  set.action(
    async (
      nameOrId: string,
      options: { name?: string; sizeMb?: string; sha256?: string; add?: string[]; remove?: string[] },
    ) => {
      const client = connect();
      const sizeMb =
        options.sizeMb === undefined ? undefined : parseNumber('--size-mb', options.sizeMb, { min: 0 });
      let dataset = await findDataset(client, nameOrId);
      if (options.add !== undefined || options.remove !== undefined) {
        const { plain, locations } = await placesOf(client, options.add);
        const remove = await siteIds(client, options.remove);
        const variables = { dataset: dataset.id, add: plain, locations, remove };
        const data = await client.request(documents.SetReplicasDocument, variables);
        dataset = data.updateReplicas.dataset;
      }
      if (options.name !== undefined || sizeMb !== undefined || options.sha256 !== undefined) {
        const sha256 = options.sha256 === 'none' ? null : options.sha256;
        const input = { datasetId: dataset.id, name: options.name, sizeMb, sha256 };
        const data = await client.request(documents.UpdateDatasetDocument, { input });
        dataset = data.updateDataset.dataset;
      }
      show(set, dataset, (one) => datasetTable([one]));
    },
  );

  const remove = addCommand(list, 'remove <dataset>', 'remove a dataset (OPERATOR)');
  remove.action(async (nameOrId: string) => {
    const client = connect();
    const { id: dataset } = await findDataset(client, nameOrId);
    const data = await client.request(documents.RemoveDatasetDocument, { dataset });
    show(remove, data.removeDataset.dataset, (one) => `${one.name} is removed`);
  });

  const load = addCommand(
    list,
    'import <file>',
    'register or update many datasets: a JSON list of { name, sizeMb, sha256, replicas: [site], locations: { site: path or URL } }, - for standard input (OPERATOR)',
  );
  load.action(async (file: string) => {
    const client = connect();
    const entries = await entriesOf<DatasetEntry>(file);
    const sites = await siteIndex(client);
    const datasets = entries.map(({ locations = {}, replicas = [], ...entry }) => ({
      ...entry,
      replicaSiteIds: replicas.map(sites),
      locations: Object.entries(locations).map(([site, location]) => ({ siteId: sites(site), location })),
    }));
    const data = await client.request(documents.ImportDatasetsDocument, { datasets });
    const [first, ...others] = data.importDatasets.errors;
    if (first !== undefined) {
      const more = others.length > 0 ? ` (and ${others.length} more)` : '';
      const which = first.index === null ? '' : `dataset ${first.index}: `;
      throw new CliError(`${which}${first.message} (${first.code})${more}`, exitCodeOf(first.code));
    }
    show(load, data.importDatasets, ({ created, updated }) => `${created} registered, ${updated} updated`);
  });
}

function addLinks(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'links', 'list or change links between sites')
      .option('--from <site>', 'only from this site')
      .option('--to <site>', 'only to this site'),
    LINK_COLUMNS,
  );
  list.action(async (options: { from?: string; to?: string }) => {
    const client = connect();
    const [from, to] = await Promise.all(
      [options.from, options.to].map(async (site) =>
        site === undefined ? undefined : (await findSite(client, site)).id,
      ),
    );
    await showList(list, LINK_COLUMNS, () => client.all(documents.LinksDocument, 'links', { from, to }));
  });

  const set = addCommand(list, 'set <from> <to>', 'set the values of a link (OPERATOR)')
    .requiredOption('--bandwidth <mb>', 'bandwidth, MB/s')
    .option('--rtt <seconds>', 'round-trip time, seconds', '0')
    .option('--loss <share>', 'packet loss, from 0 to 0.999', '0');
  set.action(async (from: string, to: string, options: { bandwidth: string; rtt: string; loss: string }) => {
    const client = connect();
    const values = {
      bandwidthMbPerS: parseNumber('--bandwidth', options.bandwidth, { min: 0 }),
      rttS: parseNumber('--rtt', options.rtt, { min: 0 }),
      loss: parseNumber('--loss', options.loss, { min: 0, max: 1 }),
    };
    const links = [{ ...(await ends(client, from, to)), ...values }];
    const data = await client.request(documents.SetLinksDocument, { links });
    show(set, data.setLinkValues.links, linkTable);
  });

  const load = addCommand(
    list,
    'import <file>',
    'set many links: a JSON list of { from, to, bandwidthMbPerS, rttS, loss }, - for standard input (OPERATOR)',
  );
  load.action(async (file: string) => {
    const client = connect();
    const entries = await entriesOf<LinkEntry>(file);
    const sites = await siteIndex(client);
    const links = entries.map(({ from, to, ...values }) => ({
      ...values,
      fromSiteId: sites(from),
      toSiteId: sites(to),
    }));
    const data = await client.request(documents.SetLinksDocument, { links });
    show(load, data.setLinkValues.links, linkTable);
  });

  const history = addCommand(list, 'history <from> <to>', 'list the measurements of a link, newest first');
  history.action(async (from: string, to: string) => {
    const client = connect();
    const variables = await ends(client, from, to);
    const data = await client.request(documents.LinkHistoryDocument, variables);
    const [link] = data.links.nodes;
    if (link === undefined)
      throw new CliError(`there is no link from ${from} to ${to} (NOT_FOUND)`, ExitCode.NOT_FOUND);
    show(history, link.history, (measured) =>
      table(
        ['MEASURED (UTC)', ...VALUES],
        measured.map((one) => [time(one.measuredAt), ...valuesOf(one)]),
      ),
    );
  });

  const remove = addCommand(list, 'remove <from> <to>', 'remove a link (OPERATOR)');
  remove.action(async (from: string, to: string) => {
    const client = connect();
    const variables = await ends(client, from, to);
    const data = await client.request(documents.RemoveLinkDocument, variables);
    show(
      remove,
      data.removeLink.link,
      (link) => `the link from ${link.from.name} to ${link.to.name} is removed`,
    );
  });
}

async function ends(
  client: Client,
  from: string,
  to: string,
): Promise<{ fromSiteId: string; toSiteId: string }> {
  return { fromSiteId: (await findSite(client, from)).id, toSiteId: (await findSite(client, to)).id };
}

async function siteIds(client: Client, names: readonly string[] = []): Promise<string[]> {
  return Promise.all(names.map(async (name) => (await findSite(client, name)).id));
}

/** Sites, some with where the replica is there: `site` or `site=LOCATION`. */
async function placesOf(
  client: Client,
  given: readonly string[] = [],
): Promise<{ plain: string[]; locations: documents.DatasetLocationInput[] }> {
  const places = given.map((one) => {
    const at = one.indexOf('=');
    return at < 0 ? { site: one, location: null } : { site: one.slice(0, at), location: one.slice(at + 1) };
  });
  const ids = await siteIds(
    client,
    places.map(({ site }) => site),
  );
  const located = places.map(({ location }, i) => ({ siteId: ids[i] as string, location }));
  return {
    plain: located.flatMap(({ siteId, location }) => (location === null ? [siteId] : [])),
    locations: located.flatMap(({ siteId, location }) => (location === null ? [] : [{ siteId, location }])),
  };
}

/** The id for a site's name; what is no name is passed on as it is, for the service to judge. */
async function siteIndex(client: Client): Promise<(nameOrId: string) => string> {
  const sites = await client.all(documents.SitesDocument, 'sites', {});
  const ids = new Map(sites.map(({ id, name }) => [name, id]));
  return (nameOrId) => ids.get(nameOrId) ?? nameOrId;
}

async function entriesOf<T>(file: string): Promise<T[]> {
  const value = await readJson('file', file);
  if (!Array.isArray(value)) throw new CliError(`file ${file}: expected a JSON list`, ExitCode.USAGE);
  return value as T[];
}

const DATASET_COLUMNS: Columns<Dataset> = {
  ID: ({ id }) => id,
  NAME: ({ name }) => name,
  'SIZE MB': ({ sizeMb }) => sizeMb,
  REPLICAS: ({ replicas }) => replicas.map((site) => site.name).join(',') || null,
  LOCATIONS: ({ locations }) =>
    locations.map(({ site, location }) => `${site.name}=${location}`).join(' ') || null,
};

const datasetTable = (datasets: readonly Dataset[]): string => tableOf(DATASET_COLUMNS, datasets);

const VALUES = ['MB/S', 'RTT S', 'LOSS'];
const valuesOf = ({ bandwidthMbPerS, rttS, loss }: LinkValues): number[] =>
  [bandwidthMbPerS, rttS, loss].map((value) => Number(value.toPrecision(4)));

const LINK_COLUMNS: Columns<Link> = {
  FROM: ({ from }) => from.name,
  TO: ({ to }) => to.name,
  'MB/S': (link) => valuesOf(link)[0],
  'RTT S': (link) => valuesOf(link)[1],
  LOSS: (link) => valuesOf(link)[2],
  SOURCE: ({ source }) => source,
  'AS OF (UTC)': ({ measuredAt }) => time(measuredAt),
};

const linkTable = (links: readonly Link[]): string => tableOf(LINK_COLUMNS, links);
