import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLogger, hideSecrets } from '../../src/platform/log.js';

function logged(write: (log: ReturnType<typeof createLogger>) => void): string {
  let lines = '';
  const log = createLogger({
    level: 'debug',
    process: 'test',
    destination: {
      write: (line) => {
        lines += line;
      },
    },
  });
  write(log);
  return lines;
}

test('one line of JSON with level, time, process and message', () => {
  const line = JSON.parse(logged((log) => log.info({ jobId: 17 }, 'started')));
  expect(line).toMatchObject({ level: 'info', process: 'test', jobId: 17, msg: 'started' });
  expect(new Date(line.time).getTime()).toBeGreaterThan(0);
});

test('secrets are hidden by the name of their field', () => {
  const lines = logged((log) =>
    log.info(
      { password: 'hunter2', req: { headers: { authorization: 'hunter2' } }, input: { apiKey: 'hunter2' } },
      'x',
    ),
  );
  expect(lines).not.toContain('hunter2');
  expect(lines).toContain('[hidden]');
});

test('secrets are hidden by their look, wherever they are', () => {
  const lines = logged((log) => {
    log.error(new Error('cannot connect to postgresql://me:hunter2@db:5432/x?sslmode=no'), 'failed');
    log.info({ args: ['--redis', 'redis://:hunter2@cache'] }, 'Authorization: Bearer hunter2');
    log.info(`key swy_0a1b2c3d4e_${'hunter2'.repeat(4)} made`);
  });
  expect(lines).not.toContain('hunter2');
  expect(lines).toContain('postgresql://me:[hidden]@db:5432/x?sslmode=no');
  expect(lines).toContain('key swy_0a1b2c3d4e_[hidden] made');
  for (const line of lines.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
});

test('what is no secret stays', () => {
  const text = 'http://localhost:4000/graphql at 10:30, user a@b.example, ratio 1:2@x';
  expect(hideSecrets(text)).toBe(text);
});

test('what goes wrong again and again is counted, not written again', async () => {
  const lines: { msg: string; repeated?: number; err?: { message: string } }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'info', destination, repeatsWithinMs: 200 });
  for (let i = 0; i < 10_000; i++) {
    log.warn({ err: new Error(`attempt ${i} failed: OOM`), retryMs: i }, 'the queue takes nothing');
    log.error(Object.assign(new Error(`at ${i}`), { code: 'READONLY' }), 'it cannot be written');
  }
  log.warn({ err: new Error('another') }, 'the queue takes nothing');
  log.warn({ job: 'job_1' }, 'about a job');
  log.warn({ job: 'job_2' }, 'about a job');
  for (let i = 0; i < 3; i++) {
    log.info('news');
    log.error({ requestId: `r${i}`, err: new Error('a defect') }, 'a request failed unexpectedly');
  }
  expect(lines.map(({ msg }) => msg)).toEqual([
    'the queue takes nothing',
    'it cannot be written',
    'the queue takes nothing',
    'about a job',
    'about a job',
    ...['news', 'a request failed unexpectedly', 'news', 'a request failed unexpectedly'],
    ...['news', 'a request failed unexpectedly'],
  ]);
  lines.length = 0;
  while (lines.length < 2) await sleep(20);
  expect(lines).toMatchObject([
    { msg: 'the queue takes nothing', repeated: 9_999, err: { message: 'attempt 9999 failed: OOM' } },
    { msg: 'it cannot be written', repeated: 9_999 },
  ]);
});
