import { labelsOf } from '../../core/grid/site-resources.js';
import { labelsAskedBy, parseAsked, satisfies } from '../../core/resources/constraint.js';
import type { Queries } from '../../store/queries.js';
import { devicesIn, labelsIn } from '../../store/rules.js';

interface Asking {
  machineConstraint: string | null;
  image: string | null;
  machines: readonly unknown[];
}

/**
 * Where the own scheduler of a site may run what is handed over to it: names of the machines whose labels are as the job asks; null: on any. That
 * scheduler does not know the labels of our machines, and the agent does not read constraints.
 */
export async function fittingNodes(
  queries: Pick<Queries, 'machinesOfSites' | 'sitesByIds'>,
  siteId: number,
  runs: readonly Asking[],
): Promise<(run: Asking) => string[] | null> {
  const asks = (run: Asking): boolean => labelsAskedBy(run) !== null && run.machines.length === 0;
  if (!runs.some(asks)) return () => null;
  const [machines, [site]] = await Promise.all([
    queries.machinesOfSites([siteId]),
    queries.sitesByIds([siteId]),
  ]);
  const labelled = machines.map((machine) => {
    const { name, os, architecture, devices } = machine;
    const said = { labels: labelsIn(machine), devices: devicesIn(devices), os, architecture };
    return { name, labels: labelsOf(said, site?.name ?? '') };
  });
  // Many runs ask the same.
  const found = new Map<string, string[]>();
  return (run) => {
    if (!asks(run)) return null;
    const text = labelsAskedBy(run) as string;
    let names = found.get(text);
    if (names === undefined) {
      const constraint = parseAsked(text);
      names = labelled.filter(({ labels }) => satisfies(labels, constraint)).map(({ name }) => name);
      found.set(text, names);
    }
    return names;
  };
}
