/** What services are made of, and what they share. */
import { concernedBy, ROOT, type Scheduler, type WorldChange } from '../../core/index.js';
import type { Limits } from '../../platform/limits.js';
import type { Secrets } from '../../platform/secrets.js';
import type { Blobs } from '../../store/blobs.js';
import type { Actor, Change, Directory } from '../../store/directory.js';
import type { Exports } from '../../store/federation/index.js';
import type { EventFeed } from '../../store/feed.js';
import type { Files } from '../../store/files.js';
import type { Mirror } from '../../store/mirror.js';
import type { Queries } from '../../store/queries.js';
import type { ReportedLoad, Store } from '../../store/store.js';
import type { Budget } from '../admission/budget.js';
import type { Shares } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import { ApiError } from '../errors.js';
import type { Loaders } from '../loaders.js';
import type { Fits } from './fit.js';
import type { Ranks } from './ranks.js';

/** Files of runs that the service keeps, and for how long. */
export interface FileStore {
  files: Files;
  blobs: Blobs;
  retentionDays: number;
}

/** Tells schedulers that there may be something to do. Never fails a request: a slow timer makes up for lost ones. */
export type Wake = (schedulers: readonly Scheduler[]) => void;

/** What became of a message to the endpoint of a webhook. */
export interface WebhookAnswer {
  ok: boolean;
  /** null: there was no answer. */
  status: number | null;
  reason?: string;
  tookMs: number;
}

/** Who asks, and what services use to answer. */
export interface Asker {
  viewer: Viewer;
  /** What the operation costs and may cost; of a subscription, the update that is being answered. */
  budget: Budget;
  /** Batches and remembers look-ups of this request; of a subscription, those of the update that is being answered. */
  loaders: Loaders;
}

export interface ServiceParts {
  store: Store;
  directory: Directory;
  queries: Queries;
  /** Copies of our datasets for peers. */
  exports: Exports;
  fileStore: FileStore;
  feed: EventFeed;
  /** For dry runs and explanations only: keeping it in step costs work. */
  mirror: Mirror;
  wake: Wake;
  limits: Limits;
  shares: Shares;
  /** Whether anything could ever run a job. */
  fits: Fits;
  /** Where the jobs of a submission stand in the workflow that they make up, by what is remembered to be registered. */
  ranks: Ranks;
  /** The identity provider that is believed; null: none. */
  oidcIssuer: string | null;
  /** Whether users may sign in by password. */
  passwords: boolean;
  /** Encrypts what is kept for users; null: the operator has given no key. */
  secrets: Secrets | null;
  /** Epoch seconds. */
  now(): number;
  /** An agent was refused a machine: another holds the lease. */
  agentRefused(fields: object): void;
  /** The agent of a site that schedules itself has reported its load. */
  siteReported(site: string, load: ReportedLoad): void;
  /** A machine gets no jobs: it is registered as more than, or other than, its agent has measured. */
  machineUnfit(fields: object): void;
  /** Sends a message to a webhook, and waits for the answer; null: there is none of this number. */
  testWebhook(id: number): Promise<WebhookAnswer | null>;
  /** Keys may have lost their power: ask again before trusting one. */
  keysChanged(): void;
}

/** Wakes whoever has to look again after a change. */
export async function wakeAfter(
  { queries, wake }: Pick<ServiceParts, 'queries' | 'wake'>,
  change: WorldChange,
): Promise<void> {
  const concerned = concernedBy(change);
  if (concerned !== 'ALL') return void wake(concerned);
  const sites = await queries.sites('', SITES_MAX);
  wake([ROOT, ...sites.map((site) => site.id)]);
}

/** More sites than anybody has; the slow timer wakes the rest. */
const SITES_MAX = 10_000;

/** On whose behalf a change is made. */
export const actor = (viewer: Viewer, requestId: string): Actor => ({ userId: viewer.userId, requestId });

/** The value of a change that was made. Throws what it was refused with. */
export function done<T>(change: Change<T>): T {
  if (change.kind === 'done') return change.value;
  throw new ApiError(change.code, change.message);
}
