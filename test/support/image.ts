/** A small image, made of files of this host: a shell, some programs, and the libraries that they need. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const PROGRAMS = [
  'sh',
  'cat',
  'cp',
  'env',
  'find',
  'grep',
  'id',
  'ls',
  'mkdir',
  'pwd',
  'readlink',
  'sleep',
  'touch',
  'wc',
];

export function makeImage(directory: string, name: string): string {
  const root = join(directory, name);
  for (const dir of ['usr/bin', 'etc', 'opt/made', 'var/lib/made', 'proc', 'tmp'])
    mkdirSync(join(root, dir), { recursive: true });
  symlinkSync('usr/bin', join(root, 'bin'));
  for (const program of PROGRAMS) {
    const path = realpathSync(`/usr/bin/${program}`);
    cpSync(path, join(root, 'usr/bin', program));
    for (const [library] of execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/\/\S+/g)) {
      mkdirSync(join(root, dirname(library)), { recursive: true });
      cpSync(realpathSync(library), join(root, dirname(library), basename(library)));
    }
  }
  writeFileSync(join(root, 'etc/os-release'), 'ID=made\n');
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 of-the-image\n');
  writeFileSync(join(root, 'var/lib/made/told'), 'of the image\n');
  return root;
}
