/** All kinds of policies as they are told to people: what their documents may say, and what their terms mean. */
import { type DescribedField, type DescribedTerm, fieldsOf, termsOf } from './described.js';
import { dispatchKinds } from './dispatch/registry.js';
import { numberWords } from './explain/words.js';
import type { KindWords, RulesSchema } from './local/policy.js';
import { localKinds } from './local/registry.js';
import { DEFAULT_POLICY, policySchema } from './policy.js';

export interface DescribedKind {
  kind: string;
  label: string;
  about: string;
  /** To begin with. */
  document: Record<string, unknown>;
  fields: DescribedField[];
  /** Of its decisions, in the order in which they are compared where they are. */
  terms: DescribedTerm[];
}

export interface PolicyKinds {
  dispatch: DescribedKind[];
  local: DescribedKind[];
  /** Fields of a policy besides `dispatch` and `local`. */
  general: DescribedField[];
  /** Numbers of explanations that are no terms of a kind. */
  numbers: DescribedTerm[];
}

/** Of the product; kinds that simulations add have no words. */
export function policyKinds(): PolicyKinds {
  return {
    dispatch: dispatchKinds.map(described),
    local: localKinds.map(described),
    general: fieldsOf(policySchema.omit({ dispatch: true, local: true }), DEFAULT_POLICY),
    numbers: termsOf(numberWords),
  };
}

function described(one: KindWords<RulesSchema> & { schema: RulesSchema }): DescribedKind {
  const { schema, label, about, terms = {} } = one;
  const kind = schema.shape.kind.value;
  const document = { ...(one.initial ?? schema.parse({ kind })) };
  return { kind, label, about, document, fields: fieldsOf(schema, document), terms: termsOf(terms) };
}
