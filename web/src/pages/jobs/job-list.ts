/**
 * The jobs that match a filter, as a list of up to a hundred thousand rows of which only those near the window are held.
 *
 * Rows come in pages. A page far away is found by walking cursors in long steps; pages far from the window are let go. Rows
 * that are held change as their jobs do, a frame's changes at a time. New jobs, and rows that no longer match, do not move
 * the list under the reader's eyes: it is queried again when the reader is at its top, or asks for it.
 *
 * Kept beside the normalized cache, which would read its queries again for each of a thousand changes a second.
 */
import { ask } from '../../api/client';
import { type Follower, follow } from '../../api/live';
import type { JobState } from '../../api/states.gql';
import {
  CursorDocument,
  type JobFilter,
  type JobOrder,
  type JobRowFragment,
  JobRowsDocument,
  type JobRowsSubscription,
  JobsCountDocument,
  JobsPageDocument,
  JobsStepDocument,
} from '../../parts/job-rows.gql';

export const PAGE = 100;
/** Pages held at once. */
const PAGES_MAX = 60;
/** Rows that one step of a walk may pass. */
const STEP_MAX = 5_000;
const REFRESH_MS = 1_500;
/** Jobs that are remembered while pages are on their way; beyond, the list is queried again. */
const MEANWHILE_MAX = 10_000;
/** The number of changes is a number to read: told so often, the page around the list is not drawn anew with each frame. */
const TELL_CHANGES_MS = 500;

const ENDED: JobState[] = ['COMPLETED', 'FAILED', 'CANCELLED'];

export type Row = JobRowFragment;
type Update = JobRowsSubscription['jobUpdated'];

interface ListState {
  /** null: not known yet. */
  total: number | null;
  /** Jobs that have come to match, or no longer do, since the list was queried. */
  changes: number;
  error: string | null;
}

export class JobList implements Follower<Update> {
  private pages = new Map<number, string[]>();
  /** Cursor before the page; of page 0 there is none. */
  private anchors = new Map<number, string | null>([[0, null]]);
  private rows = new Map<string, Row>();
  /** How often pages have come. */
  private arrivals = 0;
  private wanted = new Set<number>();
  private loading = new Set<number>();
  private readonly listeners = new Set<() => void>();
  private readonly rowListeners = new Map<string, Set<() => void>>();
  private state: ListState = { total: null, changes: 0, error: null };
  private version = 0;
  private stop: (() => void) | null = null;
  private abort = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastRefresh = 0;
  /** Changes that have not been told yet. */
  private untold = 0;
  private telling: ReturnType<typeof setTimeout> | undefined;
  private following = true;
  /** Pages on their way. */
  private awaited = 0;
  /** What was told of jobs meanwhile: a page that was read before may come after. */
  private meanwhile = new Map<string, Row>();

  constructor(
    private readonly filter: JobFilter,
    private readonly orderBy: JobOrder,
  ) {}

  /** Begins to load and to follow. Answers with what ends it. */
  start(): () => void {
    this.abort = new AbortController();
    void this.begin();
    return () => {
      this.abort.abort();
      this.stop?.();
      this.stop = null;
      clearTimeout(this.timer);
      clearTimeout(this.telling);
    };
  }

  private async begin(): Promise<void> {
    const { signal } = this.abort;
    try {
      // News from before the first page: nothing falls in between.
      const { latestCursor } = await ask(CursorDocument, {}, signal);
      if (signal.aborted) return;
      // Without states: those that leave the filter's are news too.
      const { states: _, ids, ...others } = this.filter;
      this.stop = follow(
        JobRowsDocument,
        'jobUpdated',
        { filter: { ...others, ...(ids && { ids }) }, after: latestCursor },
        this,
      );
      await this.query();
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    }
  }

  retry = (): void => {
    this.change({ error: null });
    if (this.stop === null) void this.begin();
    else void this.query().catch((error: unknown) => this.fail(error));
  };

  /** Queries the list from its beginning. What is shown stays until the answer has come. */
  private async query(): Promise<void> {
    const { signal } = this.abort;
    this.lastRefresh = Date.now();
    const counted = this.counted();
    const [page, count] = await Promise.all([
      this.page(null),
      counted === null ? null : ask(JobsCountDocument, { filter: counted }, signal),
    ]);
    const { jobs, ids } = page;
    this.version++;
    this.pages = new Map([[0, ids]]);
    this.arrivals++;
    this.anchors = new Map([[0, null]]);
    if (jobs.pageInfo.endCursor) this.anchors.set(1, jobs.pageInfo.endCursor);
    this.loading.clear();
    const total = jobs.pageInfo.hasNextPage
      ? Math.max(count?.jobCount ?? 2 * PAGE, ids.length + 1)
      : ids.length;
    this.prune();
    this.untold = 0;
    this.change({ total, changes: 0, error: null });
    for (const page of this.wanted) void this.load(page);
  }

  /** What to count for the length of the list: by their ends only ended jobs are listed. Null: it cannot be counted. */
  private counted(): JobFilter | null {
    if (this.orderBy.field === 'DEADLINE') return null;
    if (this.orderBy.field !== 'ENDED_AT') return this.filter;
    return { ...this.filter, states: (this.filter.states ?? ENDED).filter((state) => ENDED.includes(state)) };
  }

  refresh = (): void => {
    void this.query().catch((error: unknown) => this.fail(error));
  };

  /** Whether changes of the list are taken up by themselves: the reader is at its top and does nothing with it. */
  follow(on: boolean): void {
    this.following = on;
    if (on && this.state.changes + this.untold > 0) this.schedule();
  }

  private schedule(): void {
    if (this.timer !== undefined) return;
    const wait = Math.max(0, this.lastRefresh + REFRESH_MS - Date.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.following && !document.hidden) this.refresh();
    }, wait);
  }

  /** Says which rows are in sight, so that they are loaded and others may go. */
  show(from: number, to: number): void {
    const wanted = new Set<number>();
    for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page++) wanted.add(page);
    this.wanted = wanted;
    for (const page of wanted) void this.load(page);
  }

  private async load(page: number): Promise<void> {
    if (this.state.total === null || page * PAGE >= this.state.total) return;
    if (this.pages.has(page) || this.loading.has(page)) return;
    const { signal } = this.abort;
    const { version } = this;
    this.loading.add(page);
    try {
      const after = await this.anchorOf(page, version, signal);
      if (after === undefined || version !== this.version || !this.wanted.has(page)) return;
      const { jobs, ids } = await this.page(after);
      if (version !== this.version) return;
      this.pages.set(page, ids);
      this.arrivals++;
      if (jobs.pageInfo.endCursor) this.anchors.set(page + 1, jobs.pageInfo.endCursor);
      const known = page * PAGE + jobs.nodes.length;
      const more = this.counted() === null ? PAGE : 1;
      const total = jobs.pageInfo.hasNextPage ? Math.max(this.state.total, known + more) : known;
      this.prune();
      this.change({ total });
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    } finally {
      if (version === this.version) this.loading.delete(page);
    }
  }

  /** The cursor before a page: walks from the nearest one that is known. Undefined: the list ends before it. */
  private async anchorOf(
    page: number,
    version: number,
    signal: AbortSignal,
  ): Promise<string | null | undefined> {
    let near = Math.max(...[...this.anchors.keys()].filter((known) => known <= page));
    while (near < page && version === this.version && this.wanted.has(page)) {
      const pages = Math.min(page - near, STEP_MAX / PAGE);
      const after = this.anchors.get(near) ?? null;
      const { filter, orderBy } = this;
      const { jobs } = await ask(JobsStepDocument, { filter, orderBy, first: pages * PAGE, after }, signal);
      if (!jobs.pageInfo.hasNextPage || !jobs.pageInfo.endCursor) return undefined;
      near += pages;
      if (version === this.version) this.anchors.set(near, jobs.pageInfo.endCursor);
    }
    return this.anchors.get(page);
  }

  /** The page behind a cursor; its rows are held. */
  private async page(after: string | null) {
    const { filter, orderBy } = this;
    this.awaited++;
    try {
      const { jobs } = await ask(
        JobsPageDocument,
        { filter, orderBy, first: PAGE, after },
        this.abort.signal,
      );
      return { jobs, ids: jobs.nodes.map((row) => this.keep(this.meanwhile.get(row.id) ?? row)) };
    } finally {
      if (--this.awaited === 0) {
        if (this.meanwhile.size >= MEANWHILE_MAX) this.schedule();
        this.meanwhile.clear();
      }
    }
  }

  private keep(row: Row): string {
    const before = this.rows.get(row.id);
    this.rows.set(row.id, row);
    if (before) this.told(row.id);
    return row.id;
  }

  /** Lets go of the pages furthest from the window. */
  private prune(): void {
    const [near = 0] = this.wanted;
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
    for (const page of far.slice(0, Math.max(0, far.length - PAGES_MAX))) this.pages.delete(page);
    const held = new Set([...this.pages.values()].flat());
    for (const id of this.rows.keys()) if (!held.has(id) && !this.rowListeners.has(id)) this.rows.delete(id);
  }

  // --- News

  onUpdates(updates: Update[]): void {
    const { states } = this.filter;
    const latest = new Map<string, Row>();
    let changes = 0;
    for (const { event, job } of updates) {
      if (!event || !job) continue;
      const known = this.rows.has(job.id);
      const matched = !states || (event.fromState !== null && states.includes(event.fromState));
      const matches = !states || states.includes(event.toState ?? job.state);
      const isNew = event.fromState === null && event.kind === 'JOB_STATE';
      if (isNew ? matches : states && matched !== matches && event.toState !== null) changes++;
      if (known) latest.set(job.id, job);
      if (this.awaited > 0 && this.meanwhile.size < MEANWHILE_MAX) this.meanwhile.set(job.id, job);
    }
    for (const [id, row] of latest) {
      this.rows.set(id, row);
      this.told(id);
    }
    if (changes > 0) {
      this.untold += changes;
      this.telling ??= setTimeout(() => this.tell(), TELL_CHANGES_MS);
      if (this.following) this.schedule();
    }
  }

  private tell(): void {
    this.telling = undefined;
    if (this.untold === 0) return;
    const changes = this.state.changes + this.untold;
    this.untold = 0;
    this.change({ changes });
  }

  onResync(): void {
    this.refresh();
  }

  // --- For components

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  getState = (): ListState => this.state;
  /** Changes when `idAt` does. */
  getArrivals = (): number => this.arrivals;

  idAt(index: number): string | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  row = (id: string): Row | undefined => this.rows.get(id);

  subscribeRow(id: string, listener: () => void): () => void {
    const set = this.rowListeners.get(id) ?? new Set();
    this.rowListeners.set(id, set.add(listener));
    return () => {
      set.delete(listener);
      if (set.size === 0) this.rowListeners.delete(id);
    };
  }

  /** Whether a row on display still matches the filter's states. */
  stillMatches(state: JobState): boolean {
    return !this.filter.states || this.filter.states.includes(state);
  }

  private told(id: string): void {
    for (const listener of this.rowListeners.get(id) ?? []) listener();
  }

  private change(change: Partial<ListState>): void {
    this.state = { ...this.state, ...change };
    for (const listener of [...this.listeners]) listener();
  }

  private fail(error: unknown): void {
    this.change({ error: error instanceof Error ? error.message : String(error) });
  }
}
