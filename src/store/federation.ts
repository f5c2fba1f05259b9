/**
 * Jobs that go to peers and come from them (src/federation/PROTOCOL.md), as a part of the store: the API is the owner's side, the room
 * `federation` the guest's. Like the rest of the store it has two implementations, which pass one conformance suite.
 */
import type { QueueLoad } from '../core/grid-tree/index.js';
import type { JobPart, JobPreference } from '../core/model.js';
import { type AlikeDevices, mostServedBy } from '../core/resources/devices.js';
import type { Share } from './bounds.js';
import {
  type GrantedFields,
  type OfferedFields,
  type StayingFields,
  type StoredJob,
  stayingFields,
} from './job-fields.js';
import type { RunReport, RunUsage } from './run-reports.js';

export type { QueueLoad } from '../core/grid-tree/index.js';

/** What of our data peers reach. */
export interface Reach {
  /** Hosts of datasets' URLs that are not public. */
  dataHosts: readonly string[];
  /** The service itself, for copies of what lies at its sites only; null: they do not. */
  publicUrl: string | null;
}
/** Machines of one kind at one site, as a peer tells of them. */
export interface MachineKind {
  /** Machines with the same number are at one site: tasks of a job do not run at two. */
  site: number;
  os: string;
  architecture: string;
  cpus: number;
  memoryMb: number;
  /** Tasks that share each of them; null: it is shared in space, by CPUs. */
  maxTasks: number | null;
  machines: number;
  /** Services on the way to them: 1, the peer's own; 2, of a peer of its. */
  hops: number;
  /** Kinds of licenses there. */
  licenses: readonly string[];
  /** Devices of each; none, where versions before 3 told of it. */
  devices: readonly AlikeDevices[];
}

/** What a peer says when it asks for news. */
export interface Asked {
  /** The service that it is. */
  service: string;
  /** The protocol's version that it speaks: none of its runs hands files over before 2. */
  protocol: number;
  /** It knows the news up to here. */
  after: number;
  /** So many more jobs of ours it takes. */
  room: number;
  kinds: readonly MachineKind[];
  /** Classes, by name, in which it takes jobs of ours; none before version 3. */
  classes: readonly string[];
  /** Where it has jobs that it was offered: names of schedulers, from its root down. */
  places: readonly Place[];
  /** What a job of ours would find there; null: it does not say. */
  load: ToldLoad | null;
}

/** With how old it is, seconds. */
export interface ToldLoad extends QueueLoad {
  ageS: number;
}

export interface Place {
  offer: number;
  path: readonly string[];
}

export type OfferState = 'OFFERED' | 'CLAIMED' | 'WITHDRAWN';

/** What a peer is told of a job of ours. */
export interface OfferNews {
  offer: number;
  version: number;
  state: OfferState;
  /** The granted run is to be stopped. */
  stop: boolean;
  jobId: number;
  boost: number;
  /** Null unless it can be claimed. */
  request: OfferedJob | null;
}

/** Sites are their owner's. */
export type OfferedPreference = Omit<JobPreference, 'siteId' | 'licenses'> & { licenses?: string[] };

/** What travels of a part: a job of which a part asks for more stays here (`partsStay`). */
export type OfferedPart = Pick<JobPart, 'tasks' | 'cpusPerTask' | 'memoryMbPerTask' | 'devicesPerTask'>;

/** What a part may ask for that means something at our sites only, as of a job without parts. */
export const stayingOfParts = [
  ...(['resourcesPerTask', 'tasksPerMachine', 'exclusive', 'allAlike', 'sameSwitch'] as const),
  'machineConstraint',
] as const satisfies readonly Exclude<keyof JobPart, keyof OfferedPart>[];

/** Amounts of no kind only say that there are devices (store/job-fields.ts). */
const isAsked = (value: unknown, field: keyof StayingFields): boolean =>
  value != null && (field !== 'resourcesPerTask' || Object.keys(value).length > 0);

/** The first field that means something at our sites only; null: none does. */
export const stayingField = (job: Pick<StoredJob, keyof StayingFields>): keyof StayingFields | null =>
  stayingFields.find((field) => isAsked(job[field], field)) ?? null;

/** Some part asks for what peers are not told. */
export const partsStay = (parts: readonly JobPart[] | null): boolean =>
  (parts ?? []).some((part) => stayingOfParts.some((field) => isAsked(part[field], field)));

/** Kinds of the devices that the job, or a part of it, asks for by what they are. */
export const kindsOfDevices = ({
  devicesPerTask,
  parts,
}: Pick<OfferedJob, 'devicesPerTask' | 'parts'>): string[] =>
  [devicesPerTask, ...(parts ?? []).map((part) => part.devicesPerTask)].flatMap((requests) =>
    (requests ?? []).map(({ kind }) => kind),
  );

/** What is said of a job since which version of the protocol. */
export type VersionedFields = Pick<StoredJob, 'class' | 'devicesPerTask' | 'parts' | 'outputs'>;

/** The first version of the protocol in which the job can be offered. */
export function firstVersionOf(job: VersionedFields): 1 | 2 | 3 {
  if (job.class !== null || kindsOfDevices(job).length > 0) return 3;
  return job.parts !== null || job.outputs.length > 0 ? 2 : 1;
}
/** What a peer is taken to speak that has not asked since this is noted. */
export const VERSION_UNKNOWN = 2;

/** What travels of a job until it is granted. */
export interface OfferedJob extends Omit<OfferedFields, 'preferences' | 'parts'> {
  request: string;
  hops: number;
  visited: string[];
  user: string;
  bytes: number;
  preferences: OfferedPreference[];
  /** The amounts of the job are those of `envelopeOf` then; null: its tasks are all alike. */
  parts: readonly OfferedPart[] | null;
  /** Paths of the files that it hands over before its end is told. */
  outputs: string[];
}

/** A dataset that a granted job reads: whoever knows its addresses can fetch it. */
export interface GrantedInput {
  /** Place among the job's inputs, from 1. */
  place: number;
  /** Its id, which nothing else has that comes from the same service. */
  dataset: string;
  name: string;
  sizeMb: number;
  sha256: string | null;
  /** Each begins with http: or https: */
  urls: string[];
}

/** As they count in what a job takes. */
export const charsOfInputs = (inputs: readonly GrantedInput[]): number =>
  inputs
    .flatMap(({ dataset, name, sha256, urls }) => [dataset, name, sha256 ?? '', ...urls])
    .reduce((sum, one) => sum + one.length, 0);

/** What a peer runs. */
export interface GrantedJob extends GrantedFields {
  epoch: number;
  inputs: GrantedInput[];
}

/** PENDING: it is a job of a peer of ours, who has not granted it to us yet, or there is enough in the answer; ask again. */
export type ClaimResult = { kind: 'REFUSED' | 'PENDING' } | { kind: 'GRANTED'; job: GrantedJob };

export interface Claimed {
  results: ClaimResult[];
  touched: (number | null)[];
}

/** Offers in one answer. */
export const OFFERS_PAGE = 1_000;
/** What a peer has told of its queue counts for so long, seconds. */
export const LOAD_KEPT_S = 60;

/** What keeps a waiting job from being offered to a peer: in this order, the first that applies. */
export const hindrances = [
  // The peer is isolated, is offered nothing, or has never asked.
  'ISOLATED',
  'NEVER',
  'UNSEEN',
  // The job has what means something at the sites of this service only, or outputs that become datasets there.
  'STAYS',
  'DATASETS',
  // The peer speaks an earlier version of the protocol: 1 has neither outputs nor parts, and 2 neither classes nor devices.
  'OLDER',
  // The peer takes no jobs of that class from us.
  'CLASS',
  // It does not wait for a scheduler.
  'HELD',
  // It is a peer's: granted to us, or one that has seen it already, or has passed as many services as it may.
  'GRANTED',
  'VISITED',
  'HOPS',
  // The peer gave it back a moment ago, or a run of it failed there and it could run here.
  'RETURNED',
  'FAILED_THERE',
  // What it reads cannot be fetched from anywhere.
  'DATA',
  // None of the machines of which the peer has told can run it.
  'UNFIT',
  // By the rule for the peer it stays here, for now.
  'NOT_NEEDED',
  'NOT_CHEAPER',
  // It could be offered: the peer takes no more now, or has not asked since.
  'NO_ROOM',
] as const;
export type Hindrance = (typeof hindrances)[number];

/** A job and a peer. */
export interface Standing {
  siteId: number;
  /** null: it is not offered. */
  state: Exclude<OfferState, 'WITHDRAWN'> | null;
  /** Why not; null: it is. */
  hindrance: Hindrance | null;
  /** Not offered again before, epoch seconds; null: it never was. */
  againAt: number | null;
  /** Where the peer has it, from its root down; empty: it has not said. */
  path: readonly string[];
}

/** The owner's side. */
export interface Offers {
  /**
   * Peers are told of all that is open once more, by numbers that have never been given out, also if the database was restored from a backup: a
   * cursor of the days that were lost is behind them. Once for each API process.
   */
  tellAgain(): Promise<unknown>;
  /** The peer lives, and is told what is new for it; more of our jobs are offered to it first, if it has room. */
  exchange(siteId: number, asked: Asked, now: number): Promise<OfferNews[]>;
  /**
   * Decides who runs the jobs of these offers: aligned with them. A claim that was granted is granted again with the same epoch, so an answer
   * that was lost does no harm; of a job that is not the peer's any more, or never was, it is refused. `touched`: the schedulers that held the
   * jobs, and may have stopped at one of them.
   */
  claim(siteId: number, offers: readonly number[], now: number): Promise<Claimed>;
  /**
   * The peer has given these up, whether it was granted them or not: a granted run ends as MACHINE_FAILED if the peer has not
   * started it, so that it runs elsewhere, else as LOST. Answers with the schedulers that have
   * something new to do.
   */
  giveBack(
    siteId: number,
    offers: readonly number[],
    maxAttempts: number,
    now: number,
  ): Promise<(number | null)[]>;
  /** How a job stands with each peer in service. */
  standings(jobId: number, now: number): Promise<Standing[]>;
  /** Which of these datasets no service but ours could fetch. */
  unfetchable(datasetIds: readonly number[]): Promise<number[]>;
}

/** A peer that we have a key of. */
export interface Lender {
  siteId: number;
  name: string;
  url: string;
  secret: string;
  cursor: number;
}

/** A new offer. */
export interface NewCopy {
  offer: number;
  jobId: number;
  boost: number;
  request: OfferedJob;
}

/** What an owner has to hear: of a copy that was granted. */
export interface Told extends Omit<RunReport, 'jobId' | 'phase' | 'outputs' | 'steps' | 'usage'>, RunUsage {
  offer: number;
  /** The owner's number of it. */
  jobId: number;
  startedAt: number | null;
  /** It has ended; `cause` says how. */
  over: boolean;
  told: number;
  /** Our own number of it, and of its run; null: none of it has outputs to be handed over. */
  files: { jobId: number; epoch: number } | null;
  /** Of what its first task wrote the first and the last pieces; null: it has not ended, or nothing was kept. */
  outputs: { stream: 'STDOUT' | 'STDERR'; start: number; base64: string; bytes: number }[] | null;
}

/** What we tell a peer of ourselves. */
export interface Ourselves {
  service: string;
  room: number;
  kinds: MachineKind[];
  /** Classes in which we take its jobs, in order. */
  classes: string[];
}

/** The guest's side. Each of these is of one peer, by its site. */
export interface Copies {
  /**
   * The peers that this process is to talk to: those with a key that no other process has talked to for `leaseS`. They are this worker's
   * from now on, for as long as it asks again in time.
   */
  lenders(worker: string, leaseS: number): Promise<Lender[]>;
  /** They are anybody's again. */
  leave(worker: string): Promise<unknown>;
  /**
   * Who we are, how many more of the peer's jobs we take, in which classes, and what they could run on: here, or at peers of ours who have
   * asked us.
   */
  ourselves(siteId: number): Promise<Ourselves>;
  /** What a job of the peer would find here: what waits with no less boost than it would have, and the machines that are up. */
  load(siteId: number): Promise<QueueLoad>;
  /** The peer has answered, or why not. */
  reached(siteId: number, failure: string | null): Promise<unknown>;
  /** We know its news up to here. */
  advance(siteId: number, cursor: number): Promise<unknown>;
  /** Where copies are of which the peer knows otherwise, oldest first: below a peer of ours, as that one says. */
  places(siteId: number): Promise<Place[]>;
  /** The peer knows that they are there. */
  placed(siteId: number, known: readonly Place[]): Promise<unknown>;
  /**
   * Takes jobs of a peer in as jobs of the users whom the peer's are mapped to, and within what those may submit. An offer that is known is
   * left alone, whatever became of it. Answers with those that are not taken: beyond the cap or a user's share or quota, with numbers that
   * no job may have, of a class that the peer's jobs may not have here, with kinds of devices that nobody here knows, of a request that has come
   * another way and is open here, or while the peer is isolated.
   */
  accept(siteId: number, copies: readonly NewCopy[], share: Share, now: number): Promise<number[]>;
  /** The owner has boosted them. */
  boost(siteId: number, boosts: readonly { offer: number; boost: number }[]): Promise<(number | null)[]>;
  /**
   * These are not to be run: those that wait end, granted runs are asked to stop. UNGRANTED: all that were not granted; ISOLATED: these, if
   * the peer is isolated. Answers with the schedulers that have something new to do.
   */
  withdraw(
    siteId: number,
    offers: readonly number[] | 'UNGRANTED' | 'ISOLATED',
    now: number,
  ): Promise<(number | null)[]>;
  /**
   * Withdraws what we still have of earlier offers of these jobs. Their owner offers them anew, so those are over; it tells that by the new
   * offer alone if we have not asked in between.
   */
  supersede(siteId: number, copies: readonly NewCopy[], now: number): Promise<(number | null)[]>;
  /** Copies that wait for their grant: they have machines. With what they said that they take. */
  toClaim(siteId: number): Promise<{ offer: number; bytes: number }[]>;
  /**
   * What the owner takes for ours and is over here, for one of us was restored from a backup: nobody would ever end it. `claimed`: also those that
   * are not known.
   */
  notHere(siteId: number, offered: readonly number[], claimed: readonly number[]): Promise<number[]>;
  /** Copies that nobody has granted, of a class that the peer's jobs may not have here any more. */
  unclassed(siteId: number): Promise<number[]>;
  /** Copies that have had machines for longer than this without a grant. */
  unanswered(siteId: number, patienceS: number): Promise<number[]>;
  /**
   * The owner has granted these: their agents are told. A copy that ended meanwhile is the owner's to hear of, with the epoch that it has
   * given.
   */
  granted(siteId: number, grants: readonly (GrantedJob & { offer: number })[]): Promise<void>;
  /** Ends copies with machines that were to be stopped before anybody granted them: no agent knows of them. */
  endUngranted(siteId: number, now: number): Promise<(number | null)[]>;
  /** Starts and ends that the peer does not know yet, oldest jobs first; so many bytes of outputs, or one job. */
  toReport(siteId: number, bytesMax: number): Promise<Told[]>;
  /** Offers of which the owner has to hear that we gave them up, for nothing was granted. */
  toReturn(siteId: number): Promise<number[]>;
  /** The owner knows: 1 that it has started, 2 that it is over. */
  told(siteId: number, offers: readonly number[], level: 1 | 2): Promise<unknown>;
}

/**
 * Whether a peer could be offered a job at all: nothing of it means something at our sites only, and what it reads are datasets, which may
 * have, or get, a URL from which others can fetch them.
 */
export const mayLeave = (
  job: Pick<StoredJob, keyof StayingFields | 'parts' | 'inputs' | 'outputs'>,
): boolean =>
  stayingField(job) === null &&
  !partsStay(job.parts) &&
  job.outputs.every(({ dataset }) => dataset == null) &&
  job.inputs.every((input) => 'datasetId' in input && input.from === undefined);

/** What a job asks of machines of which peers have told. */
export type AskedOfPeers = Pick<
  StoredJob,
  | 'os'
  | 'architecture'
  | 'licenses'
  | 'tasks'
  | 'cpusPerTask'
  | 'memoryMbPerTask'
  | 'devicesPerTask'
  | 'parts'
>;

/**
 * Whether the machines of one site can run the job, fewer than `hops` services away; of several parts each, and all of them by their sums. As a
 * statement: `fits` in store/federation/queue.ts.
 */
export function fitsKinds(job: AskedOfPeers, kinds: readonly MachineKind[], hops: number): boolean {
  const { os, architecture, licenses, parts } = job;
  const bySite = new Map<number, MachineKind[]>();
  for (const kind of kinds) {
    const isAble =
      (os ?? kind.os) === kind.os &&
      (architecture ?? kind.architecture) === kind.architecture &&
      licenses.every((one) => kind.licenses.includes(one)) &&
      kind.hops < hops;
    if (!isAble) continue;
    const there = bySite.get(kind.site);
    if (there === undefined) bySite.set(kind.site, [kind]);
    else there.push(kind);
  }
  return [...bySite.values()].some(
    (there) =>
      (parts ?? [job]).every((asked) => tasksOn(asked, there) >= asked.tasks) &&
      (parts === null || haveSum(parts, there)),
  );
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);

/** How many such tasks the machines have room for. */
const tasksOn = (
  { cpusPerTask, memoryMbPerTask, devicesPerTask }: OfferedPart,
  kinds: readonly MachineKind[],
): number =>
  sumOf(
    kinds.map(({ cpus, memoryMb, maxTasks, machines, devices }) => {
      const ofCpus = maxTasks === null ? Math.floor(cpus / cpusPerTask) : cpus >= cpusPerTask ? maxTasks : 0;
      const ofMemory = memoryMbPerTask > 0 ? Math.floor(memoryMb / memoryMbPerTask) : 1_000_000;
      const ofDevices = devicesPerTask == null ? Infinity : mostServedBy(devices, devicesPerTask);
      return machines * Math.min(ofCpus, ofMemory, ofDevices);
    }),
  );

/** What shares its CPUs in time has any number of them. */
function haveSum(parts: readonly OfferedPart[], kinds: readonly MachineKind[]): boolean {
  const cpus = sumOf(
    kinds.map(({ machines, cpus, maxTasks }) => (maxTasks === null ? machines * cpus : Infinity)),
  );
  const memoryMb = sumOf(kinds.map(({ machines, memoryMb }) => machines * memoryMb));
  return (
    sumOf(parts.map(({ tasks, cpusPerTask }) => tasks * cpusPerTask)) <= cpus &&
    sumOf(parts.map(({ tasks, memoryMbPerTask }) => tasks * memoryMbPerTask)) <= memoryMb
  );
}
