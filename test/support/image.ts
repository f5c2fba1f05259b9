/** Small images, made of files of this host: a shell, some programs, and the libraries that they need. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { IMAGE_RUNTIMES, type ImageRuntimeName } from '../../src/agent/process/image-runtimes.js';
import { Isolation, type IsolationMode } from '../../src/agent/process/isolation.js';

/** With which an agent of this account runs images. */
export const IMAGES_ISOLATION = process.getuid?.() === 0 ? 'user' : 'none';

/** Whether an agent of this account can run images with such isolation here. */
export const runsImages = (mode: IsolationMode = IMAGES_ISOLATION): boolean => lacksForImages(mode) === null;

/** What an agent of this account lacks for running images, by one of these runtimes; null: nothing. */
export function lacksForImages(
  mode: IsolationMode,
  runtimes: readonly ImageRuntimeName[] = IMAGE_RUNTIMES,
): string | null {
  try {
    const isolation = Isolation.open({ mode, images: [tmpdir()], runtimes }, tmpdir(), 'test-probe');
    return isolation.images === null ? isolation.lacking.join('; ') : null;
  } catch (error) {
    return (error as Error).message;
  }
}

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

/** `more`: further programs and libraries, by their paths. */
export function makeImage(directory: string, name: string, more: readonly string[] = []): string {
  const root = join(directory, name);
  for (const dir of ['usr/bin', 'etc', 'opt/made', 'var/lib/made', 'proc', 'tmp'])
    mkdirSync(join(root, dir), { recursive: true });
  symlinkSync('usr/bin', join(root, 'bin'));
  for (const file of [...PROGRAMS.map((program) => `/usr/bin/${program}`), ...more]) {
    const path = realpathSync(file);
    mkdirSync(join(root, dirname(file)), { recursive: true });
    cpSync(path, join(root, file));
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
