/** Parts of a job, whose tasks have different requirements, as people read them. */
import { requestWritten, sameSwitchText, tasksPerMachineText } from './values.js';

interface Part {
  readonly tasks: number;
  readonly cpusPerTask: number;
  readonly memoryMbPerTask: number;
  readonly resourcesPerTask: readonly { readonly kind: string; readonly amount: number }[];
  readonly devicesPerTask: readonly Parameters<typeof requestWritten>[0][];
  readonly tasksPerMachine: { readonly min: number; readonly max?: number | null } | null;
  readonly exclusive: 'MACHINE' | 'USER' | null;
  readonly allAlike: readonly string[] | null;
  readonly sameSwitch: { readonly maxWaitS: number | null } | null;
  readonly machineConstraint: string | null;
}

const plural = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

/** `2 tasks of 4 CPUs, 300 MB, 1 gpu, machines with gen >= 3`. */
export function partText(part: Part): string {
  const { tasksPerMachine, exclusive, allAlike, sameSwitch, machineConstraint } = part;
  return [
    `${plural(part.tasks, 'task')} of ${plural(part.cpusPerTask, 'CPU')}`,
    ...(part.memoryMbPerTask > 0 ? [`${part.memoryMbPerTask} MB`] : []),
    ...part.resourcesPerTask.map(({ kind, amount }) => `${amount} ${kind}`),
    ...part.devicesPerTask.map(requestWritten),
    ...(tasksPerMachine ? [`${tasksPerMachineText(tasksPerMachine)} on each machine`] : []),
    ...(exclusive ? [exclusive === 'USER' ? 'machines for its user' : 'exclusive machines'] : []),
    ...(allAlike ? [`machines alike in ${allAlike.join(', ')}`] : []),
    ...(sameSwitch ? [`machines ${sameSwitchText(sameSwitch)}`] : []),
    ...(machineConstraint ? [`machines with ${machineConstraint}`] : []),
  ].join(', ');
}

/** CPUs of the tasks on each machine of a run: those of the first part come first. */
export function cpusOnMachines(
  job: {
    readonly cpusPerTask: number;
    readonly parts: readonly { readonly tasks: number; readonly cpusPerTask: number }[];
  },
  machines: readonly { readonly tasks: number }[],
): number[] {
  const parts = job.parts.length === 0 ? [{ ...job, tasks: Infinity }] : job.parts;
  let at = 0;
  let left = parts[0]?.tasks ?? 0;
  return machines.map(({ tasks }) => {
    if (left <= 0) left = parts[++at]?.tasks ?? 0;
    left -= tasks;
    return tasks * (parts[at]?.cpusPerTask ?? job.cpusPerTask);
  });
}
