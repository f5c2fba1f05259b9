import { readFileSync } from 'node:fs';
import {
  buildSchema,
  execute,
  type GraphQLEnumType,
  getDirectiveValues,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  parse,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { resolvers } from '../../src/api/resolvers/index.js';
import { createSchema, SCHEMA_FILE } from '../../src/api/schema.js';
import { rules } from '../../src/api/services/access.js';
import { ReasonCode, reasonSentence } from '../../src/core/reasons.js';
import { endCauses, jobStates } from '../../src/core/states.js';
import { DEFAULT_LIMITS, FIXED_LIMITS, LIMIT_VARIABLES, MAX, shownLimit } from '../../src/platform/limits.js';
import { turns } from '../../src/platform/turns.js';
import { UNMEASURED, usageAmounts } from '../../src/store/usage.js';

const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const types = Object.values(schema.getTypeMap()).filter((type) => !type.name.startsWith('__'));

/** Of a type, `Type.field` or `Type.field.argument`. Throws where there is none. */
function descriptionOf(place: string): string {
  const [typeName, fieldName, argumentName] = place.split('.') as [string, string?, string?];
  const type = schema.getType(typeName);
  const field =
    fieldName !== undefined && (isObjectType(type) || isInputObjectType(type))
      ? type.getFields()[fieldName]
      : undefined;
  const argument =
    field && 'args' in field ? field.args.find(({ name }) => name === argumentName) : undefined;
  const description = (argumentName ? argument : fieldName ? field : type)?.description;
  if (!description) throw new Error(`schema.graphql has no ${place}`);
  return description.replace(/\s+/g, ' ');
}

describe('the schema', () => {
  test('describes every type, field, argument and value', () => {
    const silent: string[] = [];
    const builtIn = new Set(['ID', 'String', 'Int', 'Float', 'Boolean']);
    for (const type of types) {
      const rootType = type === schema.getQueryType();
      if (!type.description && !(isScalarType(type) && builtIn.has(type.name)) && !rootType)
        silent.push(type.name);
      if (isEnumType(type))
        silent.push(
          ...type
            .getValues()
            .filter((v) => !v.description)
            .map((v) => `${type.name}.${v.name}`),
        );
      if (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type)) {
        for (const field of Object.values(type.getFields())) {
          if (!field.description) silent.push(`${type.name}.${field.name}`);
          if (!('args' in field)) continue;
          for (const argument of field.args) {
            if (!argument.description) silent.push(`${type.name}.${field.name}(${argument.name})`);
          }
        }
      }
    }
    expect(silent).toEqual([]);
  });

  test('states the limits where the table says that it does, and the size of pages everywhere', () => {
    const settable = Object.values(LIMIT_VARIABLES).map((one) => ({ ...one, max: Number(one.default) }));
    const measured = Object.entries(usageAmounts).map(([field, { max }]) => {
      return { max: MAX[max], stated: [`RunReportInput.${field}`] };
    });
    const missing = [...settable, ...Object.values(FIXED_LIMITS), ...measured].flatMap(({ max, stated }) => {
      const shown = shownLimit(max).replace('^', '\\^');
      const pattern = new RegExp(`(?<![\\d^])${shown}(?!\\d| \\d{3})`);
      return stated.filter((place) => !pattern.test(descriptionOf(place))).map((place) => `${place}: ${max}`);
    });
    expect(missing).toEqual([]);
    const pages = types
      .filter(isObjectType)
      .flatMap((type) =>
        Object.values(type.getFields()).flatMap(({ name, args }) =>
          args
            .filter((argument) => argument.name === 'first' || argument.name === 'last')
            .map((argument) => `${type.name}.${name}.${argument.name}`),
        ),
      );
    expect(pages.length).toBeGreaterThan(10);
    const max = shownLimit(DEFAULT_LIMITS.pageMax);
    expect(pages.filter((place) => !descriptionOf(place).includes(`at most ${max}`))).toEqual([]);
  });

  test('has the states and causes of the core', () => {
    const values = (name: string): string[] =>
      (schema.getType(name) as GraphQLEnumType).getValues().map((v) => v.name);
    expect(values('JobState').sort()).toEqual([...jobStates].sort());
    expect(values('EndCause').sort()).toEqual([...endCauses].sort());
  });

  test('has the reasons of the core, each with its sentence and the names of its numbers', () => {
    const asked = { gpuPerTask: '`gpuPerTask`' } as object as Readonly<Record<string, number>>;
    // A sentence shows what it is given.
    const names = new Proxy(asked, {
      get: (_, name) => (name === 'part' ? undefined : `\`${String(name)}\``),
    });
    const told = (schema.getType('ReasonCode') as GraphQLEnumType)
      .getValues()
      .map(({ name, description }) => [name, description]);
    const given = Object.values(ReasonCode).map((code) => [code, reasonSentence(code, names)]);
    expect(told.slice(0, -1)).toEqual(given);
    expect(told.at(-1)?.[0]).toBe('EARLIER_RELEASE');
    expect(Object.keys(ReasonCode)).not.toContain('EARLIER_RELEASE');
  });

  test('has what is measured of runs in reports, runs and tasks', () => {
    for (const name of ['RunReportInput', 'Run']) {
      const type = schema.getType(name);
      if (!isObjectType(type) && !isInputObjectType(type)) throw new Error(`${name} is no type with fields`);
      const measured = Object.values(type.getFields()).filter(
        ({ name, type }) => ['Float', 'MeasurementMethod'].includes(String(type)) && name !== 'runTimeLimitS',
      );
      expect(new Set(measured.map(({ name }) => name))).toEqual(new Set(Object.keys(UNMEASURED)));
    }
  });

  test('has a rule for each field of Query, Mutation and Subscription, and no other', () => {
    const fields = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap(
      (type) => Object.keys(type?.getFields() ?? {}),
    );
    expect(Object.keys(rules).sort()).toEqual(fields.sort());
    expect(new Set(fields).size).toBe(fields.length);
  });

  test('marks for agents and peers what only they may use, and nothing else', () => {
    const directive = schema.getDirective('audience')!;
    const wrong = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap(
      (type) =>
        Object.values(type?.getFields() ?? {}).flatMap(({ name, astNode }) => {
          const marked = getDirectiveValues(directive, astNode!)?.of ?? ['PORTALS'];
          const roles = rules[name as keyof typeof rules];
          const isOfPeople = roles.some((role) => role === 'USER' || role === 'OPERATOR' || role === 'ADMIN');
          const meant = isOfPeople ? ['PORTALS'] : roles.map((role) => `${role}S`);
          return String(marked) === String(meant) ? [] : [`${name}: ${marked}, not ${meant}`];
        }),
    );
    expect(wrong).toEqual([]);
  });

  test('takes no resolver for what it does not have', () => {
    expect(() => createSchema({ Job: { color: () => 'red' } })).toThrow(/Job\.color/);
    expect(() => createSchema({ Planet: {} })).toThrow(/Planet/);
    expect(createSchema(resolvers).getQueryType()?.getFields().jobs?.resolve).toBeTypeOf('function');
  });

  test('makes an answer of a long list in many turns, in its order', async () => {
    const nodes = Array.from({ length: 2_000 }, (_, i) => ({ id: `job_${i}` }));
    const schema = createSchema({ Query: { jobs: () => ({ nodes }) } });
    const budget = { objects: () => {}, characters: () => {} };
    await turns.turn({ name: 'asks for much', rank: 'people' });
    let isOver = false;
    const answer = Promise.resolve(
      execute({ schema, document: parse('{ jobs { nodes { id } } }'), contextValue: { budget } }),
    ).finally(() => {
      isOver = true;
    });
    let others = 0;
    for (; !isOver; others++) await turns.turn({ name: 'asks for little', rank: 'people' });
    expect(others).toBeGreaterThanOrEqual(10);
    expect(await answer).toEqual({ data: { jobs: { nodes } } });
  });
});
