import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The absolute path of a file that comes with Switchyard (`schema.graphql`, `prisma/migrations`, …), wherever this module
 * runs from: `src/`, `dist/` or the benchmark's build.
 */
export function packagePath(...parts: string[]): string {
  for (let dir = dirname(fileURLToPath(import.meta.url)); ; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return join(dir, ...parts);
    if (dir === dirname(dir))
      throw new Error('package.json not found above the code: the installation is incomplete');
  }
}
