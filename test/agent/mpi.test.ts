/**
 * A job that starts its tasks itself, by a real mpirun which reads the list of hosts that the agent names: in every isolation of this machine,
 * and over three hosts, which are namespaces with a name, an address and a network of their own.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import { complete, openRunner, script, temporaryDirectory, until } from './support.js';

const has = (...[program, ...args]: string[]): boolean => spawnSync(program!, args).status === 0;
/** Its compiler finds its header: some systems bring them apart. */
const compiles =
  spawnSync('mpicc', ['-E', '-x', 'c', '-'], {
    input: '#include <mpi.h>',
    stdio: ['pipe', 'ignore', 'ignore'],
  }).status === 0;
const hasMpi = has('mpirun', '--version') && compiles;
const isRoot = process.getuid?.() === 0;
const hasNamespaces =
  isRoot && has('unshare', '--net', '--uts', '--mount', 'ip', 'link', 'add', 'dev', 'b', 'type', 'bridge');
const modes = (['none', 'user', 'sandbox'] as const).filter((mode) => {
  try {
    return Isolation.open({ mode, cgroups: false }, tmpdir(), 'test-probe').mode === mode;
  } catch {
    return false;
  }
});

const SUM = `#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, size, sum;
  char host[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  gethostname(host, sizeof host);
  if (argc > 1) printf("%d on %s\\n", rank, host);
  if (rank == 0) printf("%d tasks, sum of ranks %d\\n", size, sum);
  MPI_Finalize();
}`;

if (!hasMpi)
  it.skip(
    'jobs with MPI: there is no mpirun, or no mpicc with mpi.h (apt-get install openmpi-bin libopenmpi-dev)',
  );
else if (!hasNamespaces)
  it.skip('mpirun over three hosts: it takes root, and the right to make networks and bridges (ip, unshare)');

describe.runIf(hasMpi).each(modes)('mpirun, isolation %s', (mode) => {
  it('starts as many tasks as the job has, and they talk to one another', async () => {
    const stateDir = temporaryDirectory();
    chmodSync(stateDir, 0o755);
    const runner = await openRunner({
      stateDir,
      isolation: (dir, id) => Isolation.open({ mode, cgroups: false }, dir, id),
    });
    const text = `cat > sum.c <<'END'\n${SUM}\nEND\nmpicc -o sum sum.c && mpirun ./sum`;
    // Open MPI does not run for root unless it is told to twice.
    const environment: Record<string, string> =
      mode === 'none' && process.getuid?.() === 0
        ? { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }
        : {};
    const run = {
      ...script('job_1', text),
      tasks: 4,
      machines: [
        { name: 'a', host: hostname(), tasks: 3 },
        { name: 'b', host: hostname(), tasks: 1 },
      ],
      environment,
    };
    const end = await complete(runner, run);
    expect(end.stderr!.text).toBe('');
    expect(end).toMatchObject({ cause: 'EXITED_ZERO', stdout: { text: '4 tasks, sum of ranks 6\n' } });
  });
});

/** Makes this network namespace the host h1, and two others h2 and h3 at the same bridge; leaves their pids in files. */
const HOSTS = `
set -e
dir=$1; shift
cd "$dir"
printf '127.0.0.1 localhost\\n10.0.0.1 h1\\n10.0.0.2 h2\\n10.0.0.3 h3\\n' > hosts
mount --bind hosts /etc/hosts
hostname h1
ip link set lo up
ip link add name hosts type bridge
ip addr add 10.0.0.1/24 dev hosts
ip link set hosts up
for i in 2 3; do
  unshare --net --uts sleep 1000 &
  echo $! > "h$i.pid"
  while [ "$(readlink /proc/$!/ns/uts)" = "$(readlink /proc/self/ns/uts)" ]; do sleep 0.05; done
  ip link add "v$i" type veth peer name eth netns $!
  ip link set "v$i" master hosts up
  nsenter -t $! -n -u sh -c "hostname h$i; ip link set lo up; ip addr add 10.0.0.$i/24 dev eth; ip link set eth up"
done
# What ssh does: a session and an environment of its own, on the host of that name.
cat > rsh <<'END'
#!/bin/sh
host=$1; shift
exec nsenter -t "$(cat "$(dirname "$0")/$host.pid")" -n -u env -i PATH=/usr/local/bin:/usr/bin:/bin setsid -w sh -c "$*"
END
chmod 755 rsh
exec "$@"
`;

it.runIf(hasMpi && hasNamespaces)(
  'mpirun starts the tasks of a job on all its hosts, and they talk to one another',
  async () => {
    const dir = temporaryDirectory();
    const host = fileURLToPath(new URL('./host.mjs', import.meta.url));
    const agent = ['sh', '-c', HOSTS, 'sh', dir, process.execPath, host, join(dir, 'state')];
    const child = spawn(
      'unshare',
      ['--net', '--uts', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', ...agent],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const gone = new Promise((resolve) => child.on('close', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await gone;
    });
    const said: { phase?: string; outputs: { stream: string; text: string }[] }[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => said.push(JSON.parse(line)));
    const run = {
      ...script(
        'job_1',
        `cat > sum.c <<'END'\n${SUM}\nEND\nmpicc -o ${dir}/sum sum.c && mpirun ${dir}/sum where`,
      ),
      tasks: 4,
      machines: [2, 1, 1].map((tasks, i) => ({ name: `m${i}`, host: `h${i + 1}`, tasks })),
      environment: {
        ...{ OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' },
        OMPI_MCA_plm_rsh_agent: join(dir, 'rsh'),
      },
    };
    child.stdin.write(`${JSON.stringify(run)}\n`);
    await until(() => said.some(({ phase }) => phase === 'ENDED') || child.exitCode !== null, 'the end');
    const { outputs, ...end } = said.find(({ phase }) => phase === 'ENDED')!;
    const text = (stream: string): string =>
      outputs.flatMap((one) => (one.stream === stream ? [one.text] : [])).join('');
    expect(text('STDERR')).toBe('');
    expect(end).toMatchObject({ cause: 'EXITED_ZERO' });
    expect(text('STDOUT').trim().split('\n').sort()).toEqual([
      '0 on h1',
      '1 on h1',
      '2 on h2',
      '3 on h3',
      '4 tasks, sum of ranks 6',
    ]);
  },
);
