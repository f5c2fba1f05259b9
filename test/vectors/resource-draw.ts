/** Inputs for the rules of resource-rules.ts. */
import type { Draws } from './draws.js';
import {
  type ConstraintCase,
  type HoldCase,
  LeftOpen,
  type PreemptCase,
  placeShape,
  type ShapeCase,
} from './resource-rules.js';

const NUMBERS = ['9', '09', '9.0', '10', '-1', '-0', '0.50', '9007199254740993', '9007199254740992'];
const LABELS = ['gen', 'rack', 'os', 'old', 'constructor'];

function expressionOf(draw: Draws): string {
  const space = () => draw.of(['', ' ', ' ', '\t', '\n']);
  const value = () =>
    draw.of([
      ...NUMBERS,
      ...['debian-12', 'a/b', '1e1', '_x', '"9"', '"in"', '""', '"a \\"b\\\\"', '"not old"'],
    ]);
  const test = (): string => {
    const label = draw.of(LABELS);
    if (draw.chance(0.2)) return label;
    if (draw.chance(0.2))
      return `${label} in${space()}(${draw.list(3, value, 1).join(`${space()},${space()}`)})`;
    return `${label}${space()}${draw.of(['=', '!=', '<', '<=', '>', '>='])}${space()}${value()}`;
  };
  const made = (depth: number): string => {
    if (depth === 0 || draw.chance(0.3)) return test();
    return draw.of([
      () => `not ${made(depth - 1)}`,
      () => `!${space()}${made(depth - 1)}`,
      () => `(${space()}${made(depth - 1)}${space()})`,
      () => `${made(depth - 1)} ${draw.of(['and', 'or', '&', '|'])} ${made(depth - 1)}`,
    ])();
  };
  const whole = made(draw.integer(0, 4));
  // Cut off, with a character that does not belong there, or at the limits of what is read.
  if (draw.chance(0.1)) return whole.slice(0, draw.integer(0, whole.length));
  if (draw.chance(0.25)) {
    const at = draw.integer(0, whole.length);
    const wrong = draw.of([
      ...['"', '\\', '*', '=', '(', ')', ',', '-', '.', 'and', ' in ', ' not ', '&', '#', 'é', '\u00a0'],
    ]);
    return whole.slice(0, at) + wrong + whole.slice(draw.chance(0.5) ? at : at + 1);
  }
  if (draw.chance(0.1)) {
    const deep = draw.integer(62, 66);
    const opened = Array.from({ length: deep }, () => draw.of(['(', '!', 'not ']));
    const closed = opened.filter((one) => one === '(').map(() => ')');
    return opened.join('') + (draw.chance(0.8) ? whole : '') + closed.join('');
  }
  return draw.chance(0.05) ? whole.padEnd(draw.of([4096, 4097])) : whole;
}

function shapeOf(draw: Draws): ShapeCase {
  const users = ['u1', 'u2'];
  const withDevices = draw.chance(0.6);
  const device = (id: string): ShapeCase['machines'][number]['devices'][number] => {
    const shares = draw.of([4, 4, 7]);
    const memoryMb = draw.of([40_000, 40_000, 80_000]);
    const taken = draw.chance(0.4) ? draw.integer(1, shares) : 0;
    return {
      id,
      kind: draw.of(['gpu', 'gpu', 'gpu', 'fpga']),
      model: draw.of(['a100', 'a100', 'h100', null]),
      memoryMb,
      shares,
      link: draw.of(['n0', 'n1', 'n2', null]),
      oneUser: draw.chance(0.2),
      used: {
        shares: taken,
        memoryMb: Math.floor((memoryMb * taken) / shares),
        user: taken === 0 ? null : draw.of(users),
      },
    };
  };
  const machine = (id: string): ShapeCase['machines'][number] => {
    const total = {
      cpus: draw.of([4, 8, 8, 16]),
      memoryMb: draw.of([8000, 16_000, 64_000]),
      places: draw.chance(0.15) ? draw.of([2, 4]) : null,
    };
    const running = draw.chance(0.5) ? draw.some(users, 0.6) : [];
    return {
      id,
      labels: {
        ...(draw.chance(0.8) && { switch: draw.of(['s1', 's2']) }),
        ...(draw.chance(0.6) && { gen: draw.of(['9', '10']) }),
      },
      total,
      free: {
        cpus: total.places !== null ? total.cpus : total.cpus - (running.length > 0 ? draw.integer(0, 4) : 0),
        memoryMb: draw.of([total.memoryMb, 8000, 4000]),
        places: total.places === null ? null : draw.integer(0, total.places),
      },
      users: running,
      onlyUser: draw.chance(0.1) ? draw.of(users) : null,
      devices: withDevices ? draw.shuffled(draw.list(6, (i) => device(`d${i}`))) : [],
    };
  };
  const share = () => {
    const of = draw.of([2, 4, 4, 7]);
    return { parts: draw.integer(1, of - 1), of };
  };
  const asked = (): ShapeCase['parts'][number]['devices'][number] => ({
    kind: draw.of(['gpu', 'gpu', 'gpu', 'fpga']),
    count: draw.of([1, 1, 2, 3]),
    model: draw.of([null, null, 'a100']),
    minMemoryMb: draw.of([null, null, 15_000, 50_000]),
    share: draw.chance(0.5) ? share() : null,
  });
  const part = (): ShapeCase['parts'][number] => {
    const devices = withDevices ? draw.list(2, asked) : [];
    const tasks = devices.length > 0 ? draw.integer(1, 4) : draw.integer(1, 16);
    const min = draw.chance(0.3) ? draw.integer(1, tasks) : 1;
    return {
      tasks,
      cpus: draw.of([0, 1, 1, 2, 4]),
      memoryMb: draw.of([0, 0, 1000, 3000]),
      memoryMbPerCpu: draw.of([0, 0, 500, 2000]),
      devices,
      tasksPerMachine: { min, max: draw.chance(0.3) ? draw.integer(min, tasks) : null },
      exclusive: draw.of(['NONE', 'NONE', 'NONE', 'MACHINE', 'USER']),
      where: draw.chance(0.15) ? draw.of(['gen >= 10', 'not gen = 9', 'switch in (s1)']) : null,
      allAlike: draw.chance(0.25) ? draw.of([['switch'], ['gen'], ['switch', 'gen']]) : [],
    };
  };
  const licenses = { matlab: draw.integer(0, 2), ansys: draw.integer(0, 1) };
  return {
    user: 'u1',
    machines: draw.shuffled(draw.list(5, (i) => machine(`m${i}`), draw.chance(0.05) ? 0 : 1)),
    parts: draw.list(draw.of([1, 3]), part, 1),
    licenses: draw.chance(0.2) ? licenses : {},
    freeLicenses: draw.chance(0.5) ? { matlab: draw.integer(0, 2) } : {},
  };
}

function holdOf(draw: Draws): HoldCase {
  const now = draw.of([0, 9, 40]);
  const machines = draw.list(
    3,
    (i) => ({
      id: `m${i}`,
      total: { cpus: draw.of([4, 8, 10]), memoryMb: draw.of([8000, 16_000]), disk: 2 },
    }),
    1,
  );
  const entry = (): HoldCase['taken'][number] => {
    const by = draw.of(['RUN', 'JOB', 'HOLD', 'HOLD'] as const);
    const from = by === 'RUN' ? now - draw.of([0, 5]) : now + draw.of([0, 5, 10, 20, 60]);
    const length = draw.of([1, 5, 10, 20, 50]);
    const endless = draw.chance(0.1);
    const to = endless ? null : Math.max(from, now) + length;
    const latest = to === null || draw.chance(0.1) ? null : to + draw.of([0, 0, 5, 90]);
    const whole = by === 'HOLD' && draw.chance(0.3);
    const amounts = {
      cpus: draw.of([1, 2, 4, 8]),
      memoryMb: draw.of([0, 4000]),
      disk: draw.of([0, 0, 1]),
    };
    return {
      machine: draw.of(machines).id,
      by,
      amounts: whole ? null : amounts,
      from,
      to,
      latest: by === 'HOLD' ? to : latest,
    };
  };
  return {
    now,
    machines,
    taken: draw.list(6, entry),
    request: {
      tasks: draw.of([1, 1, 2, 4]),
      perTask: {
        cpus: draw.of([1, 2, 4, 5, 6]),
        memoryMb: draw.of([0, 0, 4000]),
        disk: draw.of([0, 0, 0, 1]),
      },
      limitS: draw.of([null, 5, 11, 30, 70]),
      p90S: draw.of([1, 5, 10, 12, 70]),
      notBefore: draw.of([null, null, null, now - 1, now, now + 6]),
    },
  };
}

export const RESOURCE_INPUTS: Record<string, (draw: Draws) => unknown> = {
  constraint: (draw): ConstraintCase => ({
    expression: expressionOf(draw),
    machines: draw.list(4, (i) => ({
      id: `m${i}`,
      labels: Object.fromEntries(
        draw
          .some(LABELS, 0.6)
          .map((label) => [label, draw.of([...NUMBERS, '', '1e1', 'debian-12', 'a "b\\', 'in', ' 9'])]),
      ),
    })),
  }),

  place_shape: (draw): ShapeCase => {
    for (;;) {
      const drawn = shapeOf(draw);
      try {
        // Most of what is drawn at random does not fit.
        if ('parts' in placeShape(drawn) || draw.chance(0.3)) return drawn;
      } catch (error) {
        if (!(error instanceof LeftOpen)) throw error;
      }
    }
  },

  earliest_hold: holdOf,

  preempt_victims: (draw): PreemptCase => {
    const now = 10_000;
    const graceS = draw.of([0, 30, 60]);
    const machines = draw.list(
      3,
      (i) => ({
        id: `m${i}`,
        free: { cpus: draw.integer(-2, 3), memoryMb: draw.of([0, 1000, 8000]), gpus: draw.of([0, 1]) },
      }),
      draw.chance(0.05) ? 0 : 1,
    );
    const candidate = (i: number): PreemptCase['candidates'][number] => ({
      id: `v${String(i).padStart(2, '0')}`,
      class: draw.of([0, 0, 0, 1, 1, 2, 3]),
      restartable: draw.chance(0.95),
      startedAt: draw.of([6000, 8500, 9000, 9300, 9400, 9401]),
      limitEndsAt: draw.of([null, null, 13_600, now + graceS, now + graceS + 1]),
      checkpointAt: draw.of([null, null, 9400, 9900, now]),
      holds: draw.some(machines, 0.8).map(({ id }) => ({
        machine: id,
        amounts: {
          cpus: draw.of([1, 2, 4, 8]),
          memoryMb: draw.of([0, 1000, 4000]),
          gpus: draw.of([0, 0, 1]),
        },
      })),
    });
    return {
      now,
      graceS,
      exemptS: draw.of([0, 0, 600]),
      winnerClass: draw.of([1, 3, 4]),
      winnerStartsAt: draw.of([null, null, null, null, now + 2 * graceS, now + 2 * graceS + 1, now + 5000]),
      request: {
        tasks: draw.of([1, 2, 3, 4]),
        perTask: {
          cpus: draw.of([0, 2, 4, 6, 8]),
          memoryMb: draw.of([0, 0, 3000]),
          gpus: draw.of([0, 0, 1]),
        },
      },
      machines,
      candidates: draw.shuffled(draw.list(draw.of([8, 20]), candidate, 3)),
    };
  },
};
