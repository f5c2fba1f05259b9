/** The simulation, with the breakage of mutants.mjs that SIM_MUTANT numbers. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { mutants } from './mutants.mjs';

const mutant = mutants[Number(process.env.SIM_MUTANT)];
const changes = mutant.also ? [mutant, mutant.also] : [mutant];

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  plugins: [
    {
      name: 'mutant',
      enforce: 'pre',
      transform(code, id) {
        let changed = code;
        for (const { file, find, replace } of changes) {
          if (!id.endsWith(`/${file}`)) continue;
          const before = changed;
          changed = changed.replace(find, replace);
          if (changed === before) throw new Error(`${file}: there is nothing like ${find}`);
        }
        return changed === code ? undefined : { code: changed, map: null };
      },
    },
  ],
  test: { include: ['test/sim/*.test.ts'], pool: 'forks' },
});
