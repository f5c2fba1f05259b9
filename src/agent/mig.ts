/**
 * Cards of NVIDIA in MIG mode (Multi-Instance GPU): their slices are shares of a device. What a run has of a card is made into instances
 * when it starts, and removed when it is over, by the commands and in the formats of nvidia-smi ("NVIDIA Multi-Instance GPU User Guide").
 *
 * What is about to be made is written down before, with what is on the card already: so the next agent knows what an earlier one has left,
 * and instances that others have made are never touched.
 */
import { execFile } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isOfThisBoot, processIdentity } from '../platform/lockfile.js';
import { deviceOf } from './units.js';

export interface MigCard {
  /** By which nvidia-smi knows it. */
  index: string;
  /** Sizes of instances, largest first; the last is of one slice. */
  profiles: readonly MigProfile[];
}

interface MigProfile {
  id: string;
  slices: number;
  memoryMb: number;
}

interface Instance {
  /** Of the GPU instance, on its card. */
  id: number;
  uuid: string;
}

/** What a run has of a card. */
interface Entry {
  run: string;
  /** Its index. */
  card: string;
  /** Ids of the instances that were there before. */
  before: readonly number[];
  made: Instance[];
  /** Whether all are made. */
  done: boolean;
}

/** Why instances could not be made. */
export interface MigFailure {
  message: string;
  /** Its slices are free, but do not lie together; false: the card or nvidia-smi is at fault. */
  noRoom: boolean;
}

export interface MigOptions {
  /** By id of the device. */
  cards: ReadonlyMap<string, MigCard>;
  stateDir: string;
  /** Whether the run of this name waits or goes on. */
  isLive: (run: string) => boolean;
  /** Told when what a run needs has been made, or why it could not be. */
  made: (run: string, failure: MigFailure | null) => void;
  warn: (fields: object, message: string) => void;
}

const STATE_FILE = 'mig';
/** A process that has been killed keeps its instance busy for a moment. */
const REMOVALS = 5;
const REMOVAL_PAUSE_MS = 1_000;
/** Between two attempts to remove what could not be removed. */
const AGAIN_MS = 5_000;
const NVIDIA_SMI_MS = 60_000;
const MINORS = '/proc/driver/nvidia-caps/mig-minors';

/** The cards in MIG mode, by index. */
export interface MigCards {
  cards: ReadonlyMap<string, MigCard>;
  /** Those that the agent cannot divide: it is not root, others have made instances there, or there are no profiles of single slices. */
  foreign: ReadonlySet<string>;
}

/** `stateDir`: of the agent, which has written down there what it has made; null: nothing. */
export async function findMigCards(stateDir: string | null): Promise<MigCards> {
  const modes = await said('--query-gpu=index,mig.mode.current', '--format=csv,noheader');
  const indexes = [...(modes ?? '').matchAll(/^(\d+), Enabled$/gm)].map(([, index]) => index as string);
  const cards = new Map<string, MigCard>();
  const foreign = new Set<string>();
  if (indexes.length === 0) return { cards, foreign };
  if (process.getuid?.() !== 0) return { cards, foreign: new Set(indexes) };
  const profiles = migProfiles((await said('mig', '-lgip')) ?? '');
  const entries = stateDir === null ? [] : readEntries(stateDir);
  for (const index of indexes) {
    const sizes = profiles.get(index) ?? [];
    const there = await instancesOn(index).catch(() => null);
    if (sizes.at(-1)?.slices === 1 && there?.every((id) => isOurs(entries, index, id)))
      cards.set(index, { index, profiles: sizes });
    else foreign.add(index);
  }
  return { cards, foreign };
}

/**
 * By card, from what `nvidia-smi mig -lgip` prints: of profiles of as many slices the one with the least memory; none with other engines
 * (`1g.10gb+me`).
 */
export function migProfiles(text: string): Map<string, MigProfile[]> {
  const cards = new Map<string, MigProfile[]>();
  for (const [, card, slices, id, gib] of text.matchAll(
    /^\|\s+(\d+)\s+MIG (\d+)g\.\d+gb\s+(\d+)\s+\d+\/\d+\s+([\d.]+)\s/gm,
  )) {
    const profile = {
      id: id as string,
      slices: Number(slices),
      memoryMb: Math.floor((Number(gib) * 2 ** 30) / 1e6),
    };
    const known = cards.get(card as string) ?? [];
    const alike = known.findIndex((one) => one.slices === profile.slices);
    if (alike < 0) known.push(profile);
    else if (profile.memoryMb < (known[alike] as MigProfile).memoryMb) known[alike] = profile;
    cards.set(card as string, known);
  }
  for (const known of cards.values()) known.sort((a, b) => b.slices - a.slices);
  return cards;
}

/** Slices of a card, and the memory of all of them: as much as that of the smallest instance allows. */
export function slicesOf({ profiles }: MigCard): { shares: number; memoryMb: number } {
  const [largest, smallest] = [profiles[0] as MigProfile, profiles.at(-1) as MigProfile];
  return { shares: largest.slices, memoryMb: largest.slices * smallest.memoryMb };
}

/** The instances that so many slices are made into, largest first: one, if there is one of that size. */
export function sizesFor({ profiles }: MigCard, slices: number): MigProfile[] {
  const sizes: MigProfile[] = [];
  for (let left = slices; left > 0; left -= (sizes.at(-1) as MigProfile).slices)
    sizes.push(profiles.find((profile) => profile.slices <= left) as MigProfile);
  return sizes;
}

/** Makes and removes the instances of runs, one thing after another. */
export class MigInstances {
  private entries: Entry[];
  /** Runs that have asked; true: what they need is there. */
  private readonly asked = new Map<string, boolean>();
  private work: Promise<void> = Promise.resolve();
  private tidying = false;
  private nextTidyMs = 0;
  private closed = false;
  /** Until then, the nvidia-smi of an agent that was killed may still be making something. */
  private readonly lateUntilMs = performance.now() + NVIDIA_SMI_MS;

  constructor(private readonly options: MigOptions) {
    this.entries = readEntries(options.stateDir);
  }

  /** Whether the run can have these units at once. Otherwise what it needs is being made, and `made` is told. */
  has(run: string, units: readonly string[]): boolean {
    const wanted = new Map<MigCard, number>();
    for (const unit of units) {
      const card = this.options.cards.get(deviceOf(unit));
      if (card) wanted.set(card, (wanted.get(card) ?? 0) + 1);
    }
    if (wanted.size === 0) return true;
    const made = this.asked.get(run);
    if (made === undefined) {
      this.asked.set(run, false);
      this.queue(() => this.makeAll(run, wanted));
    }
    return made === true;
  }

  /** The devices as the run sees them: of a card in MIG mode, the instances that were made for it. */
  seenBy<D extends { id: string; files: string[]; environment: Readonly<Record<string, string>> }>(
    run: string,
    devices: readonly D[],
  ): D[] {
    return devices.map((device) => {
      const card = this.options.cards.get(device.id);
      if (!card) return device;
      const made = this.entries
        .filter((entry) => entry.run === run && entry.card === card.index)
        .flatMap((entry) => entry.made);
      const rights = capabilities(card.index, new Set(made.map(({ id }) => id)));
      const uuids = made.map(({ uuid }) => uuid).join(',');
      return {
        ...device,
        files: [...device.files, ...rights],
        environment: { CUDA_VISIBLE_DEVICES: uuids },
      };
    });
  }

  /** Removes what runs have left that are over. */
  look(nowMs: number): void {
    for (const run of this.asked.keys()) if (!this.options.isLive(run)) this.asked.delete(run);
    if (this.tidying || nowMs < this.nextTidyMs || this.dead().length === 0) return;
    this.tidying = true;
    this.queue(async () => {
      this.nextTidyMs = nowMs + AGAIN_MS;
      try {
        for (const card of new Set(this.dead().map((entry) => entry.card))) await this.tidy(card);
        if (this.dead().length === 0) this.nextTidyMs = 0;
      } finally {
        this.tidying = false;
      }
    });
  }

  /** What is under way is left to the next agent. */
  close(): void {
    this.closed = true;
  }

  private queue(work: () => Promise<void>): void {
    this.work = this.work
      .then(work)
      .catch((err) => this.options.warn({ err }, 'MIG instances could not be made or removed'));
  }

  private async makeAll(run: string, wanted: ReadonlyMap<MigCard, number>): Promise<void> {
    let failure: MigFailure | null = null;
    try {
      for (const [card, slices] of wanted) if (this.options.isLive(run)) await this.make(run, card, slices);
    } catch (error) {
      const { message } = error as Error;
      failure = {
        message: `no MIG instance could be made: ${message}`,
        noRoom: message.endsWith('Insufficient Resources'),
      };
    }
    this.asked.set(run, failure === null);
    this.options.made(run, failure);
  }

  private async make(run: string, card: MigCard, slices: number): Promise<void> {
    await this.tidy(card.index);
    const before = await instancesOn(card.index);
    const entry: Entry = { run, card: card.index, before, made: [], done: false };
    this.entries.push(entry);
    this.save();
    for (const { id: profile } of sizesFor(card, slices)) {
      const known = await uuidsOn(card.index);
      const told = await smi('mig', '-i', card.index, '-cgi', profile, '-C');
      const id = /created GPU instance ID\s+(\d+) on GPU/.exec(told)?.[1];
      const fresh = (await uuidsOn(card.index)).filter((uuid) => !known.includes(uuid));
      if (id === undefined || fresh.length !== 1)
        throw new Error(
          `nvidia-smi lists ${fresh.length} new instances after it made one of card ${card.index}`,
        );
      entry.made.push({ id: Number(id), uuid: fresh[0] as string });
      this.save();
    }
    entry.done = true;
    this.save();
  }

  /** Of runs that are over. */
  private dead(): Entry[] {
    if (this.closed) return [];
    return this.entries.filter(({ run }) => !this.options.isLive(run));
  }

  /** Removes from a card what is there for runs that are over, also what an agent that was killed could not write down. */
  private async tidy(card: string): Promise<void> {
    const dead = new Set(this.dead().filter((entry) => entry.card === card));
    if (dead.size === 0) return;
    const others = this.entries.filter((entry) => entry.card === card && !dead.has(entry));
    const lives = new Set(others.flatMap(({ made }) => made.map(({ id }) => id)));
    const left = (await instancesOn(card)).filter((id) => !lives.has(id) && isOurs([...dead], card, id));
    for (const id of left) await remove(card, id);
    const isLate = performance.now() < this.lateUntilMs;
    this.entries = this.entries.filter((entry) => !dead.has(entry) || (isLate && !entry.done));
    this.save();
  }

  private save(): void {
    if (this.closed) return;
    const path = join(this.options.stateDir, STATE_FILE);
    const state = { identity: processIdentity(process.pid), entries: this.entries };
    writeFileSync(`${path}.new`, JSON.stringify(state), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}

const isOurs = (entries: readonly Entry[], card: string, id: number): boolean =>
  entries.some(
    (entry) =>
      entry.card === card &&
      (entry.made.some((one) => one.id === id) || !(entry.done || entry.before.includes(id))),
  );

/** As an earlier agent left them. Instances do not outlive the boot of their host. */
function readEntries(stateDir: string): Entry[] {
  try {
    const { identity, entries } = JSON.parse(readFileSync(join(stateDir, STATE_FILE), 'utf8'));
    return isOfThisBoot(identity) ? entries : [];
  } catch {
    return [];
  }
}

async function remove(card: string, id: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      // Its compute instances may be gone already.
      await smi('mig', '-i', card, '-gi', String(id), '-dci').catch(() => {});
      await smi('mig', '-i', card, '-gi', String(id), '-dgi');
      return;
    } catch (error) {
      if (attempt === REMOVALS) throw error;
      await sleep(REMOVAL_PAUSE_MS);
    }
  }
}

/** Ids of GPU instances. */
async function instancesOn(card: string): Promise<number[]> {
  const listed = await smi('mig', '-i', card, '-lgi').catch((error: Error) => {
    if (/No (GPU instances|MIG-enabled devices) found/.test(error.message)) return '';
    throw error;
  });
  return [...listed.matchAll(/^\|\s+\d+\s+MIG \S+\s+\d+\s+(\d+)\s+\d+:\d+\s/gm)].map(([, id]) => Number(id));
}

/** Those of the instances of a card, which are listed below it. */
async function uuidsOn(card: string): Promise<string[]> {
  const listed = await smi('-L');
  const own = listed.split(/^(?=GPU \d+:)/m).find((part) => part.startsWith(`GPU ${card}:`)) ?? '';
  return [...own.matchAll(/\(UUID: (MIG-[^)]+)\)/g)].map(([, uuid]) => uuid as string);
}

/** The files of the right to use instances. */
function capabilities(card: string, instances: ReadonlySet<number>): string[] {
  let minors: string;
  try {
    minors = readFileSync(MINORS, 'utf8');
  } catch {
    return [];
  }
  return [...minors.matchAll(/^gpu(\d+)\/gi(\d+)\/(?:ci\d+\/)?access (\d+)$/gm)]
    .filter(([, gpu, id]) => gpu === card && instances.has(Number(id)))
    .map(([, , , minor]) => `/dev/nvidia-caps/nvidia-cap${minor}`);
}

/** @throws Error with what nvidia-smi says */
const smi = (...words: string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile('nvidia-smi', words, { timeout: NVIDIA_SMI_MS }, (error, out, err) => {
      if (error === null) return resolve(out);
      const lines = `${out}\n${err}`.split('\n').filter((line) => line.trim() !== '');
      reject(new Error(`nvidia-smi ${words.join(' ')}: ${lines.at(-1) ?? error.message}`));
    });
  });

/** null: it fails. */
const said = (...words: string[]): Promise<string | null> => smi(...words).catch(() => null);
