/**
 * What agents have to do, as it happens. It is read once for all agents of a site that are connected to this process, and each is given
 * what is on its machines: with a thousand agents an assignment costs one query, not a thousand.
 */
import { MAX } from '../../platform/limits.js';
import type { Assignment, Cursor, Store } from '../../store/store.js';

/** A part of what is new, for one agent. */
export interface AgentNews {
  /** What was read reaches up to here. */
  cursor: Cursor;
  assignments: Assignment[];
}

/** Messages that may wait for an agent; one that is further behind gets the list of what is live. */
const WAITING_MAX = 100;

/** The news of one site, and the agents that wait for them. */
class SiteNews {
  /** Without news: they have to be given the list of what is live. */
  private readonly agents = new Map<symbol, { agentId: number; news: AgentNews[] | null }>();
  private reading: Promise<void> | null = null;

  constructor(
    private readonly store: Pick<Store, 'assignments'>,
    private readonly siteId: number,
    private at: Cursor,
  ) {}

  get idle(): boolean {
    return this.agents.size === 0;
  }

  join(agentId: number): symbol {
    const key = Symbol();
    this.agents.set(key, { agentId, news: [] });
    return key;
  }

  leave(key: symbol): void {
    this.agents.delete(key);
  }

  /** Reads as far as this; whether there is something for the agent then. */
  async upTo(cursor: Cursor, key: symbol): Promise<boolean> {
    for (let before: Cursor | null = null; Number(this.at) < Number(cursor) && this.at !== before; ) {
      before = this.at;
      this.reading ??= this.read().finally(() => {
        this.reading = null;
      });
      await this.reading;
    }
    const news = this.agents.get(key)?.news;
    return news === null || (news?.length ?? 0) > 0;
  }

  /** What waits for the agent, of what is behind a cursor; null: it needs the list of what is live, and what is new from now on. */
  take(key: symbol, behind: Cursor): AgentNews[] | null {
    const agent = this.agents.get(key);
    if (!agent) return [];
    const { news } = agent;
    agent.news = [];
    return news?.filter((one) => Number(one.cursor) > Number(behind)) ?? null;
  }

  private async read(): Promise<void> {
    const { next, list, assignments } = await this.store.assignments(
      this.siteId,
      this.at,
      MAX.assignments,
      MAX.assignmentBytes,
    );
    if (list !== null) {
      // Runs were given up, or retention has passed us.
      for (const agent of this.agents.values()) agent.news = null;
      this.at = typeof next === 'string' ? next : next.cursor;
      return;
    }
    const cursor = next as Cursor;
    const byAgent = new Map<number, Assignment[]>();
    for (const assignment of assignments) {
      const agentId = assignment.machines[0]?.agentId ?? null;
      if (agentId === null) continue;
      const own = byAgent.get(agentId);
      if (own) own.push(assignment);
      else byAgent.set(agentId, [assignment]);
    }
    for (const agent of this.agents.values()) {
      const own = byAgent.get(agent.agentId);
      if (!own || agent.news === null) continue;
      agent.news.push({ cursor, assignments: own });
      if (agent.news.length > WAITING_MAX) agent.news = null;
    }
    this.at = cursor;
  }
}

/** The news of all sites that agents are connected for. */
export class AssignmentNews {
  private readonly sites = new Map<number, SiteNews>();

  constructor(
    private readonly store: Pick<Store, 'assignments'>,
    private readonly now: () => Cursor,
  ) {}

  /** Joins before the list of live runs is read, so that nothing is missed in between. */
  join(siteId: number, agentId: number) {
    const site = this.sites.get(siteId) ?? new SiteNews(this.store, siteId, this.now());
    this.sites.set(siteId, site);
    const key = site.join(agentId);
    return {
      upTo: (cursor: Cursor) => site.upTo(cursor, key),
      take: (behind: Cursor) => site.take(key, behind),
      leave: () => {
        site.leave(key);
        if (site.idle && this.sites.get(siteId) === site) this.sites.delete(siteId);
      },
    };
  }
}
