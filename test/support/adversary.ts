/** Operations made at random over a whole schema, and values at and beyond what is accepted: what an ill-disposed user would send. */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import type { RandomStream } from '../../src/core/index.js';

export interface Operation {
  query: string;
  variables: Record<string, unknown>;
}

const DEEP = 10;
const nested = (levels: number): unknown => (levels === 0 ? 'x' : { a: [nested(levels - 1)] });

/** Of each scalar: ordinary values, the bounds of this service and of its parts, and what lies beyond. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  Int: [
    1,
    0,
    -1,
    2,
    100,
    1_000,
    1_001,
    10_000,
    100_000,
    100_001,
    1_000_000,
    2_147_483_647,
    -2_147_483_648,
    2_147_483_648,
    1.5,
    '1',
  ],
  Float: [
    1,
    0,
    -1,
    -0,
    0.001,
    0.000999,
    0.5,
    100,
    1e6,
    1_000_001,
    1e9,
    1e12,
    1.1e12,
    1e13,
    2 ** 53,
    5e-324,
    1e-300,
    1e300,
    Number.MAX_VALUE,
    '1',
  ],
  String: [
    'x',
    '',
    '/bin/true',
    'a'.repeat(64),
    'a'.repeat(65),
    'b'.repeat(200),
    'b'.repeat(201),
    'c'.repeat(1_001),
    '/'.repeat(4_096),
    'd'.repeat(131_072),
    'd'.repeat(131_073),
    '\0',
    '\ud800',
    '\u202e',
    '\x1b[2J',
    '😀'.repeat(100),
    `'; DROP TABLE jobs; --`,
    '%',
    '\\',
    '{{index}}',
    '__proto__',
    '../../etc/passwd',
  ],
  DateTime: [
    '1970-01-01T00:00:00Z',
    '1969-12-31T23:59:59Z',
    '9999-12-31T23:59:59.999Z',
    '9999-12-31T23:59:59-01:00',
    '2026-02-30T00:00:00Z',
    '2040-01-01T00:00:00+14:00',
    '+275760-09-13T00:00:00Z',
    '-000001-01-01T00:00:00Z',
    '2040-01-01',
    '24:00',
    1e15,
  ],
  Boolean: [true, false, 'true'],
  JSON: [
    {},
    [],
    null,
    'x',
    1e308,
    nested(3),
    nested(40),
    Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, i])),
    { ['__proto__']: 1 },
    { kind: 'fcfs' },
  ],
};
const BAD_IDS = [
  '',
  'job_',
  'job_0',
  'job_-1',
  'job_1e3',
  'job_9007199254740993',
  'job_99999999999999999999',
  'site_2147483648',
  'x'.repeat(1_000),
  'job_1\0',
  '💣',
];
/** How many are in a list. */
const LENGTHS = [1, 1, 1, 2, 0, 3, 20, 101];

export class Adversary {
  private variables: Record<string, unknown> = {};
  private declared: string[] = [];
  private size = 0;

  /** @param ids of objects, others' among them */
  constructor(
    private readonly schema: GraphQLSchema,
    private readonly random: RandomStream,
    private readonly ids: readonly string[],
  ) {}

  query(): Operation {
    return this.operation('query', this.schema.getQueryType()!);
  }

  mutation(): Operation {
    return this.operation('mutation', this.schema.getMutationType()!);
  }

  /** An operation with this field of Query or Mutation, and these of its arguments as they are given. */
  of(
    kind: 'query' | 'mutation',
    field: GraphQLField<unknown, unknown>,
    given: Record<string, unknown>,
    levels: number,
  ): Operation {
    this.begin();
    const text = this.field(field, levels, given, true);
    return this.end(kind, text);
  }

  /** A value for a type, ordinary or not. */
  value(type: GraphQLInputType, levels = 4): unknown {
    if (isNonNullType(type)) return this.value(type.ofType, levels);
    if (isListType(type)) {
      const length = this.pick(LENGTHS);
      // A long list is of one value: what matters is its length.
      const one = this.value(type.ofType, levels - 1);
      return Array.from({ length }, (_, i) => (i < 3 ? this.value(type.ofType, levels - 1) : one));
    }
    if (isInputObjectType(type)) {
      const entries = Object.values(type.getFields()).flatMap(({ name, type: of, defaultValue }) => {
        const required = isNonNullType(of) && defaultValue === undefined;
        // Mostly few at a time, so that some get through.
        return required || this.chance(levels > 0 ? 0.12 : 0)
          ? [[name, required ? this.plain(of) : this.value(of, levels - 1)]]
          : [];
      });
      return Object.fromEntries(entries);
    }
    if (isEnumType(type)) return this.pick(type.getValues()).name;
    if (type.name === 'ID') return this.chance(0.8) ? this.pick(this.ids) : this.pick(BAD_IDS);
    return this.pick(VALUES[type.name] as readonly unknown[]);
  }

  /** All values of a type, for one after another. */
  all(type: GraphQLInputType): unknown[] {
    const inner = getNullableType(type);
    if (isListType(inner))
      return [
        [],
        null,
        ...this.all(inner.ofType).map((one) => [one]),
        Array(101).fill(this.plain(inner.ofType)),
      ];
    if (isInputObjectType(inner)) {
      const plain = this.plain(inner) as object;
      return [
        {},
        ...Object.values(inner.getFields()).flatMap(({ name, type: of }) =>
          this.all(of).map((one) => ({ ...plain, [name]: one })),
        ),
      ];
    }
    if (isEnumType(inner)) return [...inner.getValues().map(({ name }) => name), 'NONE', null];
    if (inner.name === 'ID') return [...this.ids, ...BAD_IDS, null];
    return [...(VALUES[inner.name] as readonly unknown[]), null];
  }

  /** A value that is mostly accepted. */
  plain(type: GraphQLInputType): unknown {
    const inner = getNullableType(type);
    if (isListType(inner)) return [this.plain(inner.ofType)];
    if (isInputObjectType(inner)) {
      const required = Object.values(inner.getFields()).filter(
        (one) => isNonNullType(one.type) && one.defaultValue === undefined,
      );
      return Object.fromEntries(
        required.map((one) => [
          one.name,
          one.name === 'command'
            ? '/bin/true'
            : this.chance(0.8)
              ? this.plain(one.type)
              : this.value(one.type, 1),
        ]),
      );
    }
    if (isEnumType(inner)) return this.pick(inner.getValues()).name;
    if (inner.name === 'ID') return this.pick(this.ids);
    return (VALUES[inner.name] as readonly unknown[])[0];
  }

  private operation(kind: 'query' | 'mutation', root: GraphQLNamedType): Operation {
    this.begin();
    const fields = Object.values(isObjectType(root) ? root.getFields() : {});
    const count = this.chance(0.8) ? 1 : this.random.integer(2, 20);
    const text = Array.from(
      { length: count },
      (_, i) => `a${i}: ${this.field(this.pick(fields), this.random.integer(1, DEEP), {}, false)}`,
    ).join(' ');
    return this.end(kind, text);
  }

  private begin(): void {
    this.variables = {};
    this.declared = [];
    this.size = 0;
  }

  private end(kind: string, text: string): Operation {
    const declared = this.declared.length === 0 ? '' : `(${this.declared.join(', ')})`;
    return { query: `${kind} ${declared} { ${text} }`, variables: this.variables };
  }

  private field(
    { name, args, type }: GraphQLField<unknown, unknown>,
    levels: number,
    given: Record<string, unknown>,
    everything: boolean,
  ): string {
    this.size++;
    const passed = args.flatMap((argument) => {
      if (argument.name in given) return [this.argument(argument, given[argument.name])];
      const required = isNonNullType(argument.type) && argument.defaultValue === undefined;
      if (everything) return required ? [this.argument(argument, this.plain(argument.type))] : [];
      return required || this.chance(0.3) ? [this.argument(argument, this.value(argument.type))] : [];
    });
    return `${name}${passed.length > 0 ? `(${passed.join(', ')})` : ''}${this.selections(type, levels, everything)}`;
  }

  private argument({ name, type }: GraphQLArgument, value: unknown): string {
    const variable = `v${this.declared.length}`;
    this.declared.push(`$${variable}: ${type}`);
    this.variables[variable] = value;
    return `${name}: $${variable}`;
  }

  private selections(type: GraphQLOutputType, levels: number, everything: boolean): string {
    const named = getNamedType(type);
    if (!isCompositeType(named)) return '';
    if (isAbstractType(named)) {
      const parts = this.schema
        .getPossibleTypes(named)
        .map((one) => `... on ${one.name} ${this.selections(one, levels, everything)}`);
      return ` { __typename ${everything ? parts.join(' ') : this.pick(parts)} }`;
    }
    const fields = Object.values(named.getFields());
    const leaves = fields.filter(
      (one) =>
        isLeafType(getNamedType(one.type)) &&
        !one.args.some((a) => isNonNullType(a.type) && a.defaultValue === undefined),
    );
    const others = fields.filter((one) => isCompositeType(getNamedType(one.type)));
    // What holds a list only leads to it.
    const holds = /(Connection|Edge|Payload)$/.test(named.name);
    const deeper =
      levels > 0 && this.size < 400
        ? everything
          ? others
          : this.weighted(others, this.random.integer(1, 2))
        : [];
    const chosen = everything || this.chance(0.2) ? leaves : this.weighted(leaves, 2);
    const text = [
      '__typename',
      ...chosen.map((one) => one.name),
      ...deeper.map(
        (one, i) =>
          `${everything ? '' : `b${i}: `}${this.field(one, levels - (holds ? 0.5 : 1), {}, everything)}`,
      ),
    ];
    return ` { ${text.join(' ')} }`;
  }

  /** Some of the fields, lists before others: they are what makes answers large. */
  private weighted(
    fields: GraphQLField<unknown, unknown>[],
    count: number,
  ): GraphQLField<unknown, unknown>[] {
    if (fields.length === 0) return [];
    const many = fields.filter(
      (one) => isListType(getNullableType(one.type)) || /Connection$/.test(getNamedType(one.type).name),
    );
    return Array.from({ length: count }, () =>
      this.pick(many.length > 0 && this.chance(0.7) ? many : fields),
    );
  }

  private pick<T>(list: readonly T[]): T {
    return list[this.random.integer(0, list.length - 1)] as T;
  }

  private chance(of: number): boolean {
    return this.random.next() < of;
  }
}
