/** Toil, as Debian has it, and a workflow that both of its doors here run. */

/** Debian's, where another Python may go before it. */
export const PYTHON = '/usr/bin/python3';

/** Three jobs hand their results on to one that prints `sum 60`; one of them fails the first time, and leaves the file `$MARK`. */
export const SUMS = `import os
from toil.common import Toil
from toil.job import Job
SMALL = dict(memory='600M', cores=1, disk='10M')
def part(job, i):
    mark = os.environ['MARK']
    if i == 2 and not os.path.exists(mark):
        open(mark, 'w').close()
        raise RuntimeError('the first time it fails')
    return i * 10
def total(job, parts):
    return sum(parts)
def root(job):
    parts = [job.addChildJobFn(part, i, name=f'part{i}', **SMALL).rv() for i in (1, 2, 3)]
    return job.addFollowOnJobFn(total, parts, name='total', **SMALL).rv()
if __name__ == '__main__':
    options = Job.Runner.getDefaultArgumentParser().parse_args()
    with Toil(options) as toil:
        print('sum', toil.start(Job.wrapJobFn(root, name='root', **SMALL)))
`;
