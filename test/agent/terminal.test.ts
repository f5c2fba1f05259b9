/** Runs in terminals, as the runner carries them out: what is typed, once each, sizes, and who leaves. */
import { expect, it } from 'vitest';
import type { ProcessRunner } from '../../src/agent/process/runner.js';
import { assignment, endOf, ends, openRunner, temporaryDirectory, until } from './support.js';

const SIZE = { rows: 24, columns: 80 };
const name = (jobId: string) => ({ jobId, epoch: 1 });
const inTerminal = (jobId: string, ...args: string[]) => ({
  ...assignment(jobId, '/bin/bash', '--norc', ...args),
  environment: { PS1: 'ready> ', TERM: 'dumb' },
  terminal: SIZE,
});
const typing = (runner: ProcessRunner, jobId: string) => {
  let sequence = 0;
  return (text: string, size: typeof SIZE | null = null, again = false) =>
    runner.input({ ...name(jobId), sequence: again ? sequence : ++sequence, body: Buffer.from(text), size });
};

/** What the terminal shows so far. */
function shows(runner: ProcessRunner): () => string {
  let text = '';
  return () => {
    const pieces = runner.freshOutput();
    for (const piece of pieces) if (piece.stream === 'STDOUT') text += piece.text ?? '';
    runner.delivered(pieces);
    return text.replaceAll('\r', '');
  };
}

it('a shell has a terminal of its size, is typed to, interrupted, and gives its exit code', async () => {
  const runner = await openRunner({ terminals: true });
  runner.start(inTerminal('job_1'));
  const [type, shown] = [typing(runner, 'job_1'), shows(runner)];
  await until(() => shown().includes('ready> '), 'the prompt');
  expect(runner.hasTerminals).toBe(true);
  expect(type('stty size; tty\n')).toBe(true);
  await until(() => /24 80\n\/dev\/pts\/\d+\n/.test(shown()), 'the size and the name of the terminal');
  type('stty size\n', { rows: 50, columns: 132 });
  await until(() => shown().includes('50 132\n'), 'the new size');
  // What is typed ahead of Ctrl-C is lost with it, as at every terminal; and it interrupts what has the terminal by then, so that says so itself.
  // `exec`: dash loses an interruption that comes while it is forking.
  type("sh -c 'echo go$((1 + 1)); exec sleep 1000'\n");
  await until(() => shown().includes('go2\n'), 'the program');
  type('\x03');
  // The terminal echoes ^C after it has sent the signal, so the prompt may come first.
  await until(() => /go2\n[\s\S]*ready> /.test(shown()), 'the prompt after the interruption');
  type('echo code $?\n');
  await until(() => shown().includes('code 130\n'), 'its exit code');
  type('echo up$((1 + 2)); cat | tr a-z A-Z\n');
  await until(() => shown().includes('up3\n'), 'the program');
  type('shouted\n\x04');
  await until(() => shown().includes('SHOUTED'), 'what was typed to a program');
  type('exit 3\n');
  await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
  expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
  expect(type('late\n')).toBe(false);
});

it('a piece that is sent again is typed once, also by the next agent', async () => {
  const stateDir = temporaryDirectory();
  const before = await openRunner({ terminals: true, stateDir });
  before.start(inTerminal('job_1'));
  const shown = shows(before);
  await until(() => shown().includes('ready> '), 'the prompt');
  const piece = { ...name('job_1'), sequence: 7, body: Buffer.from('echo $((1000 + ++n))\n'), size: null };
  expect([before.input(piece), before.input(piece)]).toEqual([true, true]);
  await until(() => shown().includes('1001\n'), 'the answer');
  before.close();
  const after = await openRunner({ terminals: true, stateDir });
  expect(after.input(piece)).toBe(true);
  expect(after.input({ ...piece, sequence: 8 })).toBe(true);
  const now = shows(after);
  await until(() => now().includes('1002\n'), 'the next answer');
  expect(after.input({ ...piece, sequence: 9, body: Buffer.from('exit\n') })).toBe(true);
  await until(() => endOf(after, 'job_1') !== undefined, 'the end');
  expect(ends(after)[0]?.stdout?.text).not.toContain('1003');
});

it('ends a run that nobody is at, and one that is canceled, though shells do not heed SIGTERM', async () => {
  const runner = await openRunner({ terminals: true, detachedMs: 2_000 });
  runner.start(inTerminal('job_left'));
  runner.start(inTerminal('job_kept'));
  const kept = setInterval(
    () => runner.input({ ...name('job_kept'), sequence: 1, body: Buffer.alloc(0), size: null }),
    100,
  );
  await until(() => endOf(runner, 'job_left') !== undefined, 'the end of the run that nobody is at');
  expect(endOf(runner, 'job_left')).toMatchObject({
    ...{ cause: 'SIGNALLED', signal: 'SIGHUP', message: 'nobody was at its terminal for 2 s' },
  });
  expect(endOf(runner, 'job_kept')).toBeUndefined();
  clearInterval(kept);
  runner.cancel(name('job_kept'), 600_000);
  await until(() => endOf(runner, 'job_kept') !== undefined, 'the end of the canceled run');
  expect(endOf(runner, 'job_kept')).toMatchObject({ cause: 'CANCELLED_BY_USER', signal: 'SIGHUP' });
});

it('takes no more than a program reads, and loses nothing of what it took', async () => {
  const runner = await openRunner({ terminals: true });
  runner.start({
    ...assignment(
      'job_1',
      '/bin/sh',
      '-c',
      'stty raw -echo; echo ready; sleep 1; head -c 300000 | md5sum; cat >/dev/null',
    ),
    terminal: SIZE,
  });
  const [type, shown] = [typing(runner, 'job_1'), shows(runner)];
  await until(() => shown().includes('ready'), 'the program');
  const sent: string[] = [];
  let refused = 0;
  for (let i = 0; i < 100; i++) {
    const text = String(i % 10).repeat(3_000);
    let taken = type(text);
    while (!taken) {
      refused++;
      await new Promise((resolve) => setTimeout(resolve, 20));
      taken = type(text, null, true);
    }
    sent.push(text);
  }
  expect(refused).toBeGreaterThan(0);
  const { createHash } = await import('node:crypto');
  const sum = createHash('md5').update(sent.join('')).digest('hex');
  await until(() => shown().includes(sum), 'the sum of all that was typed');
});

it('refuses a terminal where the operator does not allow it, and what cannot be started', async () => {
  const closed = await openRunner();
  closed.start(inTerminal('job_1'));
  await until(() => endOf(closed, 'job_1') !== undefined, 'the end');
  expect(endOf(closed, 'job_1')).toMatchObject({
    ...{
      cause: 'LAUNCH_FAILED',
      message: 'this machine does not allow terminals (AGENT_TERMINALS of its agent)',
    },
  });
  const runner = await openRunner({ terminals: true });
  runner.start({ ...inTerminal('job_2'), environment: { LONG: 'x'.repeat(70_000) } });
  runner.start({ ...inTerminal('job_3'), workingDirectory: '/nowhere' });
  for (const id of ['job_2', 'job_3']) {
    await until(() => endOf(runner, id) !== undefined, 'the end');
    expect(endOf(runner, id)).toMatchObject({ cause: 'LAUNCH_FAILED' });
  }
});
