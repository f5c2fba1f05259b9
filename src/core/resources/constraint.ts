/**
 * Expressions over the labels of machines (resources.md, "Constraint expressions"). A label has a text, perhaps an empty one; two
 * values and no third, because the labels of a machine are complete facts.
 */

export type Labels = Readonly<Record<string, string>>;

/** An expression that is not one. `at`: where, in code units from 0; the length: at its end. */
export class ConstraintError extends Error {
  override readonly name = 'ConstraintError';
  constructor(
    readonly code: 'SYNTAX' | 'TOO_LONG' | 'TOO_DEEP',
    readonly at: number,
    accepted: string,
  ) {
    super(`${code} at position ${at}; accepted: ${accepted}`);
  }
}

export const MAX_CONSTRAINT_CHARS = 4096;
/** `not`s and parentheses inside one another. */
const MAX_DEPTH = 64;

type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=';
interface Value {
  readonly text: string;
  /** A quoted value is text, whatever it looks like. */
  readonly quoted: boolean;
}
export type Constraint =
  | { readonly is: 'OR' | 'AND'; readonly of: readonly Constraint[] }
  | { readonly is: 'NOT'; readonly of: Constraint }
  | { readonly is: 'HAS'; readonly label: string }
  | { readonly is: 'COMPARED'; readonly label: string; readonly operator: Operator; readonly value: Value }
  | { readonly is: 'IN'; readonly label: string; readonly values: readonly Value[] };

/** Throws a ConstraintError. */
export function parseConstraint(text: string): Constraint {
  if (text.length > MAX_CONSTRAINT_CHARS)
    throw new ConstraintError('TOO_LONG', MAX_CONSTRAINT_CHARS, `at most ${MAX_CONSTRAINT_CHARS} characters`);
  return new Parser(wordsOf(text), text.length, MAX_DEPTH).whole();
}

/** A label of machines whose agents run images; its text says by what. */
export const CONTAINERS = 'containers';

/** A label of machines whose agents give jobs a terminal. */
export const TERMINAL = 'terminal';

/** What the labels of a job's machines must be: as it asks and, for an image, that they run images; null: anything. */
export const labelsAskedBy = (job: {
  machineConstraint: string | null;
  image: string | null;
}): string | null => {
  const { machineConstraint: own, image } = job;
  if (image === null) return own;
  return own === null ? CONTAINERS : `${CONTAINERS} and (${own})`;
};

/** Of `labelsAskedBy`, whose parts that people wrote have been accepted: with what stands before them, it may be longer and deeper. */
export const parseAsked = (text: string): Constraint =>
  new Parser(wordsOf(text), text.length, MAX_DEPTH + 3).whole();

/** Whether a machine with these labels satisfies it. */
export function satisfies(labels: Labels, constraint: Constraint): boolean {
  switch (constraint.is) {
    case 'OR':
      return constraint.of.some((one) => satisfies(labels, one));
    case 'AND':
      return constraint.of.every((one) => satisfies(labels, one));
    case 'NOT':
      return !satisfies(labels, constraint.of);
  }
  const { label } = constraint;
  const text = Object.hasOwn(labels, label) ? (labels[label] as string) : null;
  switch (constraint.is) {
    case 'HAS':
      return text !== null;
    case 'IN':
      return text !== null && constraint.values.some((value) => equal(text, value));
    case 'COMPARED': {
      const { operator, value } = constraint;
      // `a != b` is exactly `not a = b`, so a machine without the label satisfies it.
      if (operator === '!=') return text === null || !equal(text, value);
      if (text === null) return false;
      if (operator === '=') return equal(text, value);
      const [a, b] = [numberOf(text), value.quoted ? null : numberOf(value.text)];
      if (a === null || b === null) return false;
      const order = compareNumbers(a, b);
      return operator.startsWith('<')
        ? order < 0 || (order === 0 && operator === '<=')
        : order > 0 || (order === 0 && operator === '>=');
    }
  }
}

/** What no machine with any of these labels satisfies: of parts that all must hold the first, else the whole; null: some machine does. */
export function unsatisfiedPart(constraint: Constraint, machines: readonly Labels[]): Constraint | null {
  if (machines.some((labels) => satisfies(labels, constraint))) return null;
  if (constraint.is !== 'AND') return constraint;
  for (const part of constraint.of) {
    const lacking = unsatisfiedPart(part, machines);
    if (lacking !== null) return lacking;
  }
  return constraint;
}

/** As it could be written. */
export function shownConstraint(constraint: Constraint): string {
  const inside = (of: Constraint): string =>
    of.is === 'OR' || of.is === 'AND' ? `(${shownConstraint(of)})` : shownConstraint(of);
  switch (constraint.is) {
    case 'OR':
    case 'AND':
      return constraint.of.map(inside).join(constraint.is === 'OR' ? ' or ' : ' and ');
    case 'NOT':
      return `not ${inside(constraint.of)}`;
    case 'HAS':
      return constraint.label;
    case 'COMPARED':
      return `${constraint.label} ${constraint.operator} ${shownValue(constraint.value)}`;
    case 'IN':
      return `${constraint.label} in (${constraint.values.map(shownValue).join(', ')})`;
  }
}

const shownValue = ({ text, quoted }: Value): string =>
  quoted ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : text;

function equal(text: string, { text: other, quoted }: Value): boolean {
  const [a, b] = quoted ? [null, null] : [numberOf(text), numberOf(other)];
  return a !== null && b !== null ? compareNumbers(a, b) === 0 : text === other;
}

/** Digits before and after the point, without zeros that say nothing: exact, however many there are. */
interface Decimal {
  readonly negative: boolean;
  readonly whole: string;
  readonly part: string;
}

function numberOf(text: string): Decimal | null {
  const found = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text);
  if (found === null) return null;
  const [, sign, digits = '', decimals = ''] = found;
  const [whole, part] = [digits.replace(/^0+/, ''), decimals.replace(/0+$/, '')];
  return { negative: sign === '-' && (whole !== '' || part !== ''), whole, part };
}

function compareNumbers(a: Decimal, b: Decimal): number {
  if (a.negative !== b.negative) return a.negative ? -1 : 1;
  const size =
    a.whole.length - b.whole.length || compareText(a.whole, b.whole) || compareText(a.part, b.part);
  return a.negative ? -size : size;
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

interface Word {
  readonly kind: 'WORD' | 'TEXT' | 'SIGN';
  /** Of a text, what is quoted. */
  readonly text: string;
  readonly at: number;
}

const SPACE = /[ \t\r\n]*/y;
const WORD = /-?[A-Za-z0-9_][A-Za-z0-9_.\-/]*/y;
const SIGN = /[!<>]=?|[=&|(),]/y;

/** Cuts it into words; what cannot be cut is an error before any other. */
function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let at = 0;
  const match = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? null;
  };
  for (;;) {
    at += match(SPACE)?.length ?? 0;
    if (at === text.length) return words;
    if (text[at] === '"') {
      const { value, end } = quotedAt(text, at);
      words.push({ kind: 'TEXT', text: value, at });
      at = end;
      continue;
    }
    const word = match(WORD);
    const found = word ?? match(SIGN);
    if (found === null)
      throw new ConstraintError(
        'SYNTAX',
        at,
        'a word, a "text", a comparison operator, & | ! or parentheses',
      );
    words.push({ kind: word === null ? 'SIGN' : 'WORD', text: found, at });
    at += found.length;
  }
}

function quotedAt(text: string, start: number): { value: string; end: number } {
  let value = '';
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at] as string;
    if (char === '"') return { value, end: at + 1 };
    if (char !== '\\') value += char;
    else if (at + 1 < text.length) {
      const next = text[++at] as string;
      if (next !== '"' && next !== '\\')
        throw new ConstraintError('SYNTAX', at - 1, '\\" or \\\\ within a text');
      value += next;
    }
  }
  throw new ConstraintError('SYNTAX', start, 'a text that ends with "');
}

const RESERVED: ReadonlySet<string> = new Set(['and', 'or', 'not', 'in']);
const COMPARES: ReadonlySet<string> = new Set(['=', '!=', '<', '<=', '>', '>=']);

class Parser {
  private next = 0;

  constructor(
    private readonly words: readonly Word[],
    private readonly length: number,
    private readonly depthMax: number,
  ) {}

  whole(): Constraint {
    const constraint = this.or(0);
    if (this.next < this.words.length) this.fail('and, or, or the end');
    return constraint;
  }

  private or(depth: number): Constraint {
    return this.chain('OR', ['or', '|'], () => this.and(depth));
  }

  private and(depth: number): Constraint {
    return this.chain('AND', ['and', '&'], () => this.unary(depth));
  }

  private chain(is: 'OR' | 'AND', between: readonly string[], part: () => Constraint): Constraint {
    const first = part();
    const of = [first];
    while (between.some((text) => this.take(text))) of.push(part());
    return of.length === 1 ? first : { is, of };
  }

  /** `depth`: `not`s and parentheses that it is inside of. */
  private unary(depth: number): Constraint {
    if (depth > this.depthMax)
      throw new ConstraintError('TOO_DEEP', this.at, `at most ${MAX_DEPTH} nested nots and parentheses`);
    if (this.take('not') || this.take('!')) return { is: 'NOT', of: this.unary(depth + 1) };
    if (!this.take('(')) return this.test();
    const inside = this.or(depth + 1);
    if (!this.take(')')) this.fail('and, or, or )');
    return inside;
  }

  private test(): Constraint {
    const word = this.words[this.next];
    if (word?.kind !== 'WORD' || RESERVED.has(word.text) || !/^[A-Za-z_]/.test(word.text))
      this.fail('a label, not, or (');
    this.next++;
    const label = word.text;
    const sign = this.words[this.next];
    if (sign?.kind === 'SIGN' && COMPARES.has(sign.text)) {
      this.next++;
      return { is: 'COMPARED', label, operator: sign.text as Operator, value: this.value() };
    }
    if (!this.take('in')) return { is: 'HAS', label };
    if (!this.take('(')) this.fail('( and values');
    const values = [this.value()];
    while (this.take(',')) values.push(this.value());
    if (!this.take(')')) this.fail(', or )');
    return { is: 'IN', label, values };
  }

  private value(): Value {
    const word = this.words[this.next];
    if (word === undefined || word.kind === 'SIGN' || (word.kind === 'WORD' && RESERVED.has(word.text)))
      this.fail('a value: a word that is not reserved, or a "text"');
    this.next++;
    return { text: word.text, quoted: word.kind === 'TEXT' };
  }

  /** Goes on behind a sign or reserved word, if it is there. */
  private take(text: string): boolean {
    const word = this.words[this.next];
    const is = word !== undefined && word.kind !== 'TEXT' && word.text === text;
    if (is) this.next++;
    return is;
  }

  private get at(): number {
    return this.words[this.next]?.at ?? this.length;
  }

  private fail(accepted: string): never {
    throw new ConstraintError('SYNTAX', this.at, accepted);
  }
}
