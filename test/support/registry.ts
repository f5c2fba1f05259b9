/** A private registry on this host (Debian's docker-registry), and images that are put there without any network. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeImage } from './image.js';

export const USER = { username: 'ada', password: 'of-the-registry-7' };

/** What is needed for a registry with an image in it. */
export const hasRegistry =
  process.getuid?.() === 0 &&
  ['docker-registry', 'podman'].every((name) => spawnSync(name, ['--version']).status === 0);

export interface Registry {
  /** `127.0.0.1:PORT` */
  host: string;
  /** Of the image that it has under all of its names. */
  digest: string;
  /** How many so far. */
  requests: () => number;
  close: () => void;
}

/**
 * @param isPrivate only `USER` can read and write
 * @param names of the image there, which has the file /etc/told
 */
export async function startRegistry(isPrivate: boolean, ...names: string[]): Promise<Registry> {
  // Podman wants short names.
  const dir = mkdtempSync('/tmp/switchyard-registry-');
  const hash = execFileSync(
    'perl',
    ['-e', 'print crypt($ARGV[0], q($2y$05$abcdefghijklmnopqrstuu))', USER.password],
    {
      encoding: 'utf8',
    },
  );
  writeFileSync(join(dir, 'htpasswd'), `${USER.username}:${hash}\n`);
  const config = {
    version: '0.1',
    storage: { filesystem: { rootdirectory: join(dir, 'data') } },
    http: { addr: '127.0.0.1:0' },
    ...(isPrivate && { auth: { htpasswd: { realm: 'test', path: join(dir, 'htpasswd') } } }),
  };
  writeFileSync(join(dir, 'config.yml'), JSON.stringify(config));
  const server = spawn('docker-registry', ['serve', join(dir, 'config.yml')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const host = await new Promise<string>((resolve, reject) => {
    const hear = (data: Buffer): void => {
      said += data;
      const at = /listening on (127\.0\.0\.1:\d+)/.exec(said)?.[1];
      if (at) resolve(at);
    };
    server.stdout.on('data', hear);
    server.stderr.on('data', hear);
    server.on('exit', () => reject(new Error(said)));
  });
  const podman = (...args: string[]): void => {
    execFileSync('podman', ['--root', join(dir, 'store'), '--runroot', join(dir, 'run'), ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  };
  const root = makeImage(join(dir, 'images'), 'made');
  writeFileSync(join(root, 'etc/told'), 'of the registry\n');
  // What an image could have and nobody is to get.
  chmodSync(join(root, 'usr/bin/cat'), 0o4755);
  execFileSync('mknod', ['-m', '666', join(root, 'etc/odd'), 'c', '1', '5']);
  execFileSync('tar', ['-C', root, '-cf', join(dir, 'image.tar'), '.']);
  const auth = Buffer.from(`${USER.username}:${USER.password}`).toString('base64');
  writeFileSync(join(dir, 'auth'), JSON.stringify({ auths: { [host]: { auth } } }));
  podman('import', join(dir, 'image.tar'), 'localhost/made');
  for (const name of names)
    podman(
      ...['push', '--tls-verify=false', '--authfile', join(dir, 'auth'), '--digestfile', join(dir, 'digest')],
      ...['localhost/made', `${host}/${name}`],
    );
  podman('rmi', '-fa');
  return {
    host,
    digest: readFileSync(join(dir, 'digest'), 'utf8'),
    requests: () => said.match(/"(GET|HEAD) /g)?.length ?? 0,
    close() {
      server.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
