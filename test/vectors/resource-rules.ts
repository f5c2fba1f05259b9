/**
 * The rules of resources.md once more, and the one of jobs.md that is about room: word by word from the specification, by trying all
 * there is to try, with nothing of the core.
 */
import { compare, type Fraction } from './rational.js';

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
/** Lists of equal length, by the first that differs. */
function compareLists(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  const at = a.findIndex((one, i) => one !== b[i]);
  return at < 0 ? 0 : (a[at] as number) < (b[at] as number) ? -1 : 1;
}
const times = (free: number, asked: number): number =>
  asked === 0 ? Infinity : Math.floor(Math.max(0, free) / asked);
const total = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

// Constraint expressions ------------------------------------------------------------------------------------------------

type Labels = Record<string, string>;
export interface ConstraintCase {
  expression: string;
  machines: { id: string; labels: Labels }[];
}

interface Token {
  text: string;
  quoted: boolean;
  at: number;
}
/** Whether a machine satisfies it. */
type Test = (labels: Labels) => boolean;

class Wrong extends Error {
  constructor(
    readonly code: string,
    readonly at: number,
  ) {
    super(code);
  }
}

const DEEPEST = 64;

export function constraint({ expression, machines }: ConstraintCase) {
  try {
    if (expression.length > 4096) throw new Wrong('TOO_LONG', 4096);
    const test = grammar(tokens(expression), expression.length);
    return { machines: machines.filter(({ labels }) => test(labels)).map(({ id }) => id) };
  } catch (wrong) {
    if (!(wrong instanceof Wrong)) throw wrong;
    return { error: { code: wrong.code, at: wrong.at } };
  }
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  const letters = /[A-Za-z0-9_]/;
  for (let at = 0; at < text.length; ) {
    const [here, next] = [text.charAt(at), text.charAt(at + 1)];
    let end = at + 1;
    if (' \t\r\n'.includes(here)) {
      at = end;
      continue;
    }
    if (here === '"') {
      let quoted = '';
      for (; text.charAt(end) !== '"'; end++) {
        if (end >= text.length) throw new Wrong('SYNTAX', at);
        if (text.charAt(end) === '\\' && end + 1 < text.length) {
          end++;
          if (!'"\\'.includes(text.charAt(end))) throw new Wrong('SYNTAX', end - 1);
        }
        quoted += text.charAt(end);
      }
      end++;
      found.push({ text: quoted, quoted: true, at });
    } else {
      if (letters.test(here) || (here === '-' && letters.test(next))) {
        while (end < text.length && /[A-Za-z0-9_.\-/]/.test(text.charAt(end))) end++;
      } else if (['!=', '<=', '>='].includes(here + next)) end++;
      else if (!'!<>=&|(),'.includes(here)) throw new Wrong('SYNTAX', at);
      found.push({ text: text.slice(at, end), quoted: false, at });
    }
    at = end;
  }
  return found;
}

function grammar(all: Token[], length: number): Test {
  let read = 0;
  const at = (): number => all[read]?.at ?? length;
  const fail = (): never => {
    throw new Wrong('SYNTAX', at());
  };
  /** Reads one of these words, if one is there. */
  const take = (...words: string[]): string | null => {
    const token = all[read];
    if (token === undefined || token.quoted || !words.includes(token.text)) return null;
    read++;
    return token.text;
  };
  const reserved = (text: string): boolean => ['and', 'or', 'not', 'in'].includes(text);
  const value = (): Token => {
    const token = all[read];
    if (token === undefined) return fail();
    if (!token.quoted && (reserved(token.text) || !/^-?[A-Za-z0-9_]/.test(token.text))) return fail();
    read++;
    return token;
  };
  const test = (): Test => {
    const token = all[read];
    if (token === undefined || token.quoted || reserved(token.text) || !/^[A-Za-z_]/.test(token.text))
      return fail();
    read++;
    const label = token.text;
    const has = (labels: Labels): boolean => Object.keys(labels).includes(label);
    const sign = take('=', '!=', '<', '<=', '>', '>=');
    if (sign !== null) {
      const other = value();
      return (labels) => {
        const is = (what: string): boolean => has(labels) && holds(labels[label] as string, what, other);
        return sign === '!=' ? !is('=') : is(sign);
      };
    }
    if (take('in') === null) return has;
    if (take('(') === null) return fail();
    const values = [value()];
    while (take(',') !== null) values.push(value());
    if (take(')') === null) return fail();
    return (labels) => has(labels) && values.some((one) => holds(labels[label] as string, '=', one));
  };
  const unary = (inside: number): Test => {
    if (inside > DEEPEST) throw new Wrong('TOO_DEEP', at());
    if (take('not', '!') !== null) {
      const one = unary(inside + 1);
      return (labels) => !one(labels);
    }
    if (take('(') === null) return test();
    const one = or(inside + 1);
    return take(')') === null ? fail() : one;
  };
  const and = (inside: number): Test => {
    const parts = [unary(inside)];
    while (take('and', '&') !== null) parts.push(unary(inside));
    return (labels) => parts.every((part) => part(labels));
  };
  const or = (inside: number): Test => {
    const parts = [and(inside)];
    while (take('or', '|') !== null) parts.push(and(inside));
    return (labels) => parts.some((part) => part(labels));
  };
  const expression = or(0);
  return read < all.length ? fail() : expression;
}

function holds(text: string, sign: string, value: Token): boolean {
  const [a, b] = [numberIn(text), value.quoted ? null : numberIn(value.text)];
  if (a === null || b === null) return sign === '=' && text === value.text;
  const order = compare(a, b);
  return (
    (sign.includes('=') && order === 0) ||
    (sign.includes('<') && order < 0) ||
    (sign.includes('>') && order > 0)
  );
}

function numberIn(text: string): Fraction | null {
  if (!/^-?[0-9]+(\.[0-9]+)?$/.test(text)) return null;
  const decimals = text.split('.')[1] ?? '';
  return { over: BigInt(text.replace('.', '')), under: 10n ** BigInt(decimals.length) };
}

// Shapes ----------------------------------------------------------------------------------------------------------------

interface DeviceOf {
  id: string;
  kind: string;
  model: string | null;
  memoryMb: number;
  shares: number;
  link: string | null;
  oneUser: boolean;
  used: { shares: number; memoryMb: number; user: string | null };
}
interface AskedDevice {
  kind: string;
  count: number;
  model: string | null;
  minMemoryMb: number | null;
  share: { parts: number; of: number } | null;
}
interface MachineAmounts {
  cpus: number;
  memoryMb: number;
  places: number | null;
}
export interface ShapeCase {
  user: string;
  machines: {
    id: string;
    labels: Labels;
    total: MachineAmounts;
    free: MachineAmounts;
    users: string[];
    onlyUser: string | null;
    devices: DeviceOf[];
  }[];
  parts: {
    tasks: number;
    cpus: number;
    memoryMb: number;
    memoryMbPerCpu: number;
    devices: AskedDevice[];
    tasksPerMachine: { min: number; max: number | null };
    exclusive: 'NONE' | 'MACHINE' | 'USER';
    where: string | null;
    allAlike: string[];
  }[];
  licenses: Record<string, number>;
  freeLicenses: Record<string, number>;
}
type ShapeMachine = ShapeCase['machines'][number];
type Part = ShapeCase['parts'][number];

/** A number of tasks that a machine takes, but not one fewer of them: the specification does not say who is asked then. */
export class LeftOpen extends Error {}

const idle = ({ used }: DeviceOf): boolean => used.shares === 0 && used.memoryMb === 0;
/** Groups of devices without a link come first, by id. */
const group = ({ link, id }: DeviceOf): string => (link === null ? `0${id}` : `1${link}`);

export function placeShape(input: ShapeCase) {
  const { user, parts, licenses, freeLicenses } = input;
  const machines = structuredClone(input.machines);
  /** Shared in time, with a task of the job. */
  const full = new Set<ShapeMachine>();
  const placed: unknown[] = [];
  for (const [position, part] of parts.entries()) {
    const { most, lacks } = mostOf(part, machines, user, full);
    if (lacks !== null) return { lacks, part: position };
    const chosen = whichMachines(part, machines, most, user);
    placed.push(
      chosen
        .map(({ machine, tasks }) => ({
          machine: machine.id,
          tasks,
          devices: takeOf(machine, part, tasks, user, full),
        }))
        .sort((a, b) => compareText(a.machine, b.machine)),
    );
  }
  for (const kind of Object.keys(licenses).sort())
    if ((licenses[kind] ?? 0) > (freeLicenses[kind] ?? 0)) return { lacks: `license:${kind}`, part: null };
  return { parts: placed };
}

const memoryOf = ({ memoryMb, memoryMbPerCpu, cpus }: Part): number =>
  Math.max(memoryMb, memoryMbPerCpu * cpus);
const inOrder = ({ devices }: Part): AskedDevice[] => [
  ...devices.filter(({ share }) => share === null),
  ...devices.filter(({ share }) => share !== null),
];

/** Tasks that each machine takes at most; else the first step after which they are too few. */
function mostOf(part: Part, machines: ShapeMachine[], user: string, full: Set<ShapeMachine>) {
  const { tasks, cpus, exclusive, where, allAlike } = part;
  const { min, max } = part.tasksPerMachine;
  const most = new Map(machines.map((machine) => [machine, tasks]));
  const narrow = (lacks: string, to: (machine: ShapeMachine, now: number) => number): string | null => {
    for (const [machine, now] of most) most.set(machine, Math.min(now, to(machine, now)));
    return total([...most.values()]) < tasks ? lacks : null;
  };
  const asked = inOrder(part);
  const steps: (() => string | null)[] = [
    () => {
      const fitting = constraint({ expression: where ?? '', machines }).machines;
      return narrow('where', ({ id }) => (where === null || fitting?.includes(id) ? tasks : 0));
    },
    () =>
      narrow('exclusive', ({ users, onlyUser }) => {
        if (onlyUser !== null && onlyUser !== user) return 0;
        if (exclusive === 'MACHINE' && users.length > 0) return 0;
        return exclusive === 'USER' && users.some((other) => other !== user) ? 0 : tasks;
      }),
    () =>
      narrow('cpus', ({ total: all, free }) =>
        all.places === null ? times(free.cpus, cpus) : all.cpus >= cpus ? tasks : 0,
      ),
    () => narrow('memoryMb', ({ free }) => times(free.memoryMb, memoryOf(part))),
    () =>
      narrow('places', (machine) =>
        machine.free.places === null ? tasks : full.has(machine) ? 0 : Math.min(1, machine.free.places),
      ),
    ...asked.map(
      ({ kind }, i) =>
        () =>
          narrow(kind, ({ devices }, now) => {
            let served = now;
            while (served > 0 && serve(devices, asked.slice(0, i + 1), served, user) === null) served--;
            return served;
          }),
    ),
    () => {
      for (const [machine, now] of most) if (Math.min(now, max ?? now) < min) most.set(machine, 0);
      const lacks = narrow('tasksPerMachine', () => max ?? tasks);
      return lacks ?? (reaches(most, tasks, min) ? null : 'tasksPerMachine');
    },
    () => {
      const can = classes(machines, allAlike).some((one) => reaches(only(most, one), tasks, min));
      return can ? null : 'allAlike';
    },
  ];
  const lacks = machines.length === 0 ? 'where' : null;
  return { most, lacks: steps.reduce((found, step) => found ?? step(), lacks) };
}

const only = (most: Map<ShapeMachine, number>, machines: ShapeMachine[]): Map<ShapeMachine, number> =>
  new Map([...most].filter(([machine]) => machines.includes(machine)));

/** The fewest machines, largest first, that reach so many tasks; null: all do not. */
function fewest(most: Map<ShapeMachine, number>, tasks: number): number | null {
  const largest = [...most.values()].sort((a, b) => b - a);
  const counts = largest.map((_, i) => total(largest.slice(0, i + 1)));
  const at = counts.findIndex((count) => count >= tasks);
  return at < 0 ? null : at + 1;
}
function reaches(most: Map<ShapeMachine, number>, tasks: number, min: number): boolean {
  const machines = fewest(most, tasks);
  return machines !== null && machines * min <= tasks;
}

function classes(machines: ShapeMachine[], allAlike: string[]): ShapeMachine[][] {
  const named = machines.filter(({ labels }) =>
    allAlike.every((label) => Object.keys(labels).includes(label)),
  );
  const alike = (a: ShapeMachine, b: ShapeMachine): boolean =>
    allAlike.every((label) => a.labels[label] === b.labels[label]);
  return named
    .filter((one) => named.find((other) => alike(one, other)) === one)
    .map((one) => named.filter((other) => alike(one, other)));
}

interface Chosen {
  machine: ShapeMachine;
  tasks: number;
}

function whichMachines(
  part: Part,
  machines: ShapeMachine[],
  most: Map<ShapeMachine, number>,
  user: string,
): Chosen[] {
  const { tasks, allAlike } = part;
  const { min } = part.tasksPerMachine;
  const keyOf = ({ machine, tasks: k }: Chosen): number[] => {
    const given = serve(machine.devices, inOrder(part), k, user);
    if (given === null) throw new LeftOpen();
    return [
      new Set(machine.devices.filter(({ id }) => given.has(id)).map(group)).size,
      machine.devices.filter((device) => idle(device) && !given.has(device.id)).length,
      machine.free.cpus - (machine.free.places === null ? k * part.cpus : 0),
    ];
  };
  const within = (of: Map<ShapeMachine, number>): Chosen[] => {
    const chosen: Chosen[] = [];
    let [left, toCome] = [tasks, fewest(of, tasks) as number];
    for (const open = new Map(of); left > 0; toCome--) {
      const all = [...open].filter(([, takes]) => takes >= left);
      const largest = Math.max(...open.values());
      const among = all.length > 0 ? all : [...open].filter(([, takes]) => takes === largest);
      const [best] = among
        .map(([machine, takes]): Chosen => ({ machine, tasks: Math.min(takes, left - min * (toCome - 1)) }))
        .map((one) => ({ one, key: [...keyOf(one), one.machine.id] }))
        .sort((a, b) => compareLists(a.key, b.key));
      const { one } = best as { one: Chosen };
      chosen.push(one);
      open.delete(one.machine);
      left -= one.tasks;
    }
    return chosen;
  };
  if (allAlike.length === 0) return within(most);
  const [best] = classes(machines, allAlike)
    .map((one) => only(most, one))
    .filter((of) => reaches(of, tasks, min))
    .map((of) => {
      const chosen = within(of);
      const keys = chosen.map(keyOf);
      const sums = [0, 1, 2].map((i) => total(keys.map((key) => key[i] as number)));
      return { chosen, key: [chosen.length, ...sums, ...chosen.map(({ machine }) => machine.id).sort()] };
    })
    .sort((a, b) => compareLists(a.key, b.key));
  return (best as { chosen: Chosen[] }).chosen;
}

/** What so many tasks take of each device, by its id; null: they cannot all be served. */
function serve(devices: DeviceOf[], asked: AskedDevice[], tasks: number, user: string) {
  const left = structuredClone(devices);
  const given = new Map<string, { shares: number; memoryMb: number }>();
  const give = (device: DeviceOf, shares: number, memoryMb: number): void => {
    const before = given.get(device.id) ?? { shares: 0, memoryMb: 0 };
    given.set(device.id, { shares: before.shares + shares, memoryMb: before.memoryMb + memoryMb });
    device.used = {
      shares: device.used.shares + shares,
      memoryMb: device.used.memoryMb + memoryMb,
      user: device.used.user ?? user,
    };
  };
  const suits = (device: DeviceOf, { kind, model }: AskedDevice): boolean =>
    device.kind === kind && (model === null || device.model === model);
  /** Groups of idle ones, fewest first, each by id. */
  const groups = (matching: DeviceOf[]): DeviceOf[][] =>
    [...new Set(matching.map(group))]
      .map((name) => matching.filter((device) => group(device) === name))
      .map((of) => of.sort((a, b) => compareText(a.id, b.id)))
      .sort((a, b) => a.length - b.length || compareText(group(a[0] as DeviceOf), group(b[0] as DeviceOf)));
  for (const one of asked) {
    const { share } = one;
    const need = ({ shares, memoryMb }: DeviceOf): { shares: number; memoryMb: number } => {
      if (share === null) return { shares, memoryMb };
      const memory = Math.floor((memoryMb * share.parts) / share.of);
      return { shares: (shares * share.parts) / share.of, memoryMb: Math.max(one.minMemoryMb ?? 0, memory) };
    };
    const fits = (device: DeviceOf): boolean => {
      const { shares, memoryMb } = need(device);
      const { used } = device;
      if (!suits(device, one) || device.memoryMb < (one.minMemoryMb ?? 0)) return false;
      if (share !== null && (device.shares * share.parts) % share.of !== 0) return false;
      if (shares > device.shares - used.shares || memoryMb > device.memoryMb - used.memoryMb) return false;
      return idle(device) || (share !== null && (!device.oneUser || used.user === user));
    };
    for (let wanted = tasks * one.count; wanted > 0; ) {
      const fitting = left.filter(fits);
      const idleOnes = groups(fitting.filter(idle));
      let from: DeviceOf[] | undefined;
      if (share === null) {
        const largest = Math.max(0, ...idleOnes.map((of) => of.length));
        from = (
          idleOnes.find((of) => of.length >= wanted) ?? idleOnes.find((of) => of.length === largest)
        )?.slice(0, wanted);
      } else {
        const free = ({ shares, used }: DeviceOf): number => shares - used.shares;
        const [shared] = fitting
          .filter((device) => !idle(device))
          .sort((a, b) => free(a) - free(b) || compareText(a.id, b.id));
        from = shared === undefined ? idleOnes[0]?.slice(0, 1) : [shared];
      }
      if (from === undefined) return null;
      for (const device of from) {
        const { shares, memoryMb } = need(device);
        give(device, shares, memoryMb);
      }
      wanted -= from.length;
    }
  }
  return given;
}

/** Takes it for the parts that come after, and says what of which device. */
function takeOf(machine: ShapeMachine, part: Part, tasks: number, user: string, full: Set<ShapeMachine>) {
  const given = serve(machine.devices, inOrder(part), tasks, user);
  if (given === null) throw new LeftOpen();
  const { free } = machine;
  for (const device of machine.devices) {
    const took = given.get(device.id);
    device.used.shares += took?.shares ?? 0;
    device.used.memoryMb += took?.memoryMb ?? 0;
    if (took !== undefined) device.used.user ??= user;
  }
  if (free.places === null) free.cpus -= tasks * part.cpus;
  else full.add(machine);
  free.memoryMb -= tasks * memoryOf(part);
  if (part.exclusive === 'MACHINE') {
    machine.free = { cpus: 0, memoryMb: 0, places: free.places === null ? null : 0 };
    for (const device of machine.devices)
      device.used = { shares: device.shares, memoryMb: device.memoryMb, user };
  }
  machine.users.push(user);
  return [...given]
    .map(([device, took]) => ({ device, ...took }))
    .sort((a, b) => compareText(a.device, b.device));
}

// Holds in the future ---------------------------------------------------------------------------------------------------

type Amounts = Record<string, number>;
export interface HoldCase {
  now: number;
  machines: { id: string; total: Amounts }[];
  taken: {
    machine: string;
    by: 'RUN' | 'JOB' | 'HOLD';
    amounts: Amounts | null;
    from: number;
    to: number | null;
    latest: number | null;
  }[];
  request: {
    tasks: number;
    perTask: Amounts;
    limitS: number | null;
    p90S: number;
    notBefore: number | null;
  };
}

/** Second by second; times are whole. */
export function earliestHold({ now, machines, taken, request }: HoldCase) {
  const { tasks, perTask } = request;
  const limit = request.limitS ?? Infinity;
  /** From here on nothing changes. */
  const over = Math.max(
    now,
    request.notBefore ?? now,
    ...taken.flatMap(({ from, to, latest }) => [from, to ?? from, latest ?? from]),
  );
  /** The least that is free of a kind while a job would run from `t` on. */
  const least = (
    machine: HoldCase['machines'][number],
    kind: string,
    t: number,
    length: number,
    p90: number,
    end: 'to' | 'latest',
  ) => {
    const all = machine.total[kind] ?? 0;
    const entries = taken.filter((one) => one.machine === machine.id);
    const instants = [t, ...entries.map(({ from }) => from)].filter((x) => t <= x && x < t + length);
    const free = instants.map((x) => {
      const there = entries.filter(
        ({ by, from, ...one }) => from <= x && x < (one[end] ?? Infinity) && (by === 'HOLD' || x < t + p90),
      );
      return all - total(there.map(({ amounts }) => (amounts === null ? all : (amounts[kind] ?? 0))));
    });
    return Math.max(0, Math.min(...free));
  };
  const roomOf = (
    machine: HoldCase['machines'][number],
    ...at: [number, number, number, 'to' | 'latest']
  ): number =>
    Math.min(
      tasks,
      ...Object.entries(perTask).map(([kind, asked]) => times(least(machine, kind, ...at), asked)),
    );
  const fits = (...at: [number, number, number, 'to' | 'latest']): boolean =>
    total(machines.map((machine) => roomOf(machine, ...at))) >= tasks;
  const first = (length: number, p90: number, end: 'to' | 'latest'): number | null => {
    for (let t = Math.max(now, request.notBefore ?? now); t <= over; t++)
      if (fits(t, length, p90, end)) return t;
    return null;
  };
  const p90 = Math.min(request.p90S, limit);
  const startsAt = first(limit, p90, 'to');
  let fitsIfLimitS: number | null = null;
  if (startsAt !== now && (request.notBefore ?? now) <= now)
    for (let length = 1; length < limit && now + length <= over; length++)
      if (fits(now, length, Math.min(request.p90S, length), 'to')) fitsIfLimitS = length;
  const placement: { machine: string; tasks: number }[] = [];
  for (let left = startsAt === null ? 0 : tasks; left > 0; ) {
    const at: [number, number, number, 'to'] = [startsAt as number, limit, p90, 'to'];
    const open = machines
      .filter(({ id }) => !placed(placement, id))
      .map((machine) => {
        const gets = Math.min(left, roomOf(machine, ...at));
        const freeCpus = least(machine, 'cpus', ...at) - gets * (perTask.cpus ?? 0);
        return { machine: machine.id, tasks: gets, key: [-gets, freeCpus, machine.id] };
      })
      .sort((a, b) => compareLists(a.key, b.key));
    const best = open[0] as (typeof open)[number];
    placement.push({ machine: best.machine, tasks: best.tasks });
    left -= best.tasks;
  }
  return {
    startsAt,
    startsAtLatest: first(limit, limit, 'latest'),
    fitsIfLimitS,
    placement: startsAt === null ? null : placement.sort((a, b) => compareText(a.machine, b.machine)),
  };
}

const placed = (placement: { machine: string }[], id: string): boolean =>
  placement.some(({ machine }) => machine === id);

// Preemption (jobs.md) --------------------------------------------------------------------------------------------------

export interface PreemptCase {
  now: number;
  graceS: number;
  exemptS: number;
  winnerClass: number;
  winnerStartsAt: number | null;
  request: { tasks: number; perTask: Amounts };
  machines: { id: string; free: Amounts }[];
  candidates: {
    id: string;
    class: number;
    restartable: boolean;
    startedAt: number;
    limitEndsAt: number | null;
    checkpointAt: number | null;
    holds: { machine: string; amounts: Amounts }[];
  }[];
}
type Candidate = PreemptCase['candidates'][number];

export function preemptVictims(input: PreemptCase) {
  const { now, graceS, exemptS, winnerClass, winnerStartsAt, request, machines, candidates } = input;
  const lost = ({ holds: held, startedAt, checkpointAt }: Candidate): number =>
    total(held.map(({ amounts }) => amounts.cpus ?? 0)) *
    (now - Math.max(startedAt, checkpointAt ?? startedAt));
  const lostBy = (some: Candidate[]): number => total(some.map(lost));
  const why = (one: Candidate): string | null => {
    if (one.class >= winnerClass) return 'CLASS';
    if (!one.restartable) return 'NOT_RESTARTABLE';
    if (now - one.startedAt < exemptS) return 'RUNS_SHORT';
    return one.limitEndsAt !== null && one.limitEndsAt - now <= graceS ? 'ENDS_SOON' : null;
  };
  const exempt = candidates.filter((one) => why(one) !== null).map((one) => ({ id: one.id, why: why(one) }));
  const order = candidates
    .filter((one) => why(one) === null)
    .sort(
      (a, b) =>
        a.class - b.class || lost(a) - lost(b) || b.startedAt - a.startedAt || compareText(a.id, b.id),
    );
  const fits = (gone: Candidate[]): boolean => {
    const rooms = machines.map(({ id, free }) =>
      Math.min(
        request.tasks,
        ...Object.entries(request.perTask).map(([kind, asked]) => {
          const given = gone.flatMap(({ holds: held }) => held.filter(({ machine }) => machine === id));
          return times((free[kind] ?? 0) + total(given.map(({ amounts }) => amounts[kind] ?? 0)), asked);
        }),
      ),
    );
    return total(rooms) >= request.tasks;
  };
  const answer = (victims: Candidate[], startsAt: number | null, because: string | null) => ({
    victims: order.filter((one) => victims.includes(one)).map(({ id }) => id),
    lostWork: lostBy(victims),
    startsAt,
    because,
    exempt,
  });
  if (fits([])) return answer([], now, 'FITS');
  if (winnerStartsAt !== null && winnerStartsAt - (now + graceS) <= graceS)
    return answer([], null, 'NO_GAIN');
  const admitted = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    .map((ceiling) => order.filter((one) => one.class <= ceiling))
    .find(fits);
  if (admitted === undefined) return answer([], null, 'NOT_ENOUGH');
  if (admitted.length <= 12) {
    const positions = admitted.map((_, i) => i);
    const of = (set: number[]): Candidate[] => set.map((i) => admitted[i] as Candidate);
    const sets = positions
      .reduce<number[][]>((all, i) => all.concat(all.map((set) => set.concat(i))), [[]])
      .filter((set) => fits(of(set)));
    const key = (set: number[]): number[] => [lostBy(of(set)), set.length, ...set];
    const [best] = sets.map((set) => ({ set, key: key(set) })).sort((a, b) => compareLists(a.key, b.key));
    return answer(of((best as { set: number[] }).set), now + graceS, null);
  }
  let set = admitted.slice(0, admitted.findIndex((_, i) => fits(admitted.slice(0, i + 1))) + 1);
  const byLost = [...set].sort((a, b) => lost(b) - lost(a) || admitted.indexOf(b) - admitted.indexOf(a));
  for (const one of byLost) {
    const others = set.filter((other) => other !== one);
    if (fits(others)) set = others;
  }
  const [alone] = admitted.filter((one) => fits([one])).sort((a, b) => lost(a) - lost(b));
  if (alone !== undefined && lost(alone) <= lostBy(set)) set = [alone];
  return answer(set, now + graceS, null);
}

/** Each rule by its name in the vectors. */
export const RESOURCE_RULES: Record<string, (input: never) => unknown> = {
  constraint,
  place_shape: placeShape,
  earliest_hold: earliestHold,
  preempt_victims: preemptVictims,
};
