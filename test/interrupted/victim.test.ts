/** Starts one of each that tests start, says that all is there, and goes on until the run is interrupted: by interrupted.test.ts. */
import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { launch, serve, until } from '../cli/service.js';
import { withDatabase } from '../support/database.js';
import { temporaryDirectory } from '../support/home.js';
import { redisFound, startRedis } from '../support/redis.js';
import { chromiumFound, launchChromium } from '../web/browser.js';

const { READY_FILE } = process.env;
withDatabase();

test.runIf(READY_FILE)('goes on and on', { timeout: 3_600_000 }, async () => {
  const home = temporaryDirectory();
  if (redisFound) await startRedis();
  const service = await serve(home);
  if (chromiumFound) await (await (await launchChromium()).newPage()).goto(new URL(service.url).origin);
  await service.cli('sites', 'add', 'north');
  await service.cli('users', 'add', 'agent', '--role', 'AGENT');
  const key = ['keys', 'add', 'k', '--user', 'agent', '--site', 'north'];
  const { secret } = await service.json<{ secret: string }>(...key);
  launch(['agent', '--simulate', '--site', 'north'], { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: secret });
  // A job that nothing ends: it has left its session, and ignores what asks it to end.
  const marks = join(home, 'runs');
  const job = `setsid sh -c "trap '' TERM INT HUP; touch ${marks}; sleep 10000"`;
  await service.cli('submit', '--', 'sh', '-c', job);
  await until(
    async () => existsSync(marks),
    (there) => there,
  );
  writeFileSync(READY_FILE as string, tmpdir());
  await new Promise(() => {});
});
