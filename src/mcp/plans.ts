/** Writes in two steps: a plan with its digest, and its confirmation by that digest. */
import { createHmac, randomBytes } from 'node:crypto';

/** A plan can be confirmed for so long. */
const GOOD_MS = 600_000;
/** Plans of one key, and of all; the oldest are forgotten. */
const OF_KEY_MAX = 50;
const PLANS_MAX = 1_000;

export interface Plan<Does = unknown> {
  readonly key: string;
  readonly input: string;
  /** What is done when it is confirmed. */
  readonly does: Does;
  readonly untilMs: number;
}

/** The plans that one process has made. Those of one key are no other's. */
export class Plans {
  /** Nobody outside the process can make a digest, so no text that a model reads contains one that counts, but for the answer that says it. */
  readonly #secret = randomBytes(32);
  /** By digest, oldest first. A confirmed one stays: confirmed again, it does the same again. */
  readonly #plans = new Map<string, Plan>();

  constructor(private readonly nowMs: () => number = Date.now) {}

  /**
   * The digest of a plan.
   *
   * @param key of the caller
   * @param input what the tool was called with, without the digest
   * @param does what is done when it is confirmed; it may contain the id
   */
  make<Does>(
    key: string,
    tool: string,
    input: object,
    does: (id: string) => Does,
  ): { digest: string; does: Does } {
    // Two equal plans are two: whoever confirms both submits twice.
    const id = randomBytes(12).toString('hex');
    const plan = { key, input: canonical({ tool, input }), does: does(id), untilMs: this.nowMs() + GOOD_MS };
    const digest = createHmac('sha256', this.#secret)
      .update(canonical([id, plan]))
      .digest('hex')
      .slice(0, 32);
    this.#forget(key);
    this.#plans.set(digest, plan);
    return { digest, does: plan.does };
  }

  /** What a digest confirms; or why it does not, in words. `Does` is what the tool of that name makes. */
  confirm<Does>(key: string, tool: string, input: object, digest: string): Does | string {
    const plan = this.#plans.get(digest);
    if (plan === undefined || plan.key !== key || plan.untilMs < this.nowMs())
      return `confirm: ${JSON.stringify(digest)} is not the digest of a plan of the last ${GOOD_MS / 60_000} minutes; call ${tool} without confirm to get one`;
    if (plan.input !== canonical({ tool, input }))
      return `confirm: the plan with this digest was made with other arguments; repeat those, or call ${tool} without confirm to get a new plan`;
    return plan.does as Does;
  }

  #forget(key: string): void {
    for (const [digest, { untilMs }] of this.#plans) if (untilMs < this.nowMs()) this.#plans.delete(digest);
    const own = [...this.#plans].filter(([, plan]) => plan.key === key);
    const oldest =
      own.length >= OF_KEY_MAX ? own[0] : this.#plans.size >= PLANS_MAX ? [...this.#plans][0] : undefined;
    if (oldest) this.#plans.delete(oldest[0]);
  }
}

/** The same text for the same values, in whatever order they were given. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}
