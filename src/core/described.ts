/**
 * What a policy document may say, from the schemas that check it: each field with its bounds, and with the words that its `meta` has for
 * people. Forms and documents are made of this, so that they accept and tell what the schemas do.
 */
import { z } from 'zod';

/** NUMBERS: an object of numbers by name. TEXTS: a list of texts. TABLE: an object of objects by name, each of which has `fields`. */
export type FieldType = 'NUMBER' | 'INTEGER' | 'BOOLEAN' | 'CHOICE' | 'NUMBERS' | 'TEXTS' | 'TABLE';

export interface DescribedField {
  /** Names with dots, from the document of the kind. */
  path: string;
  label: string;
  about: string;
  /** Such as `s`; null: none. */
  unit: string | null;
  type: FieldType;
  /** Of numbers, and of each of NUMBERS; null: the type has none. */
  min: number | null;
  max: number | null;
  /** The bound itself is not accepted, but all within it. */
  isAboveMin: boolean;
  isBelowMax: boolean;
  /** Of a CHOICE, its values; of NUMBERS, their names, null where any name is accepted; of TEXTS, the texts, null where any is. */
  options: string[] | null;
  /** Of each object of a TABLE; null: it is none. */
  fields: DescribedField[] | null;
  /** Null is accepted. */
  isNullable: boolean;
  /** It may be left out, and is not filled in then. */
  isOptional: boolean;
  /** What it is in a document that somebody begins with; null: it is left out there, or null. */
  initial: unknown;
}

/** What a term or number of a decision is. */
export interface DescribedTerm {
  name: string;
  label: string;
  about?: string;
  unit?: TermUnit;
  /** Which value the policy prefers. */
  better?: 'LOW' | 'HIGH';
}
/** AT: epoch seconds. SHARE: from 0 to 1. JOB: a job's number. */
export type TermUnit = 'S' | 'JOBS' | 'CPUS' | 'SHARE' | 'AT' | 'MB' | 'JOB';
/** By name. */
export type TermWords = Readonly<Record<string, Omit<DescribedTerm, 'name'>>>;

export const termsOf = (words: TermWords): DescribedTerm[] =>
  Object.entries(words).map(([name, term]) => ({ name, ...term }));

/** JSON Schema, as far as zod writes it of policy documents. */
interface Json {
  type?: string;
  title?: string;
  description?: string;
  unit?: string;
  const?: unknown;
  enum?: string[];
  anyOf?: Json[];
  properties?: Record<string, Json>;
  required?: string[];
  additionalProperties?: Json | boolean;
  items?: Json;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  default?: unknown;
}

/** The fields of an object's schema; `initial` is a document that it accepts. What only tells its kind is none of them. */
export function fieldsOf(schema: z.ZodType, initial: unknown): DescribedField[] {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Json;
  return properties(json, '', initial);
}

function properties(
  { properties: of = {}, required = [] }: Json,
  prefix: string,
  initial: unknown,
): DescribedField[] {
  return Object.entries(of).flatMap(([name, given]): DescribedField[] => {
    if (given.const !== undefined) return [];
    const value = (initial as Record<string, unknown> | null | undefined)?.[name] ?? given.default ?? null;
    const path = prefix + name;
    const one = given.anyOf?.find(({ type }) => type !== 'null') ?? given;
    const isNullable = given.anyOf?.some(({ type }) => type === 'null') ?? false;
    if (one.properties && !isNullable) return properties(one, `${path}.`, value);
    const isOptional = !required.includes(name) && given.default === undefined;
    const label = given.title ?? one.title ?? name;
    const about = given.description ?? one.description ?? '';
    const unit = given.unit ?? one.unit ?? null;
    return [{ path, label, about, unit, ...valuesOf(one, path), isNullable, isOptional, initial: value }];
  });
}

type Values = Pick<
  DescribedField,
  'type' | 'min' | 'max' | 'isAboveMin' | 'isBelowMax' | 'options' | 'fields'
>;
const NONE = { min: null, max: null, isAboveMin: false, isBelowMax: false, options: null, fields: null };

function valuesOf(json: Json, path: string): Values {
  const { type, exclusiveMinimum, exclusiveMaximum, additionalProperties } = json;
  if (type === 'boolean') return { ...NONE, type: 'BOOLEAN' };
  if (json.enum) return { ...NONE, type: 'CHOICE', options: json.enum };
  if (type === 'number' || type === 'integer')
    return {
      ...NONE,
      type: type === 'number' ? 'NUMBER' : 'INTEGER',
      min: exclusiveMinimum ?? json.minimum ?? null,
      max: exclusiveMaximum ?? json.maximum ?? null,
      isAboveMin: exclusiveMinimum !== undefined,
      isBelowMax: exclusiveMaximum !== undefined,
    };
  if (type === 'array' && json.items?.type === 'string')
    return { ...NONE, type: 'TEXTS', options: json.items.enum ?? null };
  if (type === 'object' && typeof additionalProperties === 'object' && additionalProperties.properties)
    return { ...NONE, type: 'TABLE', fields: properties(additionalProperties, '', null) };
  const [each] = json.properties ? Object.values(json.properties) : [additionalProperties];
  if (type === 'object' && typeof each === 'object') {
    const options = json.properties ? Object.keys(json.properties) : null;
    return { ...valuesOf(each, path), type: 'NUMBERS', options };
  }
  throw new Error(`${path}: no way is known to describe ${JSON.stringify(json)}`);
}
