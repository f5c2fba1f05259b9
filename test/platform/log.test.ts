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
