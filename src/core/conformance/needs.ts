/** The rules of jobs.md on needs and workflows. */

import { type AskedTerm, checkNeeds, type NeedsItem } from '../needs/check.js';
import { NeedsGraph, type NeedTerm } from '../needs/graph.js';
import type { Clause, NeedsLimits, OnUnmet } from '../needs/model.js';
import { upwardRanks } from '../needs/ranks.js';
import type { Rules } from './rule.js';

interface CheckInput {
  limits: NeedsLimits;
  existingJobs: string[];
  existingGroups: { name: string; indices: (number | null)[] }[];
  items: NeedsItem[];
}

type StateTerm = Exclude<AskedTerm, { ref: string }>;

interface StateInput {
  now: number;
  jobs: {
    id: string;
    submittedAt: number;
    notBefore: number | null;
    group: string | null;
    arrayIndex: number | null;
    startedAt: number | null;
    ended: { at: number; ok: boolean; final: boolean } | null;
    onUnmet: OnUnmet;
    needs: Clause<StateTerm>[];
  }[];
}

interface RanksInput {
  links: { from: string; to: string; latencyS: number; mbPerS: number }[];
  jobs: { id: string; runs: { site: string; p50S: number }[] }[];
  edges: { from: string; to: string; mb: number }[];
}

export const needsRules: Rules = {
  needs_check: ({ limits, existingJobs, existingGroups, items }: CheckInput) => {
    const jobs = new Set(existingJobs);
    const groups = new Map(existingGroups.map(({ name, indices }) => [name, indices]));
    const existing = {
      has: (job: string) => jobs.has(job),
      indicesOf: (group: string) => groups.get(group) ?? null,
    };
    const errors = checkNeeds(items, existing, limits);
    return { accepted: errors.length === 0, errors };
  },

  needs_state: ({ now, jobs }: StateInput) => {
    const graph = new NeedsGraph();
    const membersOf = membersIn(jobs);
    const termsOf = (clause: Clause<StateTerm>, index: number | null): Clause<NeedTerm> => ({
      expression: clause.expression,
      of: clause.of.map((term) => ({
        members: membersOf(term, index),
        condition: term.condition === 'CORRESPONDING' ? 'OK' : term.condition,
        minDelayS: term.minDelayS,
      })),
    });
    graph.add(
      jobs.map(({ submittedAt, notBefore, onUnmet, needs, arrayIndex }, id) => {
        return { id, submittedAt, notBefore, onUnmet, needs: needs.map((one) => termsOf(one, arrayIndex)) };
      }),
    );
    jobs.forEach(({ startedAt, ended }, id) => {
      if (startedAt !== null) graph.started(id, startedAt);
      if (ended?.final) graph.ended(id, ended.at, ended.ok);
    });
    graph.settle();
    return jobs.map(({ id: name }, id) => {
      const { because, ...view } = graph.view(id, now);
      return { id: name, ...view, because: because === null ? null : jobs[because]?.id };
    });
  },

  upward_ranks: ({ links, jobs, edges }: RanksInput) => {
    const position = new Map(jobs.map(({ id }, i) => [id, i]));
    const at = (id: string): number => position.get(id) as number;
    const link = new Map(links.map((one) => [JSON.stringify([one.from, one.to]), one]));
    const { ranks, order } = upwardRanks(
      jobs,
      edges.map(({ from, to, mb }) => ({ from: at(from), to: at(to), mb })),
      (from, to) => {
        const found = link.get(JSON.stringify([from, to]));
        if (found === undefined) throw new Error(`there is no link from ${from} to ${to}`);
        return found;
      },
    );
    return {
      ranks: jobs.map(({ id }, i) => ({ id, rank: ranks[i] })),
      order: order.map((i) => jobs[i]?.id),
    };
  },
};

/** The jobs that a term is about, by position: the same list for the same group. */
function membersIn(jobs: StateInput['jobs']): (term: StateTerm, index: number | null) => readonly number[] {
  const ids = new Map(jobs.map(({ id }, i) => [id, [i]]));
  const groups = new Map<string, number[]>();
  jobs.forEach(({ group }, i) => {
    if (group !== null) groups.set(group, [...(groups.get(group) ?? []), i]);
  });
  return (term, index) => {
    const members = 'job' in term ? ids.get(term.job) : groups.get(term.group);
    if (members === undefined) throw new Error(`${JSON.stringify(term)} names nothing that is there`);
    return term.condition === 'CORRESPONDING'
      ? members.filter((i) => jobs[i]?.arrayIndex === index)
      : members;
  };
}
