/** The tree as it stands, for people: what each scheduler holds, its channels, and what made them. */
import { amountOf, MEMORY } from '../../grid/amounts.js';
import type { DispatchLook, TreeView } from '../policy.js';
import { LiveTree, type TreeJob } from './live-tree.js';
import type { Rules } from './rules.js';

export function viewOf(look: DispatchLook, rules: Rules): TreeView {
  // One of its own: the numbers of its ports are to be the same in every process.
  const tree = new LiveTree(look.grid);
  tree.begin(look, rules);
  const byClass = new Map<string, TreeJob[]>();
  for (const one of tree.jobs.values()) {
    const key = tree.classOf(one);
    const alike = byClass.get(key);
    if (alike === undefined) byClass.set(key, [one]);
    else alike.push(one);
  }
  const view: TreeView = new Map();
  for (const [id, scheduler] of tree.schedulers) {
    view.set(id, {
      holds: scheduler.unassigned.size + (id === null ? tree.nowhere.size : 0),
      waiting: scheduler.waiting + (id === null ? tree.nowhere.size : 0),
      channels: [...scheduler.channels.byPort.values()].map(({ port, power, bag, branches }) => ({
        port,
        power,
        classes: [...bag].flatMap((key) => {
          const jobs = byClass.get(key);
          if (jobs === undefined) return [];
          const { signature, tasks, cpusPerTask, task } = (jobs[0] as TreeJob).requirement;
          const memoryMbPerTask = amountOf(task, MEMORY);
          const { os, architecture, pools } = signature;
          const licenses = pools.map(({ kind }) => kind);
          return [{ os, architecture, licenses, tasks, cpusPerTask, memoryMbPerTask, jobs: jobs.length }];
        }),
        branches: [...branches].map((branch) => ({
          ...tree.placeAt(branch.child),
          port: branch.port,
          power: branch.power,
          jobs: branch.place.size,
        })),
      })),
    });
  }
  return view;
}
