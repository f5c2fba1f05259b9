/**
 * Programs of the host that run a program in an image. What the run sees is described once (`Surroundings`); each runtime says it in its own way.
 *
 * bubblewrap is told it by its words. crun and runc, which podman and docker start containers with, read it from a file in a directory (a bundle:
 * OCI runtime specification). They are started directly, as the account of the run in a user namespace: no daemon, no store of images, no
 * subordinate ids, and the program is a descendant of the agent as any other.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { canMakeCgroups } from './cgroup.js';

export type ImageRuntimeName = 'bubblewrap' | 'crun' | 'runc';

/** In the order in which they are tried by default. */
export const IMAGE_RUNTIMES: readonly ImageRuntimeName[] = ['bubblewrap', 'crun', 'runc'];

/** What operators have that comes with them. */
const CALLED: Readonly<Record<string, readonly ImageRuntimeName[]>> = {
  podman: ['crun', 'runc'],
  docker: ['runc'],
};

/** The runtimes that AGENT_IMAGE_RUNTIMES names; none named: all. */
export const runtimesOf = (names: readonly string[]): ImageRuntimeName[] =>
  names.length === 0
    ? [...IMAGE_RUNTIMES]
    : [...new Set(names.flatMap((name) => CALLED[name] ?? [name as ImageRuntimeName]))];

/** Something at a path of a run, in the order in which they are put there. */
export type Mount =
  | { kind: 'directory' | 'proc' | 'dev'; path: string }
  | { kind: 'link'; path: string; to: string }
  /** `optional`: left out where the host has it not. */
  | { kind: 'bind'; path: string; from: string; access: 'read' | 'write' | 'device'; optional?: boolean }
  /** In memory, where everybody may write. `bytes` null: as many as the kernel gives. */
  | { kind: 'memory'; path: string; bytes: number | null };

export const directory = (path: string): Mount => ({ kind: 'directory', path });

export const bind = (
  from: string,
  access: 'read' | 'write' | 'device',
  optional = false,
  path = from,
): Mount => ({ kind: 'bind', path, from, access, optional });

/** What a program in an image is started in. */
export interface Surroundings {
  /** A directory of the run's own. */
  tmp: string;
  /** Beside what is new in `/`, which is on the disk in `tmp`. */
  mounts: readonly Mount[];
  network: boolean;
  /** Of the account that starts the runtime. */
  uid: number;
  gid: number;
}

/** What a job asked for, as far as the last step before its program heeds it. */
export interface Asked {
  program: string;
  arguments: readonly string[];
  environment: ReadonlyMap<string, string>;
  directory: string;
  /** null: it has no terminal. */
  terminal: { rows: number; columns: number } | null;
  /** Octal; null: that of the agent. */
  umask: string | null;
}

/** How the last step gets a program into an image (script.ts). */
export interface Entrance {
  /** The directory that it makes for the runtime to read; null: the runtime reads what the step does. */
  bundle: string | null;
  /** The runtime, by its path, and its words. */
  words: (asked: Asked) => readonly string[];
  /** What the last step reads. */
  input: (asked: Asked) => string;
}

export interface ImageRuntime {
  name: ImageRuntimeName;
  /** The directory in `Surroundings.tmp` that is `/`. */
  root: '.' | 'root';
  /** What is missing, as far as it is seen without a trial; null: nothing. */
  lacks: () => string | null;
  /** What it runs on trial. */
  trial: { mounts: (system: readonly Mount[]) => readonly Mount[]; command: readonly string[] };
  enter: (surroundings: Surroundings) => Entrance;
}

export const BWRAP = '/usr/bin/bwrap';

/** A runtime's first process in a container: it becomes the parent of what others leave, and passes on how the program ends. */
const INIT = '/dev/sy-init';
/** The name of its process. */
export const INIT_NAME = 'sy-init';

/** Statically linked, as podman and docker bring them: they need nothing of an image. */
const INITS = [
  '/usr/libexec/podman/catatonit',
  '/usr/bin/catatonit',
  '/usr/libexec/docker/docker-init',
  '/usr/bin/docker-init',
  '/usr/sbin/docker-init',
  '/usr/bin/tini-static',
];
const DIRECTORIES = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin'];

/** Directories of an image's run that are its own, whatever the host has there. */
export const OWN_DIRECTORIES: readonly string[] = ['/', '/tmp', '/var/tmp', '/dev/shm'];

/** The words by which bubblewrap is told what a run sees. */
export const bubblewrapWords = (mounts: readonly Mount[]): string[] =>
  mounts.flatMap((mount) => {
    const { path } = mount;
    if (mount.kind === 'directory') return ['--dir', path];
    if (mount.kind === 'link') return ['--symlink', mount.to, path];
    if (mount.kind === 'memory')
      return [
        ...(mount.bytes === null ? [] : ['--size', String(mount.bytes)]),
        '--perms',
        '1777',
        '--tmpfs',
        path,
      ];
    if (mount.kind !== 'bind') return [`--${mount.kind}`, path];
    const how = { read: '--ro-bind', write: '--bind', device: '--dev-bind' }[mount.access];
    return [`${how}${mount.optional ? '-try' : ''}`, mount.from, path];
  });

/** The words by which it makes namespaces. */
export const bubblewrapNamespaces = (network: boolean): string[] => [
  ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ...(network ? [] : ['--unshare-net']),
];

const bubblewrap: ImageRuntime = {
  name: 'bubblewrap',
  root: '.',
  lacks: () => (existsSync(BWRAP) ? null : `${BWRAP} is missing`),
  trial: { mounts: (system) => system, command: ['/bin/sh', '-c', 'exit 0'] },
  enter: ({ tmp, mounts, network }) => {
    const words = [
      ...[BWRAP, '--die-with-parent', '--unshare-user', '--cap-drop', 'ALL'],
      ...bubblewrapNamespaces(network),
      ...['--bind', tmp, '/'],
      ...bubblewrapWords(mounts),
    ];
    return {
      bundle: null,
      words: ({ program, arguments: args }) => [...words, '--', program, ...args],
      input: ({ environment, directory }) =>
        [
          '--clearenv',
          ...[...environment].flatMap((variable) => ['--setenv', ...variable]),
          ...['--chdir', directory, ''],
        ].join('\0'),
    };
  },
};

/** Ways of an OCI runtime of its own. */
interface Ways {
  /** What it is told besides. */
  words: readonly string[];
  /** It starts programs only as user 0 of a namespace: the run's account all the same, without rights. */
  asRoot: boolean;
  /** Recursive attributes of a mount, which are added to those that it has, are for directories only. */
  plainFiles: boolean;
  lacks: () => string | null;
}

function oci(name: 'crun' | 'runc', ways: Ways): ImageRuntime {
  const find = (): string | undefined => DIRECTORIES.map((dir) => join(dir, name)).find(existsSync);
  const init = (): string | undefined => INITS.find(existsSync);
  return {
    name,
    root: 'root',
    lacks: () => {
      if (find() === undefined) return `${name} is missing`;
      if (init() === undefined) return 'an init for containers is missing (catatonit, or tini for docker)';
      return ways.lacks();
    },
    // In an empty image: it needs nothing but what is given to it.
    trial: { mounts: () => [], command: [INIT, '--version'] },
    enter: (surroundings) => {
      const bundle = join(surroundings.tmp, 'container');
      const call = [
        ...[find() ?? name, ...ways.words, '--root', join(bundle, 'state')],
        // How the lane sees that the job is alive.
        ...['run', '--preserve-fds', '1', '--bundle', bundle, 'run'],
      ];
      return {
        bundle,
        words: () => call,
        input: (asked) => bundleInput(surroundings, asked, init() ?? '', ways),
      };
    },
  };
}

/** What is in the root and not mounted there is made before; then the file config.json (OCI runtime specification). */
function bundleInput(surroundings: Surroundings, asked: Asked, init: string, ways: Ways): string {
  const root = join(surroundings.tmp, 'root');
  const made = surroundings.mounts.flatMap((mount) => {
    if (mount.kind === 'directory') return [[join(root, mount.path), '']];
    return mount.kind === 'link' ? [[join(root, mount.path), mount.to]] : [];
  });
  const onHost = OWN_DIRECTORIES.includes(asked.directory) ? '' : asked.directory;
  const config = JSON.stringify(bundleConfig(root, surroundings, asked, init, ways));
  return [onHost, String(made.length), ...made.flat(), config].join('\0');
}

function bundleConfig(
  root: string,
  { mounts, network, uid, gid }: Surroundings,
  asked: Asked,
  init: string,
  ways: Ways,
): object {
  const { program, arguments: args, environment, directory: cwd, terminal, umask } = asked;
  const user = ways.asRoot ? { uid: 0, gid: 0 } : { uid, gid };
  const none: string[] = [];
  const namespaces = ['user', 'mount', 'pid', 'ipc', 'uts', 'cgroup', ...(network ? [] : ['network'])];
  return {
    ociVersion: '1.0.2',
    root: { path: root },
    process: {
      terminal: terminal !== null,
      ...(terminal && { consoleSize: { height: terminal.rows, width: terminal.columns } }),
      user: { ...user, umask: umask === null ? process.umask() : Number.parseInt(umask, 8) },
      args: [INIT, '--', program, ...args],
      env: [...environment].map(([name, value]) => `${name}=${value}`),
      cwd,
      capabilities: { bounding: none, effective: none, permitted: none, inheritable: none, ambient: none },
      noNewPrivileges: true,
    },
    mounts: [
      ...mounts.flatMap((mount) => ociMounts(mount, ways)),
      ...ociMounts(bind(init, 'read', false, INIT), ways),
    ],
    linux: {
      namespaces: namespaces.map((type) => ({ type })),
      uidMappings: [{ containerID: user.uid, hostID: uid, size: 1 }],
      gidMappings: [{ containerID: user.gid, hostID: gid, size: 1 }],
    },
  };
}

/** The devices that every program may open are put there by the runtime. */
const DEV = [
  { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
  {
    ...{ destination: '/dev/pts', type: 'devpts', source: 'devpts' },
    options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=620'],
  },
];

const ATTRIBUTES = { read: ['ro', 'nosuid', 'nodev'], write: ['nosuid', 'nodev'], device: [] };

function ociMounts(mount: Mount, { plainFiles }: Ways): object[] {
  const { path } = mount;
  if (mount.kind === 'dev') return DEV;
  if (mount.kind === 'proc')
    return [{ destination: path, type: 'proc', source: 'proc', options: ['nosuid', 'nodev', 'noexec'] }];
  if (mount.kind === 'memory') {
    const size = mount.bytes === null ? [] : [`size=${mount.bytes}`];
    const options = ['nosuid', 'nodev', 'mode=1777', ...size];
    return [{ destination: path, type: 'tmpfs', source: 'tmpfs', options }];
  }
  if (mount.kind !== 'bind') return [];
  const kind = kindOf(mount.from);
  if (mount.optional && kind === 'missing') return [];
  const attributes = ATTRIBUTES[mount.access];
  const isPlain = plainFiles && kind === 'file';
  const options = ['rbind', ...attributes.map((one) => (isPlain ? one : `r${one}`))];
  return [{ destination: path, type: 'bind', source: mount.from, options }];
}

/** What the agent may not look at is, if it is there, most often a directory. */
function kindOf(path: string): 'missing' | 'file' | 'directory' {
  try {
    return statSync(path).isDirectory() ? 'directory' : 'file';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'directory';
  }
}

const RUNTIMES: Readonly<Record<ImageRuntimeName, ImageRuntime>> = {
  bubblewrap,
  crun: oci('crun', {
    words: ['--cgroup-manager=disabled', '--log-format=json'],
    asRoot: false,
    plainFiles: true,
    lacks: () => null,
  }),
  runc: oci('runc', {
    words: [],
    asRoot: true,
    plainFiles: false,
    // Those of runs, or the agent's service, would not hold what is in them together.
    lacks: () =>
      canMakeCgroups()
        ? 'it would move jobs to control groups of its own, which this account can create'
        : null,
  }),
};

/** @param fails what a runtime says that does not work here; null: it does */
export function findImageRuntime(
  names: readonly ImageRuntimeName[],
  fails: (runtime: ImageRuntime) => string | null,
): ImageRuntime | string {
  const lacking: string[] = [];
  for (const name of names) {
    const runtime = RUNTIMES[name];
    const problem = runtime.lacks() ?? fails(runtime);
    if (problem === null) return runtime;
    lacking.push(`${name}: ${problem}`);
  }
  return lacking.join('; ');
}

/** Why a program was not started, in what crun, runc or their init has said; null: none of them has. */
export function saidByRuntime(text: string, program: string): string | null {
  const byRunc = /^time="[^"]*" level=(?:error|fatal) msg=("runc run failed: (?:[^"\\]|\\.)*")/m.exec(
    text,
  )?.[1];
  if (byRunc !== undefined && text.startsWith('time="'))
    return parsed(byRunc).slice('runc run failed: '.length);
  const byCrun = /^\{"msg":("(?:[^"\\]|\\.)*"),"level":"error","time":"[^"]*"\}/.exec(text)?.[1];
  if (byCrun !== undefined) return parsed(byCrun);
  const byInit =
    /^ERROR \(catatonit:\d+\): failed to exec pid1: (.*)/.exec(text)?.[1] ??
    /^\[FATAL tini \(\d+\)\] exec .* failed: (.*)/.exec(text)?.[1];
  return byInit === undefined ? null : `${program}: ${byInit.trim()}`;
}

function parsed(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1);
  }
}
