/** What the API counts. The platform's metrics have these among others. */
export interface ApiMetrics {
  /** The text that Prometheus reads. */
  expose(): Promise<{ body: string; contentType: string }>;
  /** GraphQL operations ended. code: OK, or the code of the first error. */
  operations: { inc(labels: { type: OperationType; code: string }): void };
  operationSeconds: { observe(labels: { type: OperationType }, seconds: number): void };
  /** Machines refused to agents, because another holds the lease. */
  agentRefusals: { inc(): void };
  /** Of a site's own scheduler, as its agent has last reported. */
  siteScheduler: Record<
    'requests' | 'unanswered' | 'listSeconds' | 'jobs' | 'othersWaiting' | 'reportedAt',
    { set(labels: { site: string }, value: number): void }
  >;
  /** Open subscriptions by field. */
  subscriptions: { inc(labels: { field: string }): void; dec(labels: { field: string }): void };
}

export type OperationType = 'query' | 'mutation' | 'subscription';
