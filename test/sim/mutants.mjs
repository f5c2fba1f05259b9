/**
 * Deliberate breakages, each of which the simulation has to find: shown by `npm run test:mutants`. Those in the product break what is
 * built; those in the model of the store break what the database keeps, so that each promise is known to be looked at.
 */
export const mutants = [
  // The product
  {
    what: 'a report of an earlier attempt counts for the present one',
    file: 'src/store/rules.ts',
    find: "if (report.epoch !== job.epoch) return 'stale-epoch';",
    replace: '',
  },
  {
    what: 'a lost run is not tried again',
    file: 'src/core/runs/retry.ts',
    find: "  LOST: 'RETRY',",
    replace: '',
  },
  {
    what: 'a lost run is tried again for ever',
    file: 'src/core/runs/retry.ts',
    find: 'if (retries >= most)',
    replace: 'if (false)',
  },
  {
    what: 'a run that failed is tried again before its time',
    file: 'src/store/rules.ts',
    find: "(retry.delayS ?? 0) > 0 ? 'BLOCKED'",
    replace: "false ? 'BLOCKED'",
  },
  {
    what: 'a job that needs another to end well is let go whatever its end',
    file: 'src/core/needs/outcome.ts',
    find: 'if (this.firstNotOk !== null) return { holds: false, ...this.firstNotOk };',
    replace: '',
  },
  {
    what: 'a site runs more jobs than it may',
    file: 'src/store/rules.ts',
    find: 'if (free.runs !== null && free.runs < 1)',
    replace: 'if (false)',
    also: {
      file: 'src/core/grid/grid.ts',
      find: 'const maxRuns = site.maxRunningJobs ?? Infinity;',
      replace: 'const maxRuns = Infinity;',
    },
  },
  {
    what: 'a run ends before it began when the clock is set back',
    file: 'src/store/rules.ts',
    find: 'Math.max(from ?? -Infinity, Math.min(meant, now))',
    replace: 'Math.min(Math.max(from ?? meant, meant), now)',
  },
  {
    what: 'lost wake-ups are not made up for',
    file: 'src/engine/sweep.ts',
    find: 'await this.tools.wake(waiting(mirror.grid));',
    replace: '',
    also: {
      file: 'src/engine/engine.ts',
      find: 'patrol.start();',
      replace: '',
    },
  },
  {
    what: 'nobody sweeps when the queue has been emptied',
    file: 'src/engine/engine.ts',
    find: 'await waker.repeatSweep(config.sweepEveryMs);',
    replace: '',
    also: {
      file: 'src/engine/patrol.ts',
      find: "if (!(await this.perform({ kind: 'sweep' }))) return;",
      replace: 'await this.mirror.sync().catch(() => {});',
    },
  },
  {
    what: 'clients do not try again',
    file: 'src/client/retry.ts',
    find: 'failed(error, failures, waitMs);',
    replace: 'failed(error, failures, waitMs); return undefined;',
  },
  {
    what: 'a report without an answer is forgotten',
    file: 'src/agent/agent.ts',
    find: 'if (!(error instanceof ServiceError) || !REFUSED.has(error.code)) throw error;',
    replace: 'this.runner.acknowledge(reports.at(-1)!.seq); return;',
  },
  {
    what: 'more reports are forgotten than were answered',
    file: 'src/agent/agent.ts',
    find: 'this.runner.acknowledge(reports.at(-1)!.seq);',
    replace: 'this.runner.acknowledge(reports.at(-1)!.seq + 1);',
  },
  {
    what: 'an agent does not stop what it is to stop',
    file: 'src/agent/agent.ts',
    find: 'else runner.cancel(run, ',
    replace: 'else if (false) runner.cancel(run, ',
  },
  {
    what: 'an agent does not know what it has started',
    file: 'src/agent/known.ts',
    find: 'return namesOf(run).some((name) => (this.epochs.get(keyOf(name)) ?? 0) >= run.epoch);',
    replace: 'return false;',
  },
  {
    what: 'chance comes from elsewhere',
    file: 'src/engine/engine.ts',
    find: 'Math.floor(env.random() * 2 ** 32)',
    replace: 'Math.floor((env.random(), Math.random()) * 2 ** 32)',
    also: {
      file: 'src/client/retry.ts',
      find: 'env.random() / 2',
      replace: 'Math.random() / 2',
    },
  },
  {
    what: 'an agent finds nothing again of what it has started',
    file: 'test/sim/host.ts',
    find: 'if (record === null || ended.has(key)) {',
    replace: 'if (true) {',
  },
  {
    what: 'a spoiled line keeps the agent from starting',
    file: 'src/agent/process/journal.ts',
    find: 'return null;\n  try {',
    replace: "throw new Error('spoiled');\n  try {",
  },
  {
    what: 'a torn line stays in the journal',
    file: 'src/agent/process/journal.ts',
    find: 'this.files.ftruncateSync(this.fd, this.size);\n      this.isTorn = false;\n      throw error;',
    replace: 'this.isTorn = false;\n      throw error;',
  },
  {
    what: 'a report for which there is no room is dropped',
    file: 'src/agent/process/reports.ts',
    find: 'if (!this.tryAdd(report)) this.owed.push(report);',
    replace: 'this.tryAdd(report);',
  },
  {
    what: 'reports are numbered from 1 again',
    file: 'src/agent/process/journal.ts',
    find: 'this.lastSeq = this.acknowledged;',
    replace: 'this.lastSeq = 0;',
  },
  {
    what: 'a retried submission is judged like a new one',
    file: 'src/api/services/jobs.ts',
    find: 'now: isRetry ? null : now(),',
    replace: 'now: now(),',
  },
  {
    what: "one user changes another's jobs",
    file: 'src/api/services/access.ts',
    find: '(handlesAll(viewer) ? null : viewer.userId);',
    replace: 'null;',
  },
  {
    what: 'a number beyond its bound is let in',
    file: 'src/api/services/job-input.ts',
    find: 'if (work > MAX.work)',
    replace: 'if (work > MAX.work * 10)',
  },
  {
    what: 'a machine shared in time takes more tasks than it may',
    file: 'src/store/rules.ts',
    find: 'machine.places < 1',
    replace: 'machine.places < -9',
    also: {
      file: 'src/core/grid/amounts.ts',
      find: 'places: maxTasks ?? 0',
      replace: 'places: 10 * (maxTasks ?? 0)',
    },
  },
  {
    what: 'all of a file has come, and nobody makes it whole when its last part comes again',
    file: 'src/api/services/files.ts',
    find: "if (file === null) throw notFound('file', id);",
    replace:
      "if (file === null) throw notFound('file', id); if (offset < file.received) return { receivedBytes: file.received, kept: file.received === file.bytes };",
    also: { file: 'src/store/file-sweep.ts', find: 'await this.finish();', replace: '' },
  },
  {
    what: 'a file is kept that is not whole',
    file: 'src/api/services/files.ts',
    find: 'await whole(file, () => blobs.finish(file));',
    replace: '',
  },
  {
    what: 'output counts as delivered before it is',
    file: 'src/agent/agent.ts',
    find: 'const outputs = pieces.map(',
    replace: 'this.runner.delivered(pieces); const outputs = pieces.map(',
  },
  {
    what: 'a run ends before its files are kept',
    file: 'test/sim/host.ts',
    find: 'if (code === 0 && this.isKeeping(key, run)) return;',
    replace: '',
  },
  {
    what: 'promises that must move back take places in the order from the last',
    file: 'src/core/local/conservative/conservative.ts',
    find: 'promised.sort((a, b) => (before.get(a) as StartPromise).at - (before.get(b) as StartPromise).at);',
    replace: 'promised.reverse();',
  },
  {
    what: 'a start is promised 30 s later than there is room',
    file: 'src/core/local/conservative/conservative.ts',
    find: 'const made = promisedIn(opening,',
    replace:
      'if (opening.at > now) { opening.at += 30; opening.end += 30; } const made = promisedIn(opening,',
  },
  // Peers
  {
    what: 'a claim is granted to whoever asks',
    file: 'src/core/grid-tree/hybrid.ts',
    find: 'claim.isOpen || claim.isTheirs;',
    replace: 'claim.isOpen || claim.isTheirs || true;',
  },
  {
    what: 'an agent is told of a copy that nobody has granted',
    file: 'test/store/memory.ts',
    find: 'this.federation.foreign.get(job.id)?.epoch !== null &&',
    replace: '',
  },
  {
    what: 'owners are not told what became of their runs',
    file: 'src/federation/guest.ts',
    find: 'await this.report();',
    replace: '',
  },
  {
    what: 'an owner counts as told before it has answered',
    file: 'src/federation/guest.ts',
    find: 'const ready: Told[] = [];',
    replace:
      'const ready: Told[] = []; for (const { offer, over } of due) await copies.told(this.siteId, [offer], over ? 2 : 1);',
  },
  {
    what: 'a copy runs again when it was lost',
    file: 'src/store/federation/rules.ts',
    find: 'restartable: false,\n    retry: NOT_HERE,',
    replace: 'restartable: true,\n    retry: null,',
  },
  {
    what: 'a run at a peer ends before its owner has its files',
    file: 'src/federation/guest.ts',
    find: 'if (one.files === null) return one;',
    replace: 'if (one.files === null || one.files !== null) return one;',
  },
  {
    what: 'what a restored database has forgotten is not given back',
    file: 'src/federation/guest.ts',
    find: '...bad, ...(await copies.notHere(this.siteId, offered, claimed))',
    replace: '...bad',
  },
  // What the store keeps
  {
    what: '2: an agent is not told of runs that were given up',
    file: 'test/store/memory.ts',
    find: 'isGivenUp(event, siteId, this',
    replace: 'false && isGivenUp(event, siteId, this',
  },
  {
    what: '1: a job that is taken back is lost',
    file: 'test/store/memory.ts',
    find: "this.change(job, 'takeBack', {});",
    replace: 'this.jobs.delete(job.id);',
  },
  {
    what: '2: a run goes on behind the end of its job',
    file: 'test/store/memory.ts',
    find: 'Object.assign(run, { endedAt: at, cause: causeOfRun(seen, end, report.cause), retry: end.retry });',
    replace: '',
  },
  {
    what: '2: a job is dispatched before it was submitted when the clock is set back',
    file: 'test/store/memory.ts',
    find: 'dispatchedAt: this.inOrder(job, context.now)',
    replace: 'dispatchedAt: ms(context.now)',
  },
  {
    what: '3: CPUs are not given back',
    file: 'test/store/memory.ts',
    find: 'this.occupy(job, run, -1);',
    replace: '',
  },
  {
    what: '3: licenses are given out twice',
    file: 'test/store/memory.ts',
    find: 'copies: copies - inUse',
    replace: 'copies',
  },
  {
    what: '3: quotas are not looked at',
    file: 'test/store/memory.ts',
    find: 'if (used + jobs.length > limit)',
    replace: 'if (false)',
  },
  {
    what: '4: a transition without an event',
    file: 'test/store/memory.ts',
    find: "this.event(moved ? 'JOB_STATE'",
    replace: "if (job.seq !== 3) this.event(moved ? 'JOB_STATE'",
  },
  {
    what: '6: a machine that was silent stays so',
    file: 'test/store/memory.ts',
    find: 'machine.silent = false;',
    replace: 'machine.silent = machine.id % 2 === 0;',
    // By the next registration at the latest.
    also: { file: 'src/store/rules.ts', find: '!own || machine.silent ||', replace: '!own ||' },
  },
  {
    what: '7: a start without a decision',
    file: 'test/store/memory.ts',
    find: "this.decisions.push({ jobId: job.id, kind: 'START', policyVersion: context.policyVersion });",
    replace: '',
  },
  {
    what: '8: a key is forgotten',
    file: 'test/store/memory.ts',
    find: 'if (idempotencyKey !== null && known !== undefined)',
    replace: 'if (false && known !== undefined)',
  },
];
