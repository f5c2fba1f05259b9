/** Peers: an administrator registers and isolates them; a peer asks for jobs, claims them and gives them back (PEER). */
import { schedulerOf } from '../../core/scheduler.js';
import { isWaiting } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import type { ForeignJobRow, PeerRow, PeerSettings } from '../../store/directory/peers.js';
import {
  type ClaimResult,
  firstVersionOf,
  type Hindrance,
  LOAD_KEPT_S,
  type MachineKind,
  OFFERS_PAGE,
  type OfferedPart,
  type OfferNews,
  type Standing,
  stayingField,
  type ToldLoad,
  VERSION_UNKNOWN,
} from '../../store/federation.js';
import type { StayingFields } from '../../store/job-fields.js';
import type { JobRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { atMost, given, notNull, patch, plainName, text, within } from '../check.js';
import { badInput } from '../errors.js';
import type {
  ExchangeInput,
  ForeignUserInput,
  MachineKindInput,
  PeerLoadInput,
  SetPeerInput,
} from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import type { Loaders } from '../loaders.js';
import type { JobAtPeerModel } from '../models.js';
import { guarded } from './access.js';
import { maxAttemptsOf } from './agents.js';
import { classesInForce } from './classes.js';
import { actor, done, type ServiceParts } from './parts.js';

/** Of what peers and we say to each other (src/federation/PROTOCOL.md): this one, and those of earlier releases. */
const PROTOCOLS = [1, 2, 3];
const NUMBER = /^\d{1,16}$/;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createFederationService(parts: ServiceParts) {
  const { directory, queries, exports, now } = parts;
  const { offers, copies } = parts.store;
  const maxAttempts = maxAttemptsOf(parts);
  const wake = (touched: readonly (number | null)[]): void => {
    if (touched.length > 0) parts.wake(touched.map(schedulerOf));
  };
  const numbers = (given: readonly string[], most: number): number[] =>
    atMost('offers', given, most).map((one) => numberOf('offers', one));
  const siteOf = (viewer: Viewer): number => viewer.siteId as number;

  /** An input that cannot be fetched from anywhere, as a reason why the job stays here; null: there is none. */
  async function localInput({ inputs }: JobRow): Promise<string | null> {
    const ids = inputs.flatMap((input) => ('datasetId' in input ? [input.datasetId] : []));
    if (ids.length < inputs.length)
      return 'The job has input data of which only the amount and the site are known, so peers cannot fetch them: such jobs run at sites of this service only.';
    const [local] = ids.length > 0 ? await queries.datasetsByIds(await offers.unfetchable(ids)) : [];
    if (local === undefined) return null;
    const [failed] = await exports.exportFailures([local.id]);
    return failed
      ? `Its input data ${local.name} could not be copied for peers: ${failed.failure}`
      : `Its input data ${local.name} have no http(s) URL that peers can reach (private addresses do not count): such jobs run at sites of this service only, until an agent has sent a copy to the service (SWITCHYARD_PUBLIC_URL).`;
  }

  let told: Promise<unknown> | null = null;
  /** Once in this process, before anybody asks: the database may have been restored before it started. */
  const toldAgain = (): Promise<unknown> => {
    told ??= offers.tellAgain().catch((error: unknown) => {
      told = null;
      throw error;
    });
    return told;
  };

  return {
    ...guarded({
      federationPeers: (_viewer: Viewer): Promise<PeerRow[]> => directory.peers(),

      async setPeer(viewer: Viewer, input: SetPeerInput, requestId: string) {
        return done(await directory.federate(settingsOf(input), actor(viewer, requestId)));
      },

      async isolatePeer(viewer: Viewer, peer: string, requestId: string): Promise<PeerRow> {
        const siteId = localId('site', peer, 'siteId');
        const isolated = done(await directory.isolatePeer(siteId, actor(viewer, requestId)));
        wake(await copies.withdraw(siteId, 'ISOLATED', now()));
        return isolated;
      },

      async rejoinPeer(viewer: Viewer, peer: string, requestId: string): Promise<PeerRow> {
        return done(await directory.rejoinPeer(localId('site', peer, 'siteId'), actor(viewer, requestId)));
      },

      async removePeer(viewer: Viewer, peer: string, requestId: string): Promise<PeerRow> {
        const siteId = localId('site', peer, 'siteId');
        const removed = done(await directory.removePeer(siteId, now(), actor(viewer, requestId)));
        parts.keysChanged();
        return removed;
      },

      async exchangeJobs(viewer: Viewer, input: ExchangeInput) {
        if (!PROTOCOLS.includes(input.protocol))
          throw badInput('protocol', input.protocol, PROTOCOLS.join(', '));
        const after = numberOf('after', input.after);
        const service = await directory.serviceId();
        if (input.service === service)
          throw badInput(
            'service',
            input.service,
            'the id of a service other than this one; a copied database needs a new id',
          );
        const siteId = siteOf(viewer);
        const asked = {
          protocol: input.protocol,
          load: input.load ? loadOf(input.load) : null,
          service: text('service', input.service, MAX.nameChars, 1),
          after,
          room: within('room', input.room, 0, MAX.foreignJobs),
          kinds: atMost('kinds', input.kinds, MAX.machineKinds).map(kindOf),
          classes: atMost('classes', input.classes, MAX.peerClasses).map((one) =>
            text('classes', one, MAX.classNameChars, 1),
          ),
          places: atMost('places', input.places, MAX.places).map(({ offer, path }) => ({
            offer: numberOf('places.offer', offer),
            path: atMost('places.path', path, MAX.hops).map((one) => text('places.path', one, MAX.nameChars)),
          })),
        };
        await toldAgain();
        const news = await offers.exchange(siteId, asked, now());
        return {
          service,
          site: globalId('site', siteId),
          cursor: String(news.at(-1)?.version ?? after),
          more: news.length === OFFERS_PAGE,
          offers: news.map(offerOf),
        };
      },

      async claimJobs(viewer: Viewer, given: readonly string[]) {
        const { results, touched } = await offers.claim(siteOf(viewer), numbers(given, MAX.claims), now());
        wake(touched);
        return { results: results.map(claimOf) };
      },

      async returnJobs(viewer: Viewer, given: readonly string[]): Promise<boolean> {
        const returned = numbers(given, MAX.returns);
        if (returned.length > 0)
          wake(await offers.giveBack(siteOf(viewer), returned, await maxAttempts.afresh(), now()));
        return true;
      },
    }),

    counts: (siteId: number) => directory.peerCounts(siteId),
    /** Which jobs never go to the peer by the version in which it asks and the classes that it accepts, as sentences. */
    async notOffered(peer: PeerRow, loaders: Loaders): Promise<string[]> {
      if (peer.seenAt === null) return [UNSEEN];
      const speaks = peer.protocol ?? VERSION_UNKNOWN;
      const older = ([2, 3] as const).filter((since) => speaks < since).map((since) => isOlder(peer, since));
      // One that is older takes none at all, and this is said.
      if (older.length > 0) return older;
      const classes = await loaders.once('classes in force', () => classesInForce(queries));
      const refused = Object.keys(classes).filter((one) => !peer.classes.includes(one));
      return refused.length === 0 ? [] : [refusesClasses(peer, refused.sort())];
    },
    /** Of the sites that represent peers. */
    siteIds: async (): Promise<ReadonlySet<number>> =>
      new Set((await directory.peers()).map(({ siteId }) => siteId)),
    peers: (siteIds: readonly number[]): Promise<PeerRow[]> => directory.peersByIds(siteIds),
    foreignJob: (jobId: number): Promise<ForeignJobRow | null> => directory.foreignJob(jobId),
    async peersOf(job: JobRow): Promise<JobAtPeerModel[]> {
      const peers = await directory.peers();
      if (peers.length === 0) return [];
      const [standings, foreign] = await Promise.all([
        offers.standings(job.id, now()),
        directory.foreignJob(job.id),
      ]);
      const local = standings.some(({ hindrance }) => hindrance === 'DATA') ? await localInput(job) : null;
      return standings.flatMap((standing): JobAtPeerModel[] => {
        const { siteId, state, hindrance, path } = standing;
        const peer = peers.find((one) => one.siteId === siteId);
        if (peer === undefined || (state === null && (!isWaiting(job.state) || foreign?.siteId === siteId)))
          return [];
        const reason = hindrance && SENTENCES[hindrance]({ job, peer, standing, local, now: now() });
        return [{ siteId, state, reason, path: path.length > 0 ? [...path] : null }];
      });
    },
  };
}

const STAYS: Readonly<Record<keyof StayingFields, string>> = {
  resourcesPerTask: 'The job asks for kinds of resources, which each service names for itself',
  tasksPerMachine: 'The job says how many of its tasks are on a machine, which peers are not told',
  exclusive: 'The job has its machines to itself, which peers are not told',
  allAlike: 'The job is to have machines that are alike in labels, which each service has of its own',
  sameSwitch: 'The job is to have machines on one switch, which peers are not told',
  resources: 'The job asks for what is counted for sites of this service or its grid',
  machineConstraint: 'The job has a constraint over labels of machines, which each service has of its own',
  image: 'The job runs in an image, and each service has images of its own',
  downloads: 'The job downloads files from URLs, which the sites of peers may not reach',
  uploads: 'The job uploads files to URLs, which the sites of peers may not reach',
  terminal: 'The job has a terminal, and what is typed cannot be passed on to peers',
  reservationId: 'The job runs in a reservation of machines of this service',
};

const PARTS_STAY =
  'A part of the job asks for more than tasks with CPUs, memory and devices, and peers are told only these of parts';

const UNSEEN = 'It has not asked for jobs yet.';

/** What came with each version of the protocol. */
const NEW_IN = {
  1: 'anything',
  2: 'outputs or parts',
  3: 'a class, or with devices requested by kind and model',
} as const;

const isOlder = ({ protocol }: PeerRow, since: keyof typeof NEW_IN): string =>
  `It is of an earlier release (version ${protocol ?? VERSION_UNKNOWN} of the peer protocol), which takes no jobs with ${NEW_IN[since]}.`;

function refusesClasses({ classes }: PeerRow, refused: readonly string[]): string {
  const accepted =
    classes.length === 0
      ? 'it accepts jobs without a class only'
      : `the classes that it accepts are ${classes.join(', ')}`;
  return `It accepts no jobs of the ${refused.length === 1 ? 'class' : 'classes'} ${refused.join(', ')} from this service: ${accepted}.`;
}

interface NotOffered {
  job: JobRow;
  peer: PeerRow;
  standing: Standing;
  /** Why its input data keep it here; null: they do not. */
  local: string | null;
  now: number;
}

/** Why a waiting job is not offered to a peer, in words: the store says which it is. */
const SENTENCES: Readonly<Record<Hindrance, (about: NotOffered) => string>> = {
  ISOLATED: () => 'The peer is isolated.',
  NEVER: () => 'It is offered no jobs (NEVER).',
  UNSEEN: () => UNSEEN,
  STAYS: ({ job }) => {
    const field = stayingField(job);
    const why = field === null ? PARTS_STAY : STAYS[field];
    return `${why}: it stays with the sites of this service.`;
  },
  DATASETS: () =>
    'The job has outputs that become datasets, which are registered at the site where it ran: such jobs run at sites of this service only.',
  OLDER: ({ job, peer }) => isOlder(peer, firstVersionOf(job)),
  CLASS: ({ job, peer }) => refusesClasses(peer, [job.class as string]),
  HELD: () => 'The job is held.',
  GRANTED: () => 'The job has been granted to this service.',
  VISITED: () => 'The job has already passed through it.',
  HOPS: () => 'The job has already passed as many services as it may.',
  RETURNED: ({ standing: { againAt } }) =>
    `It gave the job back, and is not offered it again before ${new Date((againAt as number) * 1000).toISOString()}.`,
  FAILED_THERE: () => 'A run of the job failed there, and it is to run elsewhere.',
  DATA: ({ local }) => local ?? 'Its input data could not be fetched a moment ago.',
  UNFIT: () =>
    'None of the machines that it reports, within the number of services that the job may pass, can run the job.',
  NOT_NEEDED: ({ peer: { neededAfterS } }) =>
    `It is offered the job when no site here could ever run it, or its predicted wait exceeds ${neededAfterS} s (WHEN_NEEDED).`,
  NOT_CHEAPER: ({ peer, now }) => whyNotCheaper(peer, now),
  NO_ROOM: () => 'It takes no more jobs now, or has not asked for jobs since.',
};

/** With what DIANA's comparison has of the peer. */
function whyNotCheaper({ load, loadAt }: PeerRow, now: number): string {
  const rule =
    'It is offered the job when no site here could ever run it, or fewer jobs are ahead of it there and its cost is lower there (WHEN_CHEAPER)';
  if (load === null || loadAt === null) return `${rule}; it has not reported its queue.`;
  const ageS = Math.max(0, Math.round(now - loadAt));
  const waitS = load.power > 0 ? `${Math.round(load.work / load.power)} s` : 'no machines';
  const old = ageS > LOAD_KEPT_S ? ', which is too long ago' : '';
  return `${rule}; ${ageS} s ago${old} it had ${load.ahead} jobs ahead, ${waitS} of work.`;
}

function loadOf(load: PeerLoadInput): ToldLoad {
  const { ahead, work, power, benchmark, ageS } = load;
  return {
    ahead: within('load.ahead', ahead, 0, 1e9),
    work: within('load.work', work, 0, 1e30),
    power: within('load.power', power, 0, 1e30),
    benchmark: within('load.benchmark', benchmark, 0, 1e9),
    ageS: within('load.ageS', ageS, 0, MAX.seconds),
  };
}

function numberOf(field: string, value: string): number {
  if (!NUMBER.test(value) || !Number.isSafeInteger(Number(value)))
    throw badInput(field, value, 'a number that this service returned');
  return Number(value);
}

function settingsOf(input: SetPeerInput): PeerSettings {
  return {
    name: plainName('name', input.name),
    ...patch({
      url: given('url', input.url, addressOf),
      secret: given('key', input.key, text, MAX.nameChars, 1),
      forward: notNull('forward', input.forward),
      userId: given('userId', input.userId, (field, id) => localId('user', id, field)),
      users: given('users', input.users, atMost, MAX.foreignUsers)?.map(foreignUser),
      neededAfterS: given('neededAfterS', input.neededAfterS, within, 0, MAX.seconds),
      hops: given('hops', input.hops, within, 2, MAX.hops),
      lostAfterS: given('lostAfterS', input.lostAfterS, within, 1, MAX.seconds),
      foreignMax: given('foreignMax', input.foreignMax, within, 0, MAX.foreignJobs),
      foreignBoost: given('foreignBoost', input.foreignBoost, within, -MAX.boost, MAX.boost),
    }),
  };
}

const foreignUser = ({ name, userId }: ForeignUserInput) => ({
  name: text('users.name', name, MAX.nameChars, 1),
  userId: userId === null || userId === undefined ? null : localId('user', userId, 'users.userId'),
});

function addressOf(field: string, url: string): string {
  const at = URL.canParse(text(field, url, MAX.urlChars, 1)) ? new URL(url) : null;
  if (at === null || !/^https?:$/.test(at.protocol) || at.username !== '' || at.password !== '')
    throw badInput(field, url, 'the address of a GraphQL endpoint, such as https://host/graphql');
  return url;
}

function kindOf(kind: MachineKindInput): MachineKind {
  const { os, architecture, maxTasks, licenses, devices, ...numbers } = kind;
  for (const [field, value] of Object.entries(numbers))
    within(
      `kinds.${field}`,
      value,
      field === 'memoryMb' || field === 'site' ? 0 : 1,
      field === 'memoryMb' ? MAX.integer : 1_000_000,
    );
  if (maxTasks !== null && maxTasks !== undefined) within('kinds.maxTasks', maxTasks, 1, 1_000_000);
  return {
    ...numbers,
    os: text('kinds.os', os, MAX.nameChars),
    architecture: text('kinds.architecture', architecture, MAX.nameChars),
    maxTasks: maxTasks ?? null,
    licenses: atMost('kinds.licenses', licenses, MAX.kindLicenses).map((one) =>
      text('kinds.licenses', one, MAX.nameChars),
    ),
    devices: atMost('kinds.devices', devices, MAX.alikeDevices).map(({ kind: of, model, ...each }) => ({
      kind: text('kinds.devices.kind', of, MAX.plainNameChars, 1),
      model: model == null ? null : text('kinds.devices.model', model, MAX.labelChars),
      memoryMb: within('kinds.devices.memoryMb', each.memoryMb, 0, MAX.integer),
      shares: within('kinds.devices.shares', each.shares, 1, MAX.deviceShares),
      count: within('kinds.devices.count', each.count, 1, MAX.machineDevices),
    })),
  };
}

const offerOf = ({ offer, state, stop, jobId, boost, request }: OfferNews) => ({
  ...{ offer: String(offer), state, stop, job: globalId('job', jobId), boost },
  request: request && {
    ...request,
    parts: request.parts?.map((part) => ({ ...part, ...devicesOf(part) })),
    ...devicesOf(request),
  },
});

const devicesOf = ({ devicesPerTask }: Pick<OfferedPart, 'devicesPerTask'>) => ({
  devicesPerTask: devicesPerTask ? [...devicesPerTask] : null,
});

const claimOf = (result: ClaimResult) => ({
  outcome: result.kind,
  ...(result.kind === 'GRANTED' ? result.job : {}),
});
