import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/**
 * The module `virtual:lucide` exports the shapes of each icon, `circle-x` as `CircleX`: those that nobody imports are left out. Lucide's own packages
 * have two files for each of its icons.
 */
export const lucide = {
  name: 'lucide',
  resolveId: (id) => (id === 'virtual:lucide' ? id : undefined),
  load(id) {
    if (id !== 'virtual:lucide') return;
    const path = createRequire(import.meta.url).resolve('@iconify-json/lucide/icons.json');
    const { icons } = JSON.parse(readFileSync(path, 'utf8'));
    return Object.entries(icons)
      .map(([name, { body }]) => {
        const exported = name.replace(/(?:^|-)(\w)/g, (_, first) => first.toUpperCase());
        return `export const ${exported} = ${JSON.stringify(body)};`;
      })
      .join('\n');
  },
};
