/** A stand-in for nvidia-smi on the path (nvidia-smi.mjs). */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Card {
  name: string;
  mib: number;
  mig: boolean;
}

export const h100 = (mig: boolean): Card => ({ name: 'NVIDIA H100 80GB HBM3', mib: 81_559, mig });

/** What `nvidia-smi topo -m` prints of cards of which these are joined by NVLinks, with a network card that is none. */
export function topology(cards: number, joined: readonly (readonly [number, number])[]): string {
  const names = Array.from({ length: cards }, (_, i) => `GPU${i}`);
  const cell = (a: number, b: number): string =>
    a === b
      ? ' X '
      : joined.some(([one, other]) => (one === a && other === b) || (one === b && other === a))
        ? 'NV12'
        : 'SYS';
  const rows = names.map(
    (name, a) => `${name}\t${names.map((_, b) => cell(a, b)).join('\t')}\tSYS\t0-31\t0\t\tN/A`,
  );
  const head = `\t\u001b[4m${names.join('\t')}\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u001b[0m`;
  const network = `NIC0\t${names.map(() => 'SYS').join('\t')}\t X \t\t\t\t`;
  return [
    head,
    ...rows,
    network,
    '',
    'Legend:',
    '',
    '  X    = Self',
    '  NV#  = Connection of # NVLinks',
    '',
  ].join('\n');
}

/** Puts it into a new directory; what it says is kept there too. */
export function playNvidia(directory: string, cards: readonly Card[], links: string) {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'cards.json'), JSON.stringify(cards));
  writeFileSync(join(directory, 'topology'), links);
  const script = fileURLToPath(new URL('./nvidia-smi.mjs', import.meta.url));
  const program = join(directory, 'nvidia-smi');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${script}' '${directory}' "$@"\n`);
  chmodSync(program, 0o755);
  const kept = join(directory, 'instances.json');
  return {
    directory,
    path: `${directory}:${process.env.PATH}`,
    /** What it does differently from now on. */
    set: (name: 'slow' | 'busy' | 'broken', value = '') => writeFileSync(join(directory, name), value),
    instances: (): { card: number; id: number; uuid: string; profile: string }[] =>
      existsSync(kept) ? JSON.parse(readFileSync(kept, 'utf8')) : [],
  };
}
