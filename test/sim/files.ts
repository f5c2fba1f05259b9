/** Files of runs that the service keeps: the model of what the database knows of them, over that of the store, and where their content lies. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type Blobs, PartsMissing, type Stored } from '../../src/store/blobs.js';
import type { Announced, FileOnItsWay, FileRow, Files, NewFile, RunOfAgent } from '../../src/store/files.js';
import { isMeant } from '../../src/store/rules.js';
import { placeOf } from '../../src/store/tasks.js';
import type { MemoryStore } from '../store/memory.js';

/** What a run writes to a file: little, and other than any other run. */
export function contentOf(key: string, path: string): Buffer {
  const sum = createHash('sha256').update(`${key}/${path}`).digest();
  return path.startsWith('empty')
    ? Buffer.alloc(0)
    : Buffer.concat([sum, sum]).subarray(0, 1 + (sum[0]! % 60));
}

/** The files of one history, by id. */
export class SimulatedFiles implements Files {
  rows = new Map<number, FileRow & { upload: null; parts: string[] }>();
  private gone: number[] = [];
  private lastId = 0;

  constructor(private readonly store: MemoryStore) {}

  dump(): object {
    return { rows: this.rows, gone: this.gone, lastId: this.lastId };
  }

  restore(then: object): void {
    Object.assign(this, then);
  }

  /** Of these runs, by task and path. */
  ofRuns(runs: readonly { jobId: number; epoch: number }[]): FileRow[] {
    return [...this.rows.values()]
      .filter((row) => runs.some(({ jobId, epoch }) => row.jobId === jobId && row.epoch === epoch))
      .sort((a, b) => a.task - b.task || (a.path < b.path ? -1 : 1));
  }

  async announce(run: RunOfAgent, task: number, files: readonly NewFile[]): Promise<Announced> {
    const { assignedAt = null } = this.store.runs.get(`${run.jobId}/${run.epoch}`) ?? {};
    if (!this.isServed(run, task) || !isMeant(run.token, assignedAt)) return { kind: 'unknown' };
    return { kind: 'done', files: files.map((file) => ({ ...this.put(run, task, file) })) };
  }

  async onItsWay(id: number, agent: Pick<RunOfAgent, 'siteId' | 'agentId'>): Promise<FileOnItsWay | null> {
    const row = this.rows.get(id);
    return row && this.isServed({ ...row, ...agent }, row.task) ? onItsWay(row) : null;
  }

  async advance(file: FileOnItsWay, more: { bytes: number; part: string }): Promise<boolean> {
    const row = this.rows.get(file.id);
    if (!row || row.received !== file.received || row.keptAt !== null) return false;
    row.received += more.bytes;
    row.parts.push(more.part);
    return true;
  }

  async keep(id: number): Promise<boolean> {
    const row = this.rows.get(id);
    if (!row || row.received !== row.bytes) return false;
    row.keptAt ??= 1;
    return true;
  }

  async unfinished(after: number, limit: number): Promise<FileOnItsWay[]> {
    return [...this.rows.values()]
      .filter(({ id, keptAt, received, bytes }) => id > after && keptAt === null && received === bytes)
      .slice(0, limit)
      .map(onItsWay);
  }

  async drop(id: number): Promise<number> {
    if (this.rows.get(id)?.keptAt !== null) return 0;
    this.remove(id);
    return 1;
  }

  async kept(): Promise<FileRow | null> {
    return null;
  }

  /** Those of runs that are over: nobody waits for an hour here. */
  /** Nothing here has copies for peers. */
  /** No job of a history reads what another has kept. */
  async readAt(): Promise<null> {
    return null;
  }

  async pruneExports(): Promise<number> {
    return 0;
  }

  async prune(_keptBefore: number, limit: number): Promise<number> {
    const abandoned = [...this.rows.values()].filter(
      ({ jobId, epoch, keptAt }) =>
        keptAt === null && this.store.runs.get(`${jobId}/${epoch}`)?.endedAt !== null,
    );
    for (const { id } of abandoned.slice(0, limit)) this.remove(id);
    return Math.min(abandoned.length, limit);
  }

  async dead(limit: number): Promise<{ id: number; upload: null }[]> {
    return this.gone.slice(0, limit).map((id) => ({ id, upload: null }));
  }

  async buried(ids: readonly number[]): Promise<number> {
    for (const id of ids) this.gone.splice(this.gone.indexOf(id) >>> 0, 1);
    return ids.length;
  }

  private put({ jobId, epoch }: RunOfAgent, task: number, file: NewFile) {
    const known = [...this.rows.values()].find(
      (row) => row.jobId === jobId && row.epoch === epoch && row.task === task && row.path === file.path,
    );
    if (known?.sha256 === file.sha256 && known.bytes === file.bytes) return known;
    if (known) this.remove(known.id);
    const id = ++this.lastId;
    const row = {
      ...file,
      id,
      jobId,
      epoch,
      task,
      received: 0,
      beganAt: 0,
      keptAt: null,
      upload: null,
      parts: [],
    };
    this.rows.set(id, row);
    return row;
  }

  private remove(id: number): void {
    this.rows.delete(id);
    this.gone.push(id);
  }

  private isServed({ siteId, agentId, jobId, epoch }: Omit<RunOfAgent, 'token'>, task: number): boolean {
    const run = this.store.runs.get(`${jobId}/${epoch}`);
    if (!run || run.endedAt !== null || run.siteId !== siteId) return false;
    if (agentId === null) return this.store.federation.peers.has(siteId);
    const place = placeOf(
      run.allocations.map(({ tasks }) => tasks),
      task,
    );
    return this.store.machines.get(run.allocations[place]?.machineId as number)?.agentId === agentId;
  }
}

const onItsWay = ({ id, bytes, received, parts, keptAt }: FileRow & { parts: string[] }): FileOnItsWay => ({
  ...{ id, bytes, received, upload: null, parts: [...parts], kept: keptAt !== null },
});

/** As a directory does it: parts are written over, and the whole is there at once. */
export class SimulatedBlobs implements Blobs {
  private readonly parts = new Map<number, Buffer>();
  private readonly whole = new Map<number, Buffer>();

  async add({ id, received }: FileOnItsWay, body: Buffer): Promise<Stored> {
    const there = this.parts.get(id) ?? Buffer.alloc(0);
    if (there.length < received) throw new PartsMissing(String(id));
    this.parts.set(id, Buffer.concat([there.subarray(0, received), body]));
    return { upload: null, part: String(received) };
  }

  async finish({ id, bytes }: FileOnItsWay): Promise<void> {
    if (this.whole.get(id)?.length === bytes) return;
    const part = bytes === 0 ? Buffer.alloc(0) : this.parts.get(id);
    if (part?.length !== bytes) throw new PartsMissing(String(id));
    this.parts.delete(id);
    this.whole.set(id, part);
  }

  async read(id: number, from = 0, to = Number.POSITIVE_INFINITY): Promise<Readable> {
    return Readable.from([this.contentOf(id)?.subarray(from, to) ?? Buffer.alloc(0)]);
  }

  async remove(id: number): Promise<void> {
    this.parts.delete(id);
    this.whole.delete(id);
  }

  /** null: it is not whole. */
  contentOf(id: number): Buffer | null {
    return this.whole.get(id) ?? null;
  }
}
