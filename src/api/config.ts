/** What the API can be told. Every limit is finite: nothing that a client sends may grow without bound. */
export interface ApiConfig {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Whether clients may read the schema through GraphQL. */
  introspection: boolean;
  /** Whether browsers get the portal, and at the endpoint a page to write queries on. */
  portal: boolean;
  limits: ApiLimits;
}

export interface ApiLimits {
  /** Body of a request, and message over a WebSocket, bytes. */
  bodyBytesMax: number;
  /** Objects in a page. */
  pageMax: number;
  /** Jobs in a submission, or touched by one action. */
  jobsMax: number;
  /** Jobs of a bulk group. */
  groupJobsMax: number;
  /** Characters of the texts that a bulk group makes of its template. */
  groupCharsMax: number;
  /** Reports in one `reportRuns`. */
  reportsMax: number;
  /** Machines in one `registerMachines`. */
  machinesMax: number;
  /** Objects that a query may ask for, as limits.ts counts them. */
  costMax: number;
  /** Levels of fields within fields. */
  depthMax: number;
  /** Fields given another name, in all. */
  aliasesMax: number;
  /** Words and signs of a query's text. */
  tokensMax: number;
  /** Requests of one key within a second, and how many more it may save up for a burst. */
  requestsPerSecond: number;
  requestsBurst: number;
  /** Requests without a good key from one address within a minute. */
  strangersPerMinute: number;
  /** Subscriptions of one key, and WebSocket connections in all. */
  subscriptionsPerKey: number;
  connectionsMax: number;
  /** Updates that wait for a slow subscriber before they are given up for a resync. */
  subscriberBuffer: number;
  /** A request that takes longer to arrive is cut off. */
  requestTimeoutMs: number;
  /** Idle connections are kept for the next request of an agent or portal. */
  keepAliveMs: number;
  /** An answer that takes longer is given up: UNAVAILABLE. */
  answerTimeoutMs: number;
}

export const DEFAULT_LIMITS: ApiLimits = {
  bodyBytesMax: 32 * 1024 * 1024,
  pageMax: 5_000,
  jobsMax: 10_000,
  groupJobsMax: 100_000,
  groupCharsMax: 64 * 1024 * 1024,
  reportsMax: 1_000,
  machinesMax: 1_000,
  costMax: 50_000,
  depthMax: 12,
  aliasesMax: 100,
  tokensMax: 20_000,
  requestsPerSecond: 200,
  requestsBurst: 2_000,
  strangersPerMinute: 120,
  subscriptionsPerKey: 2_000,
  connectionsMax: 5_000,
  subscriberBuffer: 20_000,
  requestTimeoutMs: 60_000,
  keepAliveMs: 65_000,
  answerTimeoutMs: 60_000,
};
