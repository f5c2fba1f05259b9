/**
 * More requests than the service can answer: first as many at a time as it takes for the most in a second, then twice as many as that in each
 * second, whether the others have been answered or not, as from clients that do not wait for one another.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile as sortedQuantile } from '../src/simulator/statistics.js';
import { type Measured, sized } from './measure.js';
import { poster } from './poster.js';

const MINUTES = Number(process.env.BENCH_OVERLOAD_MINUTES ?? sized(5, 0.05));
const BEST_S = sized(20, 1);
const AT_A_TIME = 32;
const TICK_MS = 50;
/** A look at the memory is a process of its own. */
const TICKS_PER_LOOK = 100;
/** Requests of a reader and a writer, in turn. */
const REQUESTS = [
  { query: '{ jobs(first: 100) { nodes { id state submittedAt site { name } } } }' },
  {
    query:
      'mutation { submitJobs(input: { allowUnfit: true, jobs: [{ command: "true", os: "nowhere" }] }) { jobIds errors { message } } }',
  },
];
/** What a refusal may be: each says what to do. */
const CLEAR = new Set(['UNAVAILABLE', 'RATE_LIMITED', 'LIMIT_EXCEEDED']);

interface Answer {
  errors?: { extensions?: { code?: string } }[];
}

interface Tally {
  good: number;
  refused: number;
  unclear: string[];
  latenciesMs: number[];
}

export async function overload(service: {
  url: string;
  authorization: string;
  readonly residentMib: number;
}): Promise<Measured> {
  const post = poster<Answer>(service);
  const bodies = REQUESTS.map((one) => JSON.stringify(one));
  let sent = 0;
  async function ask(tally: Tally): Promise<void> {
    const begun = performance.now();
    try {
      const { errors } = await post(bodies[sent++ % bodies.length] as string);
      const code = errors?.[0]?.extensions?.code;
      if (!errors) {
        tally.good++;
        tally.latenciesMs.push(performance.now() - begun);
      } else if (code && CLEAR.has(code)) tally.refused++;
      else tally.unclear.push(code ?? 'no code');
    } catch (error) {
      tally.unclear.push((error as Error).message);
    }
  }
  const tally = (): Tally => ({ good: 0, refused: 0, unclear: [], latenciesMs: [] });

  // The best: some at a time, each sends the next when it has its answer.
  const best = tally();
  const until = performance.now() + BEST_S * 1000;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (performance.now() < until) await ask(best);
    }),
  );
  const bestRate = best.good / BEST_S;

  // Twice that, whatever becomes of it.
  const over = tally();
  const before = service.residentMib;
  let most = before;
  const perTick = Math.ceil((2 * bestRate * TICK_MS) / 1000);
  let ticks = 0;
  const open = new Set<Promise<void>>();
  const begun = performance.now();
  while (performance.now() - begun < MINUTES * 60_000) {
    for (let i = 0; i < perTick; i++) {
      const one = ask(over).finally(() => open.delete(one));
      open.add(one);
    }
    if (ticks++ % TICKS_PER_LOOK === 0) most = Math.max(most, service.residentMib);
    await sleep(Math.max(0, begun + ticks * TICK_MS - performance.now()));
  }
  await Promise.all(open);
  const rate = over.good / ((performance.now() - begun) / 1000);

  // How soon a request is as quick as it was.
  const calm = quantile(best.latenciesMs, 0.9);
  const ended = performance.now();
  let backS = 0;
  for (;;) {
    const alone = tally();
    await ask(alone);
    backS = (performance.now() - ended) / 1000;
    if ((alone.latenciesMs[0] ?? Infinity) <= calm || backS > 60) break;
    await sleep(100);
  }
  const kinds = [...new Set(over.unclear)].slice(0, 5).join(', ');
  return {
    name: 'overload',
    unit: 'jobs/s',
    value: rate,
    baseline: bestRate,
    ratio: rate / bestRate,
    aim: { ratio: 0.8 },
    spread: [rate, rate],
    what: `requests answered per second (half of them submit a job) at twice the rate that can be answered, for ${MINUTES} min; against the highest rate answered before`,
    note: `${over.refused} refused with a code that says what to do, ${over.unclear.length} otherwise${kinds ? ` (${kinds})` : ''}; answered in ${quantile(over.latenciesMs, 0.5).toFixed(0)} ms (median), ${quantile(over.latenciesMs, 0.99).toFixed(0)} ms (99th percentile); resident memory ${before.toFixed(0)} MiB before, ${most.toFixed(0)} MiB at most; as quick as before ${backS.toFixed(1)} s after the end.`,
  };
}

const quantile = (values: readonly number[], share: number): number =>
  sortedQuantile(Float64Array.from(values).sort(), share);
