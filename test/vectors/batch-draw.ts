/** Inputs for the rules of batch-rules.ts. */
import type { Clause, LimitSignals, NeedsCheck, NeedsState, RetryCase, UpwardRanks } from './batch-rules.js';
import type { Draws } from './draws.js';

export const BATCH_INPUTS: Record<string, (draw: Draws) => unknown> = {
  needs_check: (draw): NeedsCheck => {
    const ref = () => `r${draw.integer(0, draw.chance(0.05) ? 9 : 6)}`;
    const group = () =>
      draw.of(['old', 'plain', 'empty', 'new', 'newer', ...(draw.chance(0.1) ? ['none'] : [])]);
    const job = () => draw.of(['e1', 'e2', ...(draw.chance(0.1) ? ['gone'] : [])]);
    const conditions = draw.of([['OK'], ['OK', 'ANY', 'START', 'NOT_OK'], ['CORRESPONDING', 'OK']]);
    const term = () => {
      const minDelayS = draw.chance(0.05) ? draw.of([-1, 1e9 + 1]) : draw.of([0, 60, 1e9]);
      const target = draw.of([() => ({ ref: ref() }), () => ({ job: job() }), () => ({ group: group() })])();
      return { ...target, condition: draw.of(conditions), minDelayS };
    };
    const clause = (): Clause => ({
      expression: draw.of(['ALL', 'ANY'] as const),
      of: draw.list(3, term, draw.chance(0.1) ? 0 : 1),
    });
    const arrays = draw.chance(0.6);
    const array = (): [number, number] => {
      const first = draw.integer(0, 3);
      return [first, first + draw.integer(0, 4)];
    };
    const indices = () => draw.shuffled(draw.some([0, 1, 2, 3, 4, 5, 6, 7], 0.8));
    return {
      limits: {
        jobs: draw.of([6, 100_000]),
        edges: draw.of([8, 1_000_000]),
        needsPerJob: draw.of([2, 1_000]),
      },
      existingJobs: ['e1', 'e2'],
      existingGroups: [
        { name: 'old', indices: indices() },
        { name: 'plain', indices: [null, 1] },
        { name: 'empty', indices: [] },
      ],
      items: draw.list(7, (i) => ({
        ref: draw.chance(0.05) ? ref() : `r${i}`,
        array: arrays && draw.chance(0.7) ? array() : null,
        group: draw.chance(0.4) ? draw.of(['old', 'new', 'newer']) : null,
        needs: draw.list(draw.of([1, 3]), clause),
      })),
    };
  },

  needs_state: (draw): NeedsState => {
    const now = 1000;
    const groups = ['g', 'h'];
    const made: NeedsState['jobs'] = [];
    const count = draw.integer(1, 10);
    for (let i = 0; i < count; i++) {
      // Groups whose members have all been made, so that nothing needs itself.
      const open = groups.filter((group) => made.some((job) => job.group === group));
      const term = () => {
        const minDelayS = draw.of([0, 0, 100, 400]);
        const condition = draw.of(['START', 'OK', 'NOT_OK', 'ANY']);
        const group = draw.of([...open, '']);
        if (group === '' || draw.chance(0.5)) return { job: draw.of(made).id, condition, minDelayS };
        return { group, condition, minDelayS };
      };
      const clause = (): Clause => ({
        expression: draw.of(['ALL', 'ANY'] as const),
        of: draw.list(3, term, 1),
      });
      const needs = made.length === 0 ? [] : draw.list(3, clause);
      const named = needs.flatMap(({ of }) => of).flatMap((one) => ('group' in one ? [one.group] : []));
      const startedAt = draw.chance(0.4) ? draw.of([100, 200, 500, 600]) : null;
      const at = draw.of([600, 600, 700, 900, 1000]);
      const ended = draw.chance(0.5)
        ? { at, ok: startedAt !== null && draw.chance(0.6), final: startedAt === null || draw.chance(0.8) }
        : null;
      // A member of a group that it or an earlier job needs might close a circle.
      const free = groups.filter(
        (group) =>
          !named.includes(group) &&
          !made.some((job) =>
            job.needs.some(({ of }) => of.some((one) => 'group' in one && one.group === group)),
          ),
      );
      made.push({
        id: `j${i}`,
        submittedAt: draw.of([0, 100, 500, 1000]),
        notBefore: draw.of([null, null, 900, 1001]),
        group: free.length > 0 && draw.chance(0.5) ? draw.of(free) : null,
        arrayIndex: i,
        startedAt,
        ended,
        onUnmet: draw.of(['CANCEL', 'CANCEL', 'HOLD', 'RUN'] as const),
        needs,
      });
    }
    return { now, jobs: draw.shuffled(made) };
  },

  upward_ranks: (draw): UpwardRanks => {
    const sites = draw.list(4, (i) => `s${i}`, 1);
    // Equal values, so that ranks tie, or any.
    const [time, size] = draw.chance(0.6)
      ? [() => draw.of([0, 1, 10, 20]), () => draw.of([0, 1, 64])]
      : [() => draw.between(0, 4000), () => draw.between(0, 1000)];
    const links = sites.flatMap((from) =>
      sites
        .filter((to) => to !== from)
        .map((to) => ({ from, to, latencyS: draw.of([0, 1, 8]), mbPerS: draw.of([0.5, 1, 3, 128]) })),
    );
    const jobs = draw.list(10, (i) => ({
      id: `j${i}`,
      runs: draw.some(sites, 0.7).map((site) => ({ site, p50S: time() })),
    }));
    const edges = jobs.flatMap((a, i) =>
      jobs
        .slice(i + 1)
        .filter(() => draw.chance(0.25))
        .map((b) => ({ from: a.id, to: b.id, mb: size() })),
    );
    return { links, jobs: draw.shuffled(jobs), edges: draw.shuffled(edges) };
  },

  limit_signals: (draw): LimitSignals => {
    const startedAt = draw.of([0, 7]);
    const at = () => draw.of([0, 5, 10, 20, 30, 40]);
    const answer = () =>
      draw.chance(0.4) ? null : { afterS: draw.of([0, 5, 10, 20]), exitCode: draw.of([0, 1, null]) };
    return {
      startedAt,
      runTimeLimitS: draw.chance(0.2) ? null : at(),
      warnS: draw.of([null, 0, 5, 10, 50]),
      warnSignal: draw.of(['SIGTERM', 'SIGUSR1']),
      killGraceS: draw.of([0, 5, 10]),
      stop: draw.chance(0.5)
        ? null
        : {
            at: startedAt + at(),
            graceS: draw.of([0, 5, 10]),
            cause: draw.of(['PREEMPTED', 'REQUEUED', 'CANCELLED_BY_USER']),
          },
      process: { runS: at(), exitCode: draw.of([0, 3]), onWarn: answer(), onTerm: answer() },
    };
  },

  retry: (draw): RetryCase => {
    const causes = [
      ...['EXITED_NONZERO', 'EXITED_NONZERO', 'SIGNALLED', 'SIGNALLED', 'MEMORY_LIMIT', 'RUN_TIME_LIMIT'],
      ...['LOST', 'STAGING_FAILED', 'MACHINE_FAILED', 'PREEMPTED', 'DRAINED', 'GIVEN_UP', 'REFUSED'],
      ...['EXITED_ZERO', 'CANCELLED_BY_USER', 'CANCELLED_BY_OPERATOR', 'DEADLINE_PASSED', 'WITHDRAWN'],
    ];
    const signal = () => draw.of(['SIGKILL', 'SIGSEGV', 'SIGTERM', 'SIGUSR1']);
    const some = <T>(make: () => T): T[] | null => (draw.chance(0.5) ? null : draw.list(2, make, 1));
    const codes = () => {
      const from = draw.of([1, 3, 42, 128, 137]);
      return { from, to: from + draw.of([0, 2, 15]) };
    };
    const rule = () => ({
      causes: some(() => draw.of(causes.slice(0, 13))),
      exitCodes: some(codes),
      signals: some(signal),
      action: draw.of(['RETRY', 'RETRY', 'RETRY_ELSEWHERE', 'RETRY_ELSEWHERE', 'FAIL', 'HOLD']),
      memoryFactor: draw.of([1, 1, 1.1, 1.5, 2]),
      memoryMaxMb: draw.of([null, 4400, 5000, 10_000]),
    });
    const machines = draw.list(3, (i) => `m${i}`, 1);
    const end = () => {
      const cause = draw.of(draw.chance(0.05) ? causes : causes.slice(0, 13));
      const exited = cause === 'EXITED_NONZERO';
      return {
        cause,
        exitCode: exited ? draw.of([1, 4, 42, 137, 139]) : null,
        signal: exited || draw.chance(0.2) ? null : signal(),
        machine: draw.of(machines),
      };
    };
    return {
      retry: {
        maxRetries: draw.of([0, 1, 3, 5]),
        backoffS: draw.of([0, 30, 60]),
        factor: draw.of([1, 1.5, 2]),
        maxBackoffS: draw.of([0, 100, 3600]),
        rules: draw.list(3, rule),
      },
      maxAttempts: draw.of([1, 3, 5]),
      restartable: draw.chance(0.7),
      memoryMb: draw.of([0, 1, 4000, 10_000]),
      largestMb: draw.of([10_000, 16_000]),
      machines,
      // A run that ended by a signal has one.
      ends: draw.list(7, end).map((one) => (one.cause === 'SIGNALLED' ? { ...one, signal: signal() } : one)),
    };
  },
};
