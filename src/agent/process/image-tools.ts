/**
 * Programs of the host that fetch images from registries and unpack them. One description for all: what any of them has
 * unpacked is then run as what an operator has (image-runtimes.ts).
 */
import { spawnSync } from 'node:child_process';
import { hostEnvironment } from '../../platform/environment.js';

/** An image that is on this machine. */
export interface Image {
  /** The directory that is `/` in it. */
  root: string;
  /**
   * `sha256:` and the hash that its registry has for it; of one of the operator's the hash of all that is in it, as one tar file. null: the agent
   * cannot tell.
   */
  digest: string | null;
}

export interface ImageTool {
  name: ImageToolName;
  /** Shell text that does nothing, and fails where the program does not work here. */
  probe: string;
  /**
   * Shell text that fetches `$IMAGE` and unpacks it into the empty directory `$ROOT`, and writes to its standard output the digest that the
   * registry has for it, if the program tells. `$WORK` is a directory for its own files, which is its home and is removed. `$PLAIN` is
   * not empty for a registry on this host, which may speak plain HTTP. `$LOGIN` is not empty where `$WORK/login` has a login, which goes when it
   * has been used: `config.json` as `docker login` writes it, `username` and `password`. It is otherwise an empty directory.
   */
  fetch: string;
  /** A daemon does it, for which this account has a right that others lack: then it is not run as somebody else. */
  byDaemon: boolean;
}

export type ImageToolName = 'apptainer' | 'singularity' | 'podman' | 'docker';

/** In the order in which they are looked for by default. */
export const IMAGE_TOOLS: readonly ImageToolName[] = ['apptainer', 'singularity', 'podman', 'docker'];

/** Apptainer is what became of Singularity. */
const apptainer = (name: 'apptainer' | 'singularity'): ImageTool => {
  const prefix = name.toUpperCase();
  return {
    name,
    probe: `${name} --version`,
    fetch: `
mkdir "$WORK/cache" "$WORK/tmp"
export ${prefix}_CACHEDIR="$WORK/cache" ${prefix}_TMPDIR="$WORK/tmp"
[ -z "$PLAIN" ] || export ${prefix}_NOHTTPS=true
if [ -n "$LOGIN" ]; then
  export ${prefix}_DOCKER_USERNAME="$(cat "$WORK/login/username")" ${prefix}_DOCKER_PASSWORD="$(cat "$WORK/login/password")"
  rm "$WORK/login/"*
fi
${name} build --force --sandbox "$ROOT" "docker://$IMAGE" >&2`,
    byDaemon: false,
  };
};

const TOOLS: Readonly<Record<ImageToolName, ImageTool>> = {
  apptainer: apptainer('apptainer'),
  singularity: apptainer('singularity'),
  podman: {
    name: 'podman',
    probe: 'podman --version',
    // A store of its own: nothing stays, and an account without subordinate ids has no others to give files to. The other directory has to have
    // a short name. Locks of containers are kept by account, whatever the store: those of one without a store of its own would be used up.
    fetch: `
run=$(mktemp -d /tmp/images.XXXXXX)
locks=/dev/shm/libpod_rootless_lock_$(id -u)
[ ! -e "$locks" ] || locks=
cat >"$WORK/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$WORK/store"
runroot = "$run"
[storage.options]
ignore_chown_errors = "true"
END
export CONTAINERS_STORAGE_CONF="$WORK/storage.conf"
p() { podman --tmpdir "$WORK/tmp" "$@"; }
made=
clean() {
  [ -z "$made" ] || p rm "$made"
  p unshare rm -rf "$WORK/store" "$run"
  rm -rf "$run" \${locks:+"$locks"}
}
trap 'clean >/dev/null 2>&1' EXIT
p pull --quiet \${PLAIN:+--tls-verify=false} \${LOGIN:+--authfile "$WORK/login/config.json"} "docker://$IMAGE" >&2
rm -f "$WORK/login/"*
p image inspect --format '{{.Digest}}' "$IMAGE"
made=$(p create --pull never --network none "$IMAGE" /none)
p export -o "$WORK/all.tar" "$made"
tar -x -f "$WORK/all.tar" -C "$ROOT" --no-same-owner`,
    byDaemon: false,
  },
  docker: {
    name: 'docker',
    probe: 'docker version',
    fetch: `
d() { docker --config "$WORK/login" "$@"; }
had=$(d image inspect --format '{{.Id}}' "$IMAGE" 2>/dev/null || true)
d pull --quiet "$IMAGE" >&2
rm -f "$WORK/login/"*
d image inspect --format '{{index .RepoDigests 0}}' "$IMAGE" | sed 's/.*@//'
made=$(d create --network none "$IMAGE" /none)
trap 'd rm "$made"; [ -n "$had" ] || d rmi "$IMAGE"' EXIT
d export -o "$WORK/all.tar" "$made"
tar -x -f "$WORK/all.tar" -C "$ROOT" --no-same-owner`,
    byDaemon: true,
  },
};

/** The first of these tools that works here; otherwise what each of them lacks. */
export function findImageTool(names: readonly ImageToolName[]): ImageTool | string {
  const lacking: string[] = [];
  for (const name of names) {
    const { error, status, stderr } = spawnSync('/bin/sh', ['-c', TOOLS[name].probe], {
      ...{ env: hostEnvironment(), encoding: 'utf8', timeout: 10_000, stdio: ['ignore', 'ignore', 'pipe'] },
    });
    if (status === 0) return TOOLS[name];
    const said = error?.message ?? stderr.trim().split('\n').at(-1) ?? '';
    lacking.push(`${name}: ${said || `it ended with ${status}`}`);
  }
  return lacking.join('; ');
}

/** Whether a registry is on this host: then it needs no TLS. */
export const isHere = (registry: string): boolean => /^(localhost|127(\.\d+){3})(:\d+)?$/.test(registry);

/** What is removed from an unpacked image: devices, sockets and pipes; what programs get by their file. */
export const TAME = `
find "$1" -xdev ! -type f ! -type d ! -type l -exec rm -f {} +
find "$1" -xdev ! -type l -perm /6000 -exec chmod ug-s {} +
find "$1" -xdev -type d ! -perm -u+rwx -exec chmod u+rwx {} +`;
