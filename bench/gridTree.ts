/** Discovery in a grid tree: its cost follows classes of jobs and kinds of machines. */
import {
  DEFAULT_ROOT_RULES,
  DEFAULT_TREE_RULES,
  type Effects,
  Leaf,
  type MachineKind,
  Pump,
  type Requirement,
  Root,
  request,
  requirement,
  Scheduler,
  tasksOn,
} from '../src/core/grid-tree/index.js';
import { RandomStream } from '../src/core/index.js';
import { type Bench, seconds, sideBySide, sized } from './measure.js';

const NAME = 'grid-tree-discovery';
const JOBS = sized(100_000, 1_000);
const CLASSES = 200;
const MACHINES = sized(5_000, 100);
const KINDS = 50;
const LEAVES = 50;
const LEAVES_OF_SCHEDULER = 10;
/** The baseline matches one job of so many, and its time is multiplied. */
const SAMPLE = 20;
const ROUNDS = 5;

const SYSTEMS = ['LINUX', 'UNIX', 'WINDOWS', 'SOLARIS', 'AIX'];
const ARCHITECTURES = ['X86_64', 'AARCH64'];

interface Given {
  requirements: Requirement[];
  kinds: MachineKind[];
  /** Of each leaf, machines by index of their kind. */
  machines: Map<number, number>[];
}

function given(): Given {
  const random = new RandomStream(1, NAME);
  const kinds = Array.from({ length: KINDS }, (_, i) => ({
    os: SYSTEMS[i % SYSTEMS.length] as string,
    architecture: ARCHITECTURES[i % ARCHITECTURES.length] as string,
    licenses: [],
    cpus: 2 ** random.integer(0, 6),
    memoryMb: 1000 * (i + 1),
  }));
  const requirements = Array.from({ length: CLASSES }, (_, i) =>
    requirement({
      os: i % 3 === 0 ? [] : [SYSTEMS[random.integer(0, SYSTEMS.length - 1)] as string],
      architecture: i % 2 === 0 ? null : (ARCHITECTURES[random.integer(0, 1)] as string),
      cpusPerTask: 2 ** random.integer(0, 5),
      memoryMbPerTask: 100 * (i + 1),
    }),
  );
  const machines = Array.from({ length: LEAVES }, () => new Map<number, number>());
  for (let i = 0; i < MACHINES; i++) {
    const leaf = machines[i % LEAVES] as Map<number, number>;
    const kind = random.integer(0, KINDS - 1);
    leaf.set(kind, (leaf.get(kind) ?? 0) + 1);
  }
  return { requirements, kinds, machines };
}

/** From jobs and machines to the channels of all schedulers. */
function discover({ requirements, kinds, machines }: Given): number {
  const pump = new Pump();
  const effects = (id: string): Effects => ({ send: (to, message) => pump.send(id, to, message) });
  const root = new Root('root', effects('root'), DEFAULT_TREE_RULES, DEFAULT_ROOT_RULES);
  pump.add('root', root);
  let parent: Scheduler = root;
  machines.forEach((counts, i) => {
    if (i % LEAVES_OF_SCHEDULER === 0) {
      const id = `scheduler-${i}`;
      parent = new Scheduler(id, effects(id), DEFAULT_TREE_RULES);
      pump.add(id, parent);
      parent.setParent('root');
      root.attach(id);
    }
    const leaf = new Leaf(`leaf-${i}`, effects(`leaf-${i}`));
    for (const [kind, count] of counts) leaf.setMachines(kinds[kind] as MachineKind, count);
    leaf.setParent(parent.id);
    parent.attach(leaf.id);
    pump.add(leaf.id, leaf);
  });
  for (let i = 0; i < JOBS; i++) {
    const made = request({
      id: `${i}`,
      owner: 'owner',
      requirement: requirements[i % CLASSES] as Requirement,
    });
    root.receive('owner', { kind: 'SUBMIT', request: made, sequence: null });
  }
  pump.touch('root');
  pump.run();
  return root.channels.byPort.size;
}

/** Each job with each machine, of a sample of the jobs; seconds for all. */
async function matchEach({ requirements, kinds, machines }: Given): Promise<number> {
  const all = machines.flatMap((counts) =>
    [...counts].flatMap(([kind, count]) => new Array<MachineKind>(count).fill(kinds[kind] as MachineKind)),
  );
  let fits = 0;
  const sampleS = await seconds(() => {
    for (let i = 0; i < JOBS; i += SAMPLE) {
      const asked = requirements[(i / SAMPLE) % CLASSES] as Requirement;
      for (const machine of all) if (tasksOn(asked, machine) > 0) fits++;
    }
  });
  if (fits === 0) throw new Error('no job of the benchmark fits any machine');
  return sampleS * SAMPLE;
}

export const gridTreeBench: Bench = {
  names: [NAME],
  async run() {
    const world = given();
    discover(world);
    return [
      await sideBySide(
        {
          name: NAME,
          unit: 's',
          aim: null,
          what: `from ${JOBS} jobs of ${CLASSES} classes and ${MACHINES} machines of ${KINDS} kinds at ${LEAVES} sites to the channels of a grid tree; against matching each job with each machine (one job of ${SAMPLE}, times ${SAMPLE})`,
        },
        ROUNDS,
        () => seconds(() => discover(world)),
        () => matchEach(world),
      ),
    ];
  },
};
