/** The model of federation: the owner's side and the guest's, over the model of the store, as src/store/federation.ts says it. */

import type { JobClasses } from '../../src/core/classes.js';
import { isForwarded, isGranted, isTaken, mayGo, type QueueLoad } from '../../src/core/grid-tree/index.js';
import type { Dataset, License, Site, SiteState, TreeScheduler, UserClass } from '../../src/core/model.js';
import type { AlikeDevices, OwnedDevice } from '../../src/core/resources/devices.js';
import { type EndCause, isLive, isPending, isTerminal, type JobAction } from '../../src/core/states.js';
import { MAX } from '../../src/platform/limits.js';
import { outOfBounds } from '../../src/store/bounds.js';
import type { PeerRow } from '../../src/store/directory/peers.js';
import {
  boostHere,
  classesForPeer,
  copiedJob,
  GRANTED_CHARS,
  isKnownHere,
  REST_S,
} from '../../src/store/federation/rules.js';
import {
  type Asked,
  type Claimed,
  type ClaimResult,
  type Copies,
  charsOfInputs,
  firstVersionOf,
  fitsKinds,
  type GrantedInput,
  type GrantedJob,
  type Hindrance,
  type Lender,
  LOAD_KEPT_S,
  type MachineKind,
  type NewCopy,
  OFFERS_PAGE,
  type OfferNews,
  type Offers,
  type Ourselves,
  type Place,
  partsStay,
  type Standing,
  stayingField,
  type Told,
  VERSION_UNKNOWN,
} from '../../src/store/federation.js';
import { grantedFields, offeredFields, only } from '../../src/store/job-fields.js';
import { holderOf, toldEpoch } from '../../src/store/rules.js';
import type {
  JobSelection,
  NewJob,
  OutputPiece,
  ReportOutcome,
  RunOutput,
  RunReport,
  SelectionOutcome,
  Share,
  TrafficCount,
} from '../../src/store/store.js';
import { UNMEASURED } from '../../src/store/usage.js';
import type { MemoryJob, MemoryMachine, MemoryRun, MemoryUser, ValuesOf } from './memory-rows.js';

/** Pages are those of the store on Postgres. */
const REPORTS_PAGE = 500;
const KINDS_MAX = 500;
const HOPS_TOLD = 8;
const PIECES = 4;

/** What it needs of the model of the store. */
interface Base {
  readonly users: ReadonlyMap<number, MemoryUser>;
  readonly sites: ReadonlyMap<number, Site & { removed: boolean }>;
  readonly schedulers: ReadonlyMap<number, TreeScheduler>;
  readonly machines: ReadonlyMap<number, MemoryMachine>;
  readonly licenses: ReadonlyMap<number, License & { removed: boolean }>;
  readonly jobs: ReadonlyMap<number, MemoryJob>;
  readonly runs: ReadonlyMap<string, MemoryRun>;
  readonly outputs: ReadonlyMap<string, OutputPiece[]>;
  readonly datasets: ReadonlyMap<number, Dataset>;
  readonly traffic: ReadonlyMap<string, TrafficCount>;
  readonly decisions: {
    jobId: number;
    kind: 'DISPATCH' | 'START' | 'TAKE_BACK' | 'PREEMPT';
    policyVersion: number;
  }[];
  readonly policyVersion: number;
  /** Those of the policy; null: it has none. */
  readonly classes: JobClasses | null;
  now(): number;
  addUser(userClass: UserClass, quota: null, name: string, role: MemoryUser['role']): number;
  addSite(name: string): number;
  setSiteState(siteId: number, state: SiteState): void;
  change<A extends JobAction>(job: MemoryJob, action: A, values: ValuesOf<A>): void;
  inOrder(job: MemoryJob, now: number): number;
  begin(
    job: MemoryJob,
    run: Pick<MemoryRun, 'epoch' | 'siteId' | 'assignedAt' | 'plannedS' | 'placedBy'>,
  ): void;
  report(siteId: number | null, reports: readonly RunReport[], maxAttempts: number): ReportOutcome;
  reprioritize(selection: JobSelection, boost: number): Promise<SelectionOutcome>;
  hasRoom(user: MemoryUser, more: Share, share: Share, now: number): boolean;
  takeIn(job: NewJob, userId: number, bytes: number, now: number): number;
  cancelFor(selection: JobSelection, now: number, cause: EndCause): SelectionOutcome;
}

export interface MemoryPeer
  extends Pick<
    PeerRow,
    | 'siteId'
    | 'name'
    | 'userId'
    | 'url'
    | 'isolated'
    | 'forward'
    | 'neededAfterS'
    | 'hops'
    | 'lostAfterS'
    | 'foreignMax'
    | 'foreignBoost'
    | 'serviceId'
    | 'protocol'
    | 'kinds'
    | 'classes'
    | 'load'
    | 'loadAt'
    | 'seenAt'
    | 'reachedAt'
    | 'failure'
  > {
  secret: string | null;
  cursor: number;
  worker: string | null;
  workerSeenAt: number;
  users: Map<string, number>;
}

interface MemoryOffer {
  jobId: number;
  siteId: number;
  offer: number;
  version: number;
  /** Of the run that was granted. */
  epoch: number | null;
  withdrawn: boolean;
  againAt: number;
  path: readonly string[];
}

export interface ForeignJob {
  jobId: number;
  siteId: number;
  offer: number;
  ownerJobId: number;
  ownerUser: string;
  request: string;
  hops: number;
  visited: readonly string[];
  epoch: number | null;
  inputs: readonly GrantedInput[] | null;
  told: number;
  pathTold: readonly string[];
}

/** A job that waits, as others are compared with it. */
interface Waiting {
  job: MemoryJob;
  fitsHome: boolean;
  ahead: number;
  workAhead: number;
}

const workOf = ({ estimateS, benchmark, tasks, cpusPerTask }: MemoryJob): number =>
  estimateS * benchmark * tasks * cpusPerTask;
/** Of the first task, the first and the last pieces of a stream. */
function firstAndLast(kept: readonly OutputPiece[], stream: OutputPiece['stream']): OutputPiece[] {
  const own = kept
    .filter((piece) => piece.stream === stream && ((piece as RunOutput).task ?? 0) === 0)
    .sort((a, b) => a.start - b.start);
  return own.filter((_, i) => i < PIECES || i >= own.length - PIECES);
}

/** As of the machine, alike ones together. */
function alikeDevices(devices: readonly OwnedDevice[]): AlikeDevices[] {
  const alike = new Map<string, AlikeDevices>();
  for (const { kind, model, memoryMb, shares } of devices) {
    // In their order: no model before every other.
    const key = [kind, model ?? '', ...[memoryMb, shares].map((n) => String(n).padStart(10, '0'))].join('\0');
    alike.set(key, { kind, model, memoryMb, shares, count: (alike.get(key)?.count ?? 0) + 1 });
  }
  const sorted = [...alike].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  return sorted.slice(0, MAX.alikeDevices);
}

const none = { exitCode: null, signal: null, cpuS: null, ioWaitS: null };

export class MemoryFederation {
  readonly peers = new Map<number, MemoryPeer>();
  readonly rows = new Map<string, MemoryOffer>();
  readonly foreign = new Map<number, ForeignJob>();
  /** By dataset: where it can be fetched from anywhere. */
  readonly urls = new Map<number, { name: string; urls: string[] }>();
  serviceId = 'service';
  private lastNumber = 0;

  constructor(private readonly store: Base) {}

  dump(): object {
    const { store: _, offers: __, copies: ___, ...own } = this;
    return own;
  }

  restore(own: object): void {
    Object.assign(this, own);
  }

  // What tests set up ----------------------------------------------------------------------------------------------------

  addPeer(name: string, settings: Partial<MemoryPeer> = {}): number {
    const { store } = this;
    const siteId = store.addSite(name);
    store.setSiteState(siteId, 'DRAINING');
    const userId = settings.userId ?? store.addUser('REGULAR', null, `peer-${name}`, 'PEER');
    this.peers.set(siteId, {
      ...{
        siteId,
        name,
        url: null,
        secret: null,
        protocol: null,
        isolated: false,
        forward: 'WHEN_NEEDED',
        neededAfterS: 600,
      },
      ...{
        hops: 4,
        lostAfterS: 3600,
        foreignMax: 1000,
        foreignBoost: 0,
        serviceId: null,
        kinds: [],
        classes: [],
      },
      ...{ load: null, loadAt: null, seenAt: null, reachedAt: null, failure: null, cursor: 0 },
      ...{ worker: null, workerSeenAt: 0, users: new Map(), ...settings, userId },
    });
    return siteId;
  }

  /** As an administrator changes it: what waits is withdrawn where another rule holds from now on. */
  setPeer(siteId: number, settings: Partial<MemoryPeer>): void {
    const peer = this.peer(siteId);
    Object.assign(peer, settings);
    const asked = ['forward', 'neededAfterS', 'hops'] as const;
    if (settings.isolated !== true && asked.every((one) => settings[one] === undefined)) return;
    for (const offer of this.offersOf(siteId))
      if (offer.epoch === null && !offer.withdrawn)
        Object.assign(offer, { withdrawn: true, version: this.number() });
  }

  private peer(siteId: number): MemoryPeer {
    const peer = this.peers.get(siteId);
    if (peer === undefined) throw new Error(`there is no peer with the site ${siteId}`);
    return peer;
  }

  private number(): number {
    return ++this.lastNumber;
  }

  private offersOf(siteId: number): MemoryOffer[] {
    return [...this.rows.values()].filter((offer) => offer.siteId === siteId);
  }

  private copiesOf(siteId: number): { copy: ForeignJob; job: MemoryJob }[] {
    const found = [...this.foreign.values()].filter((copy) => copy.siteId === siteId);
    return found
      .map((copy) => ({ copy, job: this.store.jobs.get(copy.jobId) as MemoryJob }))
      .sort((a, b) => a.copy.jobId - b.copy.jobId);
  }

  // What happens to jobs ---------------------------------------------------------------------------------------------------

  /** Offers follow their job. */
  jobChanged(job: MemoryJob, before: Pick<MemoryJob, 'boost' | 'state'>): void {
    const isNews =
      job.boost !== before.boost || (job.state === 'CANCELLING' && before.state !== 'CANCELLING');
    for (const offer of this.rows.values()) {
      if (offer.jobId !== job.id || offer.withdrawn) continue;
      const isOver =
        offer.epoch === null
          ? job.note !== null || !isPending(job.state)
          : offer.epoch !== job.epoch || !isLive(job.state);
      if (isOver || isNews) Object.assign(offer, { version: this.number(), withdrawn: isOver });
    }
  }

  jobDeleted(id: number): void {
    this.foreign.delete(id);
    for (const [key, { jobId }] of this.rows) if (jobId === id) this.rows.delete(key);
  }

  // What waits here ----------------------------------------------------------------------------------------------------------

  private licensesAt(siteId: number): string[] {
    return [...this.store.licenses.values()]
      .filter((one) => !one.removed && (one.siteId ?? siteId) === siteId)
      .map(({ kind }) => kind);
  }

  private machinesHere() {
    const { sites, machines } = this.store;
    return [...machines.values()].filter(
      ({ siteId, state, removed }) => !removed && state === 'UP' && sites.get(siteId)?.state === 'UP',
    );
  }

  private kindsHere(hops: number): MachineKind[] {
    const kinds = new Map<string, MachineKind>();
    const sites = [...new Set(this.machinesHere().map(({ siteId }) => siteId))].sort((a, b) => a - b);
    for (const {
      siteId,
      os,
      architecture,
      cpus,
      memoryMb,
      maxTasks = null,
      devices = [],
    } of this.machinesHere()) {
      const shape = { os, architecture, cpus, memoryMb, maxTasks, devices: alikeDevices(devices) };
      const key = JSON.stringify([siteId, shape]);
      const licenses = [...new Set(this.licensesAt(siteId))].sort();
      const site = sites.indexOf(siteId) + 1;
      const known = kinds.get(key) ?? { site, ...shape, machines: 0, hops, licenses };
      kinds.set(key, { ...known, machines: known.machines + 1 });
    }
    return [...kinds.values()];
  }

  private home(): { power: number; benchmark: number } {
    let power = 0;
    let cpus = 0;
    for (const machine of this.machinesHere()) {
      power += machine.cpus * machine.benchmark;
      cpus += machine.cpus;
    }
    return { power, benchmark: cpus > 0 ? power / cpus : 0 };
  }

  private queue(jobs: readonly MemoryJob[]): Map<number, Waiting> {
    const kinds = this.kindsHere(0);
    const found = new Map<number, Waiting>();
    let ahead = 0;
    let workAhead = 0;
    for (const job of [...jobs].sort((a, b) => b.boost - a.boost || a.id - b.id)) {
      const fitsHome = fitsKinds(job, kinds, 1);
      found.set(job.id, { job, fitsHome, ahead, workAhead });
      if (!fitsHome) continue;
      ahead++;
      workAhead += workOf(job);
    }
    return found;
  }

  private waiting(): MemoryJob[] {
    return [...this.store.jobs.values()].filter(({ state }) => isPending(state));
  }

  // The owner's side ---------------------------------------------------------------------------------------------------------

  readonly offers: Offers = {
    tellAgain: async () => {
      this.lastNumber = Math.max(this.number(), Math.floor(this.store.now() * 1e6));
      for (const offer of this.rows.values()) if (!offer.withdrawn) offer.version = this.number();
    },
    exchange: async (siteId, asked, now) => this.exchange(siteId, asked, now),
    claim: async (siteId, offers, now) => this.claim(siteId, offers, now),
    giveBack: async (siteId, offers, maxAttempts, now) => this.giveBack(siteId, offers, maxAttempts, now),
    standings: async (jobId, now) => this.standings(jobId, now),
    unfetchable: async (ids) => ids.filter((id) => this.store.datasets.has(id) && !this.urls.has(id)),
  };

  private exchange(siteId: number, asked: Asked, now: number): OfferNews[] {
    const peer = this.peer(siteId);
    if (this.store.sites.get(siteId)?.removed) return [];
    const { ageS = 0, ...load } = asked.load ?? {};
    this.takeBackUnspoken(siteId, asked);
    Object.assign(peer, {
      ...{
        seenAt: now,
        serviceId: asked.service,
        protocol: asked.protocol,
        kinds: structuredClone(asked.kinds),
        classes: [...asked.classes],
      },
      ...{ load: asked.load && load, loadAt: asked.load && now - ageS },
    });
    for (const [key, { siteId: at, withdrawn, version, againAt }] of this.rows)
      if (at === siteId && withdrawn && version <= asked.after && againAt <= now) this.rows.delete(key);
    for (const { offer, path } of asked.places)
      for (const one of this.offersOf(siteId))
        if (one.offer === offer && !one.withdrawn) one.path = [...path];
    if (!peer.isolated && peer.forward !== 'NEVER' && asked.room > 0) this.offer(peer, asked, now);
    return this.offersOf(siteId)
      .filter(({ version }) => version > asked.after)
      .sort((a, b) => a.version - b.version)
      .slice(0, OFFERS_PAGE)
      .map((offer) => this.news(offer));
  }

  private takeBackUnspoken(siteId: number, { protocol, classes }: Asked): void {
    for (const offer of this.offersOf(siteId)) {
      const job = this.store.jobs.get(offer.jobId) as MemoryJob;
      const isSpoken = firstVersionOf(job) <= protocol && (job.class === null || classes.includes(job.class));
      if (offer.epoch === null && !offer.withdrawn && !isSpoken)
        Object.assign(offer, { withdrawn: true, version: this.number() });
    }
  }

  /** What keeps the job from being offered to the peer, whatever is here and there; and whether what it reads can be fetched. */
  private hindrance({ job, fitsHome }: Waiting, peer: MemoryPeer, now: number): Hindrance | null {
    const foreign = this.foreign.get(job.id);
    const offer = this.rows.get(`${job.id}/${peer.siteId}`);
    if (peer.isolated) return 'ISOLATED';
    if (peer.forward === 'NEVER') return 'NEVER';
    if (peer.seenAt === null) return 'UNSEEN';
    if (stayingField(job) !== null || partsStay(job.parts)) return 'STAYS';
    if (job.outputs.some(({ dataset }) => dataset != null)) return 'DATASETS';
    if ((peer.protocol ?? VERSION_UNKNOWN) < firstVersionOf(job)) return 'OLDER';
    if (job.class !== null && !peer.classes.includes(job.class)) return 'CLASS';
    if (!isPending(job.state)) return 'HELD';
    if (foreign !== undefined && foreign.epoch !== null) return 'GRANTED';
    if (foreign?.siteId === peer.siteId || foreign?.visited.includes(peer.serviceId ?? '')) return 'VISITED';
    if ((foreign?.hops ?? peer.hops) <= 1) return 'HOPS';
    if (offer?.withdrawn && offer.againAt > now) return 'RETURNED';
    const failed = job.avoids?.failed.sites ?? [];
    return fitsHome && failed.includes(peer.siteId) ? 'FAILED_THERE' : null;
  }

  private isFetchable({ inputs }: MemoryJob): boolean {
    return inputs.every(
      (input) =>
        'datasetId' in input && (!this.store.datasets.has(input.datasetId) || this.urls.has(input.datasetId)),
    );
  }

  private betweenS(now: number): number {
    let services = 0;
    for (const one of this.store.traffic.values())
      if (one.at > now - 3600 && !this.peers.has(one.siteId)) services += one.services;
    return services > 0 ? 3600 / services : 0;
  }

  private offer(peer: MemoryPeer, asked: Asked, now: number): void {
    const { siteId, forward, neededAfterS } = peer;
    const waiting = this.queue(this.waiting());
    const unseen = this.offersOf(siteId).filter((one) => one.version > asked.after && !one.withdrawn);
    const there = asked.load !== null && asked.load.ageS <= LOAD_KEPT_S ? { ...asked.load } : null;
    const ofUnseen = unseen.reduce(
      (sum, { jobId }) => sum + workOf(this.store.jobs.get(jobId) as MemoryJob),
      0,
    );
    if (there !== null) {
      there.ahead += unseen.length;
      there.work += ofUnseen;
    }
    const betweenS = this.betweenS(now);
    const { power, benchmark } = this.home();
    const needs = [...waiting.values()]
      .sort((a, b) => a.job.id - b.job.id)
      .filter((one) => {
        const open = this.rows.get(`${one.job.id}/${siteId}`);
        const hops = this.foreign.get(one.job.id)?.hops ?? peer.hops;
        if (open !== undefined && !open.withdrawn) return false;
        if (this.hindrance(one, peer, now) !== null || !this.isFetchable(one.job)) return false;
        if (!fitsKinds(one.job, asked.kinds, hops)) return false;
        const waitedS = now - one.job.submittedAt;
        if (forward === 'WHEN_NEEDED') return !one.fitsHome || waitedS + one.ahead * betweenS > neededAfterS;
        return forward === 'ALWAYS' || !one.fitsHome || one.ahead > (asked.load?.ahead ?? Infinity);
      })
      .slice(0, Math.max(0, asked.room - unseen.length));
    for (const { job, fitsHome, ahead, workAhead } of needs) {
      const foreign = this.foreign.get(job.id);
      const way = { hops: foreign?.hops ?? peer.hops, visited: foreign?.visited ?? [] };
      if (!mayGo({ ...way, from: foreign?.siteId === siteId ? asked.service : null }, asked.service))
        continue;
      const work = job.estimateS * job.benchmark;
      const here: QueueLoad = { ahead, work: workAhead, power, benchmark };
      const need = { fitsHome, waitedS: now - job.submittedAt, ahead, betweenS, work, here, there };
      if (!isForwarded(forward, neededAfterS, need)) continue;
      const number = this.number();
      const open = { jobId: job.id, siteId, offer: number, version: number, epoch: null, withdrawn: false };
      this.rows.set(`${job.id}/${siteId}`, { ...open, againAt: now, path: [] });
      if (there === null) continue;
      there.ahead++;
      there.work += work;
    }
  }

  private news({ offer, version, epoch, withdrawn, jobId, siteId }: MemoryOffer): OfferNews {
    const job = this.store.jobs.get(jobId) as MemoryJob;
    const isOpen = !withdrawn && epoch === null;
    const state = withdrawn ? 'WITHDRAWN' : epoch === null ? 'OFFERED' : 'CLAIMED';
    const stop = state === 'CLAIMED' && job.state === 'CANCELLING';
    const told = { offer, version, state, stop, jobId, boost: job.boost } as const;
    if (!isOpen) return { ...told, request: null };
    const foreign = this.foreign.get(jobId);
    const { preferences, ...fields } = structuredClone(only(job, offeredFields));
    return {
      ...told,
      request: {
        ...fields,
        preferences: preferences.filter((one) => one.siteId === undefined) as never,
        request: foreign?.request ?? `${this.serviceId}/${jobId}/${job.epoch + 1}`,
        hops: (foreign?.hops ?? this.peer(siteId).hops) - 1,
        visited: [...(foreign?.visited ?? []), this.serviceId],
        user: foreign?.ownerUser ?? (this.store.users.get(job.userId) as MemoryUser).name,
        outputs: job.outputs.map(({ path }) => path),
        bytes: job.bytes + charsOfInputs(this.inputsOf(job)),
      },
    };
  }

  private inputsOf(job: MemoryJob): GrantedInput[] {
    return job.inputs.flatMap((input, i) => {
      const id = 'datasetId' in input ? input.datasetId : 0;
      const dataset = this.store.datasets.get(id);
      if (dataset === undefined) return [];
      const { name = '', urls = [] } = this.urls.get(id) ?? {};
      const { sizeMb } = dataset;
      return [{ place: i + 1, dataset: `dataset_${id}`, name, sizeMb, sha256: null, urls: [...urls] }];
    });
  }

  private claim(siteId: number, offers: readonly number[], now: number): Claimed {
    const { store } = this;
    let chars = 0;
    const taken = new Map<number, MemoryOffer>();
    const results = offers.map((number): ClaimResult => {
      const offer = this.offersOf(siteId).find((one) => one.offer === number);
      if (offer === undefined) return { kind: 'REFUSED' };
      const job = store.jobs.get(offer.jobId) as MemoryJob;
      const foreign = this.foreign.get(job.id);
      const isNew = offer.epoch === null;
      const isOpen = !offer.withdrawn && isNew && isPending(job.state) && !this.peer(siteId).isolated;
      const isTheirs = !offer.withdrawn && offer.epoch === job.epoch && isLive(job.state);
      if (!isGranted({ isOpen, isTheirs })) return { kind: 'REFUSED' };
      const isFull = chars > GRANTED_CHARS;
      if (isNew && !isFull) taken.set(job.id, offer);
      if ((foreign !== undefined && foreign.epoch === null) || isFull) return { kind: 'PENDING' };
      const inputs = foreign?.inputs ? [...foreign.inputs] : this.inputsOf(job);
      chars += job.bytes + charsOfInputs(inputs);
      const run = store.runs.get(`${job.id}/${offer.epoch}`);
      const epoch = toldEpoch(offer.epoch ?? job.epoch + 1, run?.assignedAt ?? store.inOrder(job, now));
      return { kind: 'GRANTED', job: { ...structuredClone(only(job, grantedFields)), epoch, inputs } };
    });
    const touched = new Set<number | null>();
    for (const [id, offer] of [...taken].sort(([a], [b]) => a - b)) {
      const job = store.jobs.get(id) as MemoryJob;
      touched.add(holderOf(job.state, job.siteId));
      this.grant(job, offer, now);
    }
    return { results, touched: [...touched] };
  }

  private grant(job: MemoryJob, offer: MemoryOffer, now: number): void {
    const { store } = this;
    const { siteId } = offer;
    const epoch = job.epoch + 1;
    const { policyVersion } = store;
    const assignedAt = store.inOrder(job, now);
    const decide = (kind: 'TAKE_BACK' | 'DISPATCH' | 'START') =>
      store.decisions.push({ jobId: job.id, kind, policyVersion });
    if (job.state === 'DISPATCHED') {
      decide('TAKE_BACK');
      store.change(job, 'takeBack', {});
    }
    decide('DISPATCH');
    store.change(job, 'dispatch', { siteId, priority: null, dispatchedAt: store.inOrder(job, now) });
    Object.assign(offer, { epoch, version: this.number() });
    decide('START');
    store.begin(job, { siteId, epoch, assignedAt, plannedS: job.estimateS, placedBy: 'PEER' });
    store.change(job, 'start', { epoch });
  }

  private giveBack(
    siteId: number,
    offers: readonly number[],
    maxAttempts: number,
    now: number,
  ): (number | null)[] {
    const given = this.offersOf(siteId).filter(({ offer }) => offers.includes(offer));
    const live: RunReport[] = [];
    for (const offer of given.sort((a, b) => a.jobId - b.jobId)) {
      const { id, epoch, state } = this.store.jobs.get(offer.jobId) as MemoryJob;
      const isOver = offer.epoch !== epoch || !isLive(state);
      if (!isOver) {
        const cause = state === 'ASSIGNED' ? 'MACHINE_FAILED' : 'LOST';
        live.push({
          ...none,
          jobId: id,
          epoch,
          phase: 'ENDED',
          at: now,
          cause,
          message: 'the peer returned it',
        });
      }
      if (offer.withdrawn) continue;
      Object.assign(offer, { withdrawn: isOver, version: this.number(), againAt: now + REST_S });
    }
    return this.store.report(siteId, live, maxAttempts).touched;
  }

  private standings(jobId: number, now: number): Standing[] {
    const job = this.store.jobs.get(jobId);
    if (job === undefined) return [];
    const one = this.queue([job]).get(jobId) as Waiting;
    return [...this.peers.values()]
      .filter(({ siteId }) => !this.store.sites.get(siteId)?.removed)
      .map((peer) => {
        const { siteId, kinds, hops, forward } = peer;
        const offer = this.rows.get(`${jobId}/${siteId}`);
        const isOpen = offer !== undefined && !offer.withdrawn;
        const why = (): Hindrance => {
          if (!this.isFetchable(job)) return 'DATA';
          if (!fitsKinds(job, kinds, this.foreign.get(jobId)?.hops ?? hops)) return 'UNFIT';
          if (one.fitsHome && forward === 'WHEN_NEEDED') return 'NOT_NEEDED';
          return one.fitsHome && forward === 'WHEN_CHEAPER' ? 'NOT_CHEAPER' : 'NO_ROOM';
        };
        return {
          siteId,
          state: !isOpen ? null : offer.epoch === null ? 'OFFERED' : 'CLAIMED',
          hindrance: isOpen ? null : (this.hindrance(one, peer, now) ?? why()),
          againAt: offer?.againAt ?? null,
          path: offer?.path ?? [],
        };
      });
  }

  // The guest's side ---------------------------------------------------------------------------------------------------------

  readonly copies: Copies = {
    lenders: async (worker, leaseS) => this.lenders(worker, leaseS),
    leave: async (worker) => {
      for (const peer of this.peers.values()) if (peer.worker === worker) peer.worker = null;
    },
    ourselves: async (siteId) => this.ourselves(siteId),
    load: async (siteId) => {
      const most = this.peer(siteId).foreignBoost;
      const ahead = [...this.queue(this.waiting()).values()].filter(
        ({ fitsHome, job }) => fitsHome && job.boost >= most,
      );
      const work = ahead.reduce((sum, { job }) => sum + workOf(job), 0);
      return { ahead: ahead.length, work, ...this.home() };
    },
    reached: async (siteId, failure) => {
      const peer = this.peer(siteId);
      if (failure === null) peer.reachedAt = this.store.now();
      peer.failure = failure;
    },
    advance: async (siteId, cursor) => {
      const peer = this.peer(siteId);
      peer.cursor = Math.max(peer.cursor, cursor);
    },
    places: async (siteId) => this.places(siteId),
    placed: async (siteId, known) => {
      for (const { copy } of this.copiesOf(siteId))
        for (const { offer, path } of known) if (copy.offer === offer) copy.pathTold = [...path];
    },
    accept: async (siteId, copies, share, now) => this.accept(siteId, copies, share, now),
    boost: async (siteId, boosts) => {
      const more = this.peer(siteId).foreignBoost;
      const touched: (number | null)[] = [];
      for (const { copy, job } of this.open(siteId))
        for (const { offer, boost } of boosts) {
          const wanted = boostHere(boost, more);
          if (copy.offer !== offer || job.boost === wanted) continue;
          const selection = { ids: [job.id], ownedBy: null, limit: 1 };
          touched.push(...(await this.store.reprioritize(selection, wanted)).touched);
        }
      return touched;
    },
    withdraw: async (siteId, offers, now) => this.withdraw(siteId, offers, now),
    supersede: async (siteId, copies, now) => {
      const old = this.open(siteId).filter(({ copy }) =>
        copies.some(({ jobId, offer }) => copy.ownerJobId === jobId && copy.offer < offer),
      );
      return this.withdraw(
        siteId,
        old.map(({ copy }) => copy.offer),
        now,
      );
    },
    toClaim: async (siteId) =>
      this.open(siteId)
        .filter(({ copy, job }) => copy.epoch === null && job.state === 'ASSIGNED')
        .slice(0, REPORTS_PAGE)
        .map(({ copy, job }) => ({ offer: copy.offer, bytes: job.bytes })),
    notHere: async (siteId, offered, claimed) => {
      const known = new Map(this.copiesOf(siteId).map(({ copy }) => [copy.offer, copy.told]));
      const isOver = (offer: number) => known.get(offer) === 2;
      return [...offered.filter(isOver), ...claimed.filter((one) => isOver(one) || !known.has(one))];
    },
    unclassed: async (siteId) => {
      const classes = this.classesOf(siteId);
      return this.open(siteId)
        .filter(({ copy, job }) => {
          const isOpen = copy.epoch === null && job.endedAt === null && job.state !== 'CANCELLING';
          return isOpen && job.class !== null && !Object.hasOwn(classes, job.class);
        })
        .map(({ copy }) => copy.offer);
    },
    unanswered: async (siteId, patienceS) =>
      this.open(siteId)
        .filter(({ copy, job }) => {
          const run = this.store.runs.get(`${job.id}/${job.epoch}`);
          const isAsked = copy.epoch === null && job.state === 'ASSIGNED';
          return isAsked && (run?.assignedAt ?? 0) < this.store.now() - patienceS;
        })
        .map(({ copy }) => copy.offer),
    granted: async (siteId, grants) => this.granted(siteId, grants),
    endUngranted: async (siteId, now) => {
      const reports = this.open(siteId)
        .filter(({ copy, job }) => copy.epoch === null && job.state === 'CANCELLING')
        .slice(0, REPORTS_PAGE)
        .map(({ job: { id: jobId, epoch } }): RunReport => {
          return { ...none, jobId, epoch, phase: 'ENDED', at: now, cause: 'WITHDRAWN', message: null };
        });
      return this.store.report(null, reports, 1).touched;
    },
    toReport: async (siteId, bytesMax) => this.toReport(siteId, bytesMax),
    toReturn: async (siteId) =>
      this.open(siteId)
        .filter(({ copy, job }) => copy.epoch === null && isTerminal(job.state))
        .slice(0, REPORTS_PAGE)
        .map(({ copy }) => copy.offer),
    told: async (siteId, offers, level) => {
      for (const { copy } of this.copiesOf(siteId))
        if (offers.includes(copy.offer)) copy.told = Math.max(copy.told, level);
    },
  };

  private open(siteId: number): { copy: ForeignJob; job: MemoryJob }[] {
    return this.copiesOf(siteId).filter(({ copy }) => copy.told < 2);
  }

  private lenders(worker: string, leaseS: number): Lender[] {
    const now = this.store.now();
    return [...this.peers.values()].flatMap((peer) => {
      const { siteId, name, url, secret, cursor } = peer;
      if (url === null || secret === null || this.store.sites.get(siteId)?.removed) return [];
      const isFree = peer.worker === null || peer.workerSeenAt < now - leaseS;
      if (peer.worker !== worker && !isFree) return [];
      Object.assign(peer, { worker, workerSeenAt: now });
      return [{ siteId, name, url, secret, cursor }];
    });
  }

  /** In which jobs of the peer are taken. */
  private classesOf(siteId: number): JobClasses {
    const { name, class: userClass } = this.store.users.get(this.peer(siteId).userId) as MemoryUser;
    return classesForPeer(this.store.classes, { name, userClass });
  }

  /** Of devices, here and behind us. */
  private kindsKnown(siteId: number): ReadonlySet<string> {
    const here = [...this.store.machines.values()].filter(({ removed }) => !removed);
    const behind = [...this.peers.values()].filter((peer) => peer.siteId !== siteId);
    return new Set([
      ...here.flatMap(({ devices = [] }) => devices.map(({ kind }) => kind)),
      ...behind.flatMap(({ kinds }) => kinds.flatMap(({ devices }) => devices.map(({ kind }) => kind))),
    ]);
  }

  private ourselves(siteId: number): Ourselves {
    const { isolated, foreignMax } = this.peer(siteId);
    const now = this.store.now();
    const behind = new Map<string, MachineKind>();
    for (const peer of this.peers.values()) {
      const isSilent = peer.seenAt === null || peer.seenAt <= now - peer.lostAfterS;
      if (peer.siteId === siteId || peer.isolated || peer.forward === 'NEVER' || isSilent) continue;
      for (const { site: _, machines, hops, ...shape } of peer.kinds) {
        if (hops >= HOPS_TOLD) continue;
        const key = JSON.stringify(shape);
        const known = behind.get(key);
        behind.set(key, {
          ...{ ...shape, site: known?.site ?? 1001 + behind.size },
          machines: Math.max(machines, known?.machines ?? 0),
          hops: Math.min(hops + 1, known?.hops ?? Infinity),
        });
      }
    }
    const kinds = [...this.kindsHere(1), ...behind.values()]
      .sort((a, b) => a.hops - b.hops || b.machines - a.machines)
      .slice(0, KINDS_MAX);
    const room = isolated ? 0 : Math.max(0, foreignMax - this.open(siteId).length);
    return { service: this.serviceId, room, kinds, classes: Object.keys(this.classesOf(siteId)) };
  }

  private places(siteId: number): Place[] {
    const { sites, schedulers } = this.store;
    const way = (id: number | null | undefined): string[] => {
      const one = id == null ? undefined : schedulers.get(id);
      return one === undefined ? [] : [...way(one.parentId), one.name];
    };
    return this.open(siteId)
      .filter(({ job }) => job.endedAt === null)
      .flatMap(({ copy, job }) => {
        const site = job.siteId === null ? undefined : sites.get(job.siteId);
        const below = site && this.rows.get(`${job.id}/${site.id}`)?.path;
        const path = [
          ...['root', ...way(job.schedulerId ?? site?.schedulerId)],
          ...[...(site ? [site.name] : []), ...(below ?? [])],
        ].slice(0, MAX.hops);
        return String(path) === String(copy.pathTold) ? [] : [{ offer: copy.offer, path }];
      })
      .slice(0, REPORTS_PAGE);
  }

  private accept(siteId: number, copies: readonly NewCopy[], share: Share, now: number): number[] {
    const { store } = this;
    const peer = this.peer(siteId);
    const known = { classes: this.classesOf(siteId), kinds: this.kindsKnown(siteId) };
    const refused: number[] = [];
    for (const one of copies) {
      const { offer, jobId, request: told } = one;
      if (this.copiesOf(siteId).some(({ copy }) => copy.offer === offer)) continue;
      const mapped = told.visited.length === 1 ? peer.users.get(told.user) : undefined;
      const user = store.users.get(mapped ?? peer.userId);
      const isKnown = [...this.foreign.values()].some(
        ({ told: level, request, jobId: id }) =>
          level < 2 && request === told.request && store.jobs.get(id)?.endedAt === null,
      );
      const room = peer.foreignMax - this.open(siteId).length;
      const job = copiedJob(one, peer.foreignBoost, known.classes);
      const isSound = isKnownHere(one, known) && outOfBounds(job) === null;
      const takes = user !== undefined && store.hasRoom(user, { jobs: 1, bytes: told.bytes }, share, now);
      if (!isSound || !isTaken({ isolated: peer.isolated, room, isKnown }) || !takes) {
        refused.push(offer);
        continue;
      }
      const id = store.takeIn(job, user.id, told.bytes, now);
      const { user: ownerUser, request, hops, visited } = told;
      const told0 = { epoch: null, inputs: null, told: 0, pathTold: [] };
      this.foreign.set(id, {
        ...{ jobId: id, siteId, offer, ownerJobId: jobId, ownerUser, request, hops, visited },
        ...told0,
      });
    }
    return refused;
  }

  private withdraw(
    siteId: number,
    offers: readonly number[] | 'UNGRANTED' | 'ISOLATED',
    now: number,
  ): (number | null)[] {
    const { isolated } = this.peer(siteId);
    const ids = this.open(siteId)
      .filter(({ copy, job }) => {
        const isMeant =
          typeof offers === 'string'
            ? copy.epoch === null && (offers === 'UNGRANTED' || isolated)
            : offers.includes(copy.offer);
        return isMeant && job.state !== 'CANCELLING' && job.endedAt === null;
      })
      .map(({ job }) => job.id);
    return this.store.cancelFor({ ids, ownedBy: null, limit: ids.length }, now, 'WITHDRAWN').touched;
  }

  private granted(siteId: number, grants: readonly (GrantedJob & { offer: number })[]): void {
    for (const { copy, job } of this.copiesOf(siteId)) {
      const grant = grants.find(({ offer }) => offer === copy.offer);
      if (grant === undefined || copy.epoch !== null) continue;
      const { epoch, inputs, command, arguments: words, environment, workingDirectory } = grant;
      // Two services may call different datasets alike.
      const theirs = inputs.map((one) => ({ ...one, dataset: `site_${siteId}/${one.dataset}` }));
      Object.assign(copy, { epoch, inputs: theirs.length > 0 ? theirs : null });
      if (job.state !== 'ASSIGNED' && job.state !== 'CANCELLING') continue;
      this.store.change(job, 'grant', { command, arguments: words, environment, workingDirectory });
    }
  }

  private toReport(siteId: number, bytesMax: number): Told[] {
    const { runs, outputs } = this.store;
    let bytes = 0;
    return this.open(siteId)
      .filter(({ copy, job }) => {
        const run = runs.get(`${job.id}/${job.epoch}`);
        return copy.epoch !== null && (job.endedAt !== null || (copy.told === 0 && run?.startedAt != null));
      })
      .slice(0, REPORTS_PAGE)
      .flatMap(({ copy, job }): Told[] => {
        if (bytes >= bytesMax) return [];
        const run = runs.get(`${job.id}/${job.epoch}`);
        const kept = outputs.get(`${job.id}/${job.epoch}`) ?? [];
        bytes += kept.reduce((sum, { body }) => sum + body.length, 0);
        const over = job.endedAt !== null;
        const hasFiles = over && job.outputs.length > 0 && run?.startedAt != null;
        const stopped = run?.startedAt == null ? 'MACHINE_FAILED' : 'REFUSED';
        const ended = job.state === 'CANCELLED' ? stopped : (run?.cause ?? job.cause);
        const cause = job.cause === 'PREEMPTED' ? job.cause : ended;
        const told = (['STDOUT', 'STDERR'] as const)
          .flatMap((of) => firstAndLast(kept, of))
          .map(({ stream, start, body, bytes: written }) => {
            return { stream, start, base64: Buffer.from(body).toString('base64'), bytes: written };
          });
        const { usage: measured, ...end }: Partial<RunReport> = run?.report ?? {};
        return [
          {
            ...{
              offer: copy.offer,
              jobId: copy.ownerJobId,
              epoch: copy.epoch as number,
              told: copy.told,
              over,
            },
            ...{ files: hasFiles ? { jobId: job.id, epoch: job.epoch } : null, cause },
            ...{ startedAt: run?.startedAt ?? null, at: (run?.endedAt ?? job.endedAt) as number },
            ...{
              exitCode: end.exitCode ?? null,
              signal: end.signal ?? null,
              message: end.message ?? job.message,
            },
            ...{ ...UNMEASURED, ...measured, cpuS: end.cpuS ?? null, ioWaitS: end.ioWaitS ?? null },
            outputs: over && told.length > 0 ? told : null,
          },
        ];
      });
  }
}
