import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { withDatabase } from '../support/database.js';
import { temporaryDirectory } from '../support/home.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { endAll, launch, service } from './service.js';

const trace = fileURLToPath(new URL('../../../shared/data/traces/KTH-SP2.swf.gz', import.meta.url));
const found = existsSync(trace);
/** `npm run test:faults` takes more. */
const jobs = process.env.FAULT_MINUTES === undefined ? 1_000 : 5_000;
if (!found) console.log(`skipped: the first ${jobs} jobs of KTH-SP2 need ../shared/data/traces`);

const database = withDatabase();

it.runIf(found)(
  `the first ${jobs} jobs of KTH-SP2 end on a simulated site of 100 CPUs, every one accounted for`,
  async () => {
    const env = { DATABASE_URL: database.url, SWITCHYARD_HOME: temporaryDirectory(), PORT: '0' };
    try {
      const process = launch(['serve'], env);
      const [, url] = await process.printed(/runs at (\S+)\n/);
      const options = [
        '--limit',
        String(jobs),
        '--speed',
        '1000000',
        '--site',
        'kth',
        '--simulate',
        '--processors',
        '100',
      ];
      const outcome = await service(url!, env, process).cli('replay', trace, '--json', ...options);
      expect(JSON.parse(outcome.stdout)).toMatchObject({
        submitted: jobs,
        ended: { completed: jobs, failed: 0, cancelled: 0, unaccounted: 0 },
      });
      expect(await checkPromises(database.pool)).toEqual([]);
    } finally {
      await endAll();
    }
  },
  5 * PATIENCE_MS,
);
