/**
 * The latest points of all job ratios, read once for all subscribers of the process: each of them only looks at what is in memory. Who is
 * further behind reads on its own.
 */
import type { EventFeed } from '../../store/feed.js';
import type { Queries } from '../../store/queries.js';
import type { RatioPointRow } from '../../store/rows.js';
import type { Loaders } from '../loaders.js';

/** Points of one read. */
export const POINTS_MAX = 1_000;
/** Points kept. */
const KEPT = 10_000;

export interface Behind {
  points: readonly RatioPointRow[];
  /** Everything up to here has been looked at. */
  upTo: number;
  /** For what the points refer to: shared by all who are told of them. */
  loaders: Loaders;
}

export class RecentPoints {
  private points: RatioPointRow[] = [];
  /** All points behind `from` and up to `to` are kept; null: nothing has been read yet. */
  private from: number | null = null;
  private to = 0;
  private loaders: Loaders;
  /** The feed's cursor when the last read began, and that read. */
  private readAt = '';
  private reading: Promise<void> = Promise.resolve();

  constructor(
    private readonly feed: Pick<EventFeed, 'cursor'>,
    private readonly queries: Pick<Queries, 'latestRatioPoint' | 'ratioPointsSince'>,
    private readonly newLoaders: () => Loaders,
  ) {
    this.loaders = newLoaders();
  }

  /** Points behind one, of all that ended before the feed's cursor; null: it lies before those that are kept. */
  async behind(after: number): Promise<Behind | null> {
    if (this.readAt !== this.feed.cursor) {
      this.readAt = this.feed.cursor;
      this.reading = this.reading.catch(() => {}).then(() => this.read());
    }
    await this.reading;
    const { points, from, to, loaders } = this;
    if (from === null || after < from) return null;
    let low = 0;
    let high = points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((points[middle] as RatioPointRow).id <= after) low = middle + 1;
      else high = middle;
    }
    return { points: points.slice(low), upTo: Math.max(after, to), loaders };
  }

  private async read(): Promise<void> {
    try {
      if (this.from === null) return await this.begin();
      for (let more = true; more; ) {
        const found = await this.queries.ratioPointsSince(null, this.to, POINTS_MAX);
        if (found === 'too-old') return await this.begin();
        this.points.push(...found);
        this.to = found.at(-1)?.id ?? this.to;
        more = found.length === POINTS_MAX;
      }
      const over = this.points.length - KEPT;
      if (over > 0) this.from = this.points.splice(0, over).at(-1)?.id ?? this.from;
      this.loaders = this.newLoaders();
    } catch (error) {
      // Whoever comes next reads again.
      this.readAt = '';
      throw error;
    }
  }

  private async begin(): Promise<void> {
    const latest = await this.queries.latestRatioPoint();
    this.points = [];
    this.from = latest;
    this.to = latest;
  }
}
