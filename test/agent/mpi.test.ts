/** A job that starts its tasks itself, by a real mpirun which reads the list of hosts that the agent names, in every isolation of this machine. */
import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import { complete, openRunner, script, temporaryDirectory } from './support.js';

const has = (...command: [string, string]): boolean => spawnSync(command[0], [command[1]]).status === 0;
const hasMpi = has('mpirun', '--version') && has('mpicc', '--version');
const modes = (['none', 'user', 'sandbox'] as const).filter((mode) => {
  try {
    return Isolation.open({ mode, cgroups: false }, tmpdir(), 'test-probe').mode === mode;
  } catch {
    return false;
  }
});

const SUM = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d tasks, sum of ranks %d\\n", size, sum);
  MPI_Finalize();
}`;

if (!hasMpi)
  it.skip('jobs with MPI: mpirun and mpicc are not installed (apt-get install openmpi-bin libopenmpi-dev)');

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
        { name: 'b', host: 'localhost', tasks: 1 },
      ],
      environment,
    };
    const end = await complete(runner, run);
    expect(end.stderr!.text).toBe('');
    expect(end).toMatchObject({ cause: 'EXITED_ZERO', stdout: { text: '4 tasks, sum of ranks 6\n' } });
  });
});
