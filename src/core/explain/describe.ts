/** Decisions in readable form: what was stored compactly is spelled out when somebody asks. */
import type { DispatchExplanation } from '../model.js';
import { type ReasonCode, reasonSentence } from '../reasons.js';

export interface DescribedDispatch {
  sentence: string;
  /** Every site: eligible ones with their terms, in site order, then the others with their reasons. */
  sites: {
    siteId: number;
    terms: Record<string, number>;
    candidate: boolean;
    ineligible: ReasonCode | null;
  }[];
}

export function describeDispatch(reason: ReasonCode, explanation: DispatchExplanation): DescribedDispatch {
  const eligible = explanation.sites.map((siteId, i) => ({
    siteId,
    terms: Object.fromEntries(
      Object.entries(explanation.terms).map(([name, values]) => [name, values[i] as number]),
    ),
    candidate: explanation.candidates.includes(siteId),
    ineligible: null,
  }));
  const others = Object.entries(explanation.ineligible).map(([siteId, why]) => ({
    siteId: Number(siteId),
    terms: {},
    candidate: false,
    ineligible: why,
  }));
  return { sentence: reasonSentence(reason), sites: [...eligible, ...others] };
}

/** Whose reservation it had to respect is not said: it may be another user's. */
export const describeStart = (reason: ReasonCode): string => reasonSentence(reason);
