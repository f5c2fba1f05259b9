import { readFileSync } from 'node:fs';
import { packagePath } from './paths.js';

/** Of this release. */
export const VERSION = (JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { version: string })
  .version;
