/**
 * Programs of the host that run a program in an image. What the run sees is described once (`Surroundings`); each runtime says it in its own way.
 *
 * bubblewrap and apptainer are told it by their words. crun and runc, which podman and docker start containers with, read it from a file in a
 * directory (a bundle: OCI runtime specification). All are started directly, as the account of the run in a user namespace: no daemon, no store of
 * images, no subordinate ids, and the program is a descendant of the agent as any other.
 */
import { existsSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { canMakeCgroups } from './cgroup.js';
import { mountPoints } from './mounts.js';

export type ImageRuntimeName = 'bubblewrap' | 'crun' | 'runc' | 'apptainer';

/** In the order in which they are tried by default. */
export const IMAGE_RUNTIMES: readonly ImageRuntimeName[] = ['bubblewrap', 'crun', 'runc', 'apptainer'];

/** What operators have that comes with them, or is called otherwise. */
const CALLED: Readonly<Record<string, readonly ImageRuntimeName[]>> = {
  podman: ['crun', 'runc'],
  docker: ['runc'],
  singularity: ['apptainer'],
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
  /** The host has no name for it. */
  nameless: boolean;
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
  /** The directory that it makes for the runtime, beside the root; null: it makes neither, and the runtime reads what the step does. */
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
  trial: {
    mounts: (system: readonly Mount[]) => readonly Mount[];
    command: (network: boolean) => readonly string[];
  };
  enter: (surroundings: Surroundings) => Entrance;
}

export const BWRAP = '/usr/bin/bwrap';

/** A runtime's first process in a container: it becomes the parent of what others leave, and passes on how the program ends. */
const INIT = '/dev/sy-init';
/** The names of such processes: those of apptainer and singularity are their own. */
export const INIT_NAMES: readonly string[] = ['sy-init', 'appinit', 'sinit'];

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
  trial: { mounts: (system) => system, command: () => ['/bin/sh', '-c', 'exit 0'] },
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

const findProgram = (...names: readonly string[]): string | undefined =>
  names.flatMap((name) => DIRECTORIES.map((dir) => join(dir, name))).find(existsSync);

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
  const init = (): string | undefined => INITS.find(existsSync);
  return {
    name,
    root: 'root',
    lacks: () => {
      if (findProgram(name) === undefined) return `${name} is missing`;
      if (init() === undefined) return 'an init for containers is missing (catatonit, or tini for docker)';
      return ways.lacks();
    },
    // In an empty image: it needs nothing but what is given to it.
    trial: { mounts: () => [], command: () => [INIT, '--version'] },
    enter: (surroundings) => {
      const bundle = join(surroundings.tmp, 'container');
      const call = [
        ...[findProgram(name) ?? name, ...ways.words, '--root', join(bundle, 'state')],
        // How the lane sees that the job is alive.
        ...['run', '--preserve-fds', '1', '--bundle', bundle, 'run'],
      ];
      return {
        bundle,
        words: () => call,
        input: (asked) => ociInput(surroundings, asked, init() ?? '', ways),
      };
    },
  };
}

function ociInput(surroundings: Surroundings, asked: Asked, init: string, ways: Ways): string {
  const root = join(surroundings.tmp, 'root');
  const made = surroundings.mounts.flatMap((mount) => madeIn(root, mount));
  return bundleInput(asked, made, JSON.stringify(ociConfig(root, surroundings, asked, init, ways)));
}

/** What the last step makes: a directory ends with a slash, a link leads to `to`, all else is an empty file. */
interface Made {
  path: string;
  to?: string;
}

/** What is in the root and not mounted there. */
function madeIn(root: string, mount: Mount): Made[] {
  if (mount.kind === 'directory') return [{ path: `${join(root, mount.path)}/` }];
  return mount.kind === 'link' ? [{ path: join(root, mount.path), to: mount.to }] : [];
}

/**
 * What the last step reads that makes a bundle.
 *
 * @param config what the runtime reads: config.json in an OCI bundle
 * @param variables of the runtime itself
 */
function bundleInput(
  asked: Asked,
  made: readonly Made[],
  config: string,
  variables: readonly string[] = [],
): string {
  const onHost = OWN_DIRECTORIES.includes(asked.directory) ? '' : asked.directory;
  const all = made.flatMap(({ path, to = '' }) => [path, to]);
  return [onHost, String(made.length), ...all, config, ...variables].join('\0');
}

function ociConfig(
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

/**
 * apptainer is given a root that is made as that of crun, writable, with all places for mounts: then it adds none of its own. What its host's
 * configuration adds is switched off by words, and what that forbids (namespaces, mounts) is seen by the trial.
 *
 * Before a program it interprets `/.singularity.d/env/*.sh` of the root. Ours goes on to the program, so the variables are those of the job: apptainer
 * would add some, change PATH, and set those that the image defines. It defends two, which tell the path of the root.
 */
const APPTAINER = ['apptainer', 'singularity'];
const OF_APPTAINER = '/.singularity.d';
const APPTAINER_SCRIPT = `${OF_APPTAINER}/env/00-run.sh`;
const DEFENDED = ['APPTAINER_NAME', 'APPTAINER_CONTAINER', 'SINGULARITY_NAME', 'SINGULARITY_CONTAINER'];
/** It runs nothing as an account without a name; this one has one everywhere, and no rights. */
const NOBODY = 65_534;
const UNSHARE = '/usr/bin/unshare';
/** Fails with what is not as it has to be: a configuration may forbid namespaces, which apptainer then goes without. */
const APPTAINER_TRIAL = `for own; do
kind=\${own%%:*}
[ "$(readlink "/proc/self/ns/$kind")" != "$own" ] || { echo "it makes no namespace here ($kind)"; exit 1; }
done >&2
[ -z "$HOME" ] || { echo 'it sets variables of its own' >&2; exit 1; }`;

const apptainer: ImageRuntime = {
  name: 'apptainer',
  root: 'root',
  lacks: () => (findProgram(...APPTAINER) === undefined ? 'apptainer is missing' : null),
  trial: {
    mounts: (system) => system,
    command: (network) => {
      const kinds = ['user', 'mnt', 'pid', 'ipc', 'uts', ...(network ? [] : ['net'])];
      const own = kinds.map((kind) => readlinkSync(`/proc/self/ns/${kind}`));
      return ['/bin/sh', '-c', APPTAINER_TRIAL, 'sh', ...own];
    },
  },
  enter: (surroundings) => {
    const { tmp, network, nameless } = surroundings;
    const bundle = join(tmp, 'container');
    const root = join(tmp, 'root');
    // What the image itself has there would be for apptainer.
    const mounts = surroundings.mounts.filter(({ path }) => !`${path}/`.startsWith(`${OF_APPTAINER}/`));
    const mounted = [...new Set(mountPoints().map(({ path }) => path))];
    const binds = [...mounts, bind(join(bundle, 'config.json'), 'read', false, APPTAINER_SCRIPT)].flatMap(
      (mount) => apptainerBinds(mount, bundle, mounted),
    );
    const become = ['--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`, '--'];
    const call = [
      ...(nameless ? [UNSHARE, ...become] : []),
      ...[findProgram(...APPTAINER) ?? '', '--silent', '--nocolor', 'exec'],
      ...['--userns', '--pid', '--ipc', '--uts', ...(network ? [] : ['--net', '--network', 'none'])],
      ...['--no-privs', '--no-nv', '--no-rocm', '--contain', '--no-home'],
      ...['--no-mount', 'sys,home,tmp,hostfs,cwd,bind-paths', '--writable'],
      ...binds.flatMap(({ words }) => ['--mount', words]),
    ];
    const made: Made[] = [
      ...['', '/env'].map((below) => ({ path: `${join(root, OF_APPTAINER)}${below}/` })),
      { path: `${join(bundle, 'shm')}/` },
      ...mounts.flatMap((mount) => madeIn(root, mount)),
      ...['/proc', '/dev'].map((path) => ({ path: `${join(root, path)}/` })),
      ...binds.flatMap(({ path, isDirectory }, i) =>
        [{ path: '/dev' }, ...binds.slice(0, i)].some((other) => path.startsWith(`${other.path}/`))
          ? []
          : [{ path: `${join(root, path)}${isDirectory ? '/' : ''}` }],
      ),
    ];
    return {
      bundle,
      words: ({ program, arguments: args, directory }) => [
        ...call,
        '--pwd',
        directory,
        root,
        program,
        ...args,
      ],
      // It has no business in the account's home.
      input: (asked) =>
        bundleInput(asked, made, apptainerScript(asked), [
          ...oddVariables(asked),
          ...APPTAINER.map((name) => `${name.toUpperCase()}_CONFIGDIR=${bundle}`),
        ]),
    };
  },
};

const isPlainName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);

/** Its shell sets these only; others come to it with apptainer, which makes nothing of them. */
const apptainerScript = ({ environment }: Asked): string => {
  const set = [...environment].filter(([name]) => isPlainName(name) && !DEFENDED.includes(name));
  const lines = set.map(([name, value]) => `export ${name}=${ansiQuoted(value)}`);
  return ['unset HOME SINGULARITY_APPNAME', ...lines, 'exec "$@"', 'exit 0', ''].join('\n');
};

/** Of a name that the shell could not set, or whose variable is read-only if it finds none. */
const oddVariables = ({ environment }: Asked): string[] =>
  [...environment]
    .filter(([name]) => !isPlainName(name) || /^(E?UID|GID)$/.test(name))
    .map(([name, value]) => `${name}=${value}`);

/** As it reads lines, it would take CR from their ends. */
const ansiQuoted = (text: string): string =>
  `$'${text.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`;

/**
 * @param bundle where memory is that has to be bounded: on the disk of the run, as apptainer cannot bound it
 * @param mounted where something is mounted on the host, outer ones first
 */
function apptainerBinds(
  mount: Mount,
  bundle: string,
  mounted: readonly string[],
): { path: string; words: string; isDirectory: boolean }[] {
  const { path } = mount;
  const to = (from: string, at: string, readOnly: boolean, isDirectory: boolean) => {
    // Told to mount at /etc, it leaves out files of its own there, and stumbles over that.
    const where = [`source=${from}`, `destination=${at}${isDirectory ? '/.' : ''}`].map(csv);
    return {
      ...{ path: at, isDirectory },
      words: ['type=bind', ...where, ...(readOnly ? ['ro'] : [])].join(),
    };
  };
  if (mount.kind === 'memory')
    return mount.bytes === null ? [] : [to(join(bundle, 'shm'), path, false, true)];
  // The only one that apptainer leaves out of those that every program may open.
  if (mount.kind === 'dev') return [to('/dev/full', '/dev/full', false, false)];
  if (mount.kind !== 'bind') return [];
  const { from, access } = mount;
  const kind = kindOf(from);
  if (mount.optional && kind === 'missing') return [];
  const isReadOnly = access === 'read';
  // What is mounted below would stay writable.
  const within = isReadOnly && kind === 'directory' ? below(from, mounted) : [];
  return [
    to(from, path, isReadOnly, kind === 'directory'),
    ...within.map((one) =>
      to(join(from, one), join(path, one), true, kindOf(join(from, one)) === 'directory'),
    ),
  ];
}

const csv = (field: string): string => `"${field.replaceAll('"', '""')}"`;

/** Those of the paths that are below a directory, seen from it. */
function below(directory: string, paths: readonly string[]): string[] {
  const start = `${realOf(directory)}/`;
  return paths.filter((path) => path.startsWith(start)).map((path) => path.slice(start.length));
}

/** What the agent may not look at is taken as it is. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
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
  apptainer,
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

/** Why a program was not started, in what crun, runc, apptainer or their init has said; null: none of them has. */
export function saidByRuntime(text: string, program: string): string | null {
  const byRunc = /^time="[^"]*" level=(?:error|fatal) msg=("runc run failed: (?:[^"\\]|\\.)*")/m.exec(
    text,
  )?.[1];
  if (byRunc !== undefined && text.startsWith('time="'))
    return parsed(byRunc).slice('runc run failed: '.length);
  const byCrun = /^\{"msg":("(?:[^"\\]|\\.)*"),"level":"error","time":"[^"]*"\}/.exec(text)?.[1];
  if (byCrun !== undefined) return parsed(byCrun);
  const byApptainer = /^FATAL: {3}((?:container creation failed|failed to set working directory): .*)/.exec(
    text,
  )?.[1];
  if (byApptainer !== undefined) return byApptainer.trim();
  const ofProgram =
    /^FATAL: {3}(?:exec \S* failed: |stat .*: |".*": )?(permission denied|is a directory|no such file or directory|executable file not found in \$PATH)\s*$/i;
  const byShell = ofProgram.exec(text)?.[1];
  if (byShell !== undefined) return `${program}: ${byShell}`;
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
