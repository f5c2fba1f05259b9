/**
 * JSON of any length, without keeping the event loop: what is long is cut where members of lists and objects end, and each piece is parsed
 * in a turn of its own by the parser that parses short texts.
 */
import { turns } from '../platform/turns.js';

/** Of a text, what is parsed in one turn: less than a millisecond's work. */
const PIECE_BYTES = 64 * 1024;
/** Levels of what is too long for one turn. GraphQL's own values are a few levels deep. */
const LEVELS_MAX = 100;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LIST = { opens: 0x5b, closes: 0x5d } as const;
const OBJECT = { opens: 0x7b, closes: 0x7d } as const;
const U = 0x75;

/** What a text in UTF-8 says, as `JSON.parse`; in a turn of whose turn it is. Rejects where it is not JSON, or nested beyond measure. */
export async function parseJson(text: Buffer): Promise<unknown> {
  if (text.length <= PIECE_BYTES) return JSON.parse(text.toString('utf8'));
  const parser = new Parser(text);
  const value = await parser.value(LEVELS_MAX);
  await parser.space();
  if (!parser.isAtEnd) throw new SyntaxError('there is more text after the value');
  return value;
}

class Parser {
  private at = 0;

  constructor(private readonly text: Buffer) {}

  get isAtEnd(): boolean {
    return this.at === this.text.length;
  }

  async space(): Promise<void> {
    for (let pauseAt = this.at + PIECE_BYTES; isSpace(this.text[this.at]); this.at++)
      if (this.at === pauseAt) {
        pauseAt += PIECE_BYTES;
        await turns.pause();
      }
  }

  /** The value that begins here, however long it is. */
  async value(levels: number): Promise<unknown> {
    await this.space();
    const first = this.text[this.at];
    if (levels === 0) throw new SyntaxError('nested too deeply');
    if (first === LIST.opens) return this.list(levels);
    if (first === OBJECT.opens) return this.object(levels);
    if (first === QUOTE) return this.string();
    const begun = this.at;
    const most = begun + PIECE_BYTES;
    while (this.at < most && !isEnd(this.text[this.at])) this.at++;
    return JSON.parse(this.piece(begun, this.at));
  }

  private async list(levels: number): Promise<unknown[]> {
    const members: unknown[] = [];
    await this.members(
      LIST.closes,
      (text) => {
        const some = JSON.parse(`[${text}]`) as unknown[];
        for (const one of some) members.push(one);
        return some.length;
      },
      async () => void members.push(await this.value(levels - 1)),
    );
    return members;
  }

  private async object(levels: number): Promise<Record<string, unknown>> {
    const object: Record<string, unknown> = {};
    const set = (name: string, value: unknown): void => {
      // A member of this name is one like any other, as for JSON.parse.
      if (name !== '__proto__') object[name] = value;
      else
        Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
    };
    await this.members(
      OBJECT.closes,
      (text) => {
        const some = Object.entries(JSON.parse(`{${text}}`) as object);
        for (const [name, value] of some) set(name, value);
        return some.length;
      },
      async () => {
        await this.space();
        if (this.text[this.at] !== QUOTE) throw new SyntaxError('a name is missing');
        const name = await this.string();
        await this.space();
        this.expect(COLON);
        set(name, await this.value(levels - 1));
      },
    );
    return object;
  }

  /** Goes through the members up to the end of what holds them: as many as a piece has at once, or one that is longer than a piece. */
  private async members(
    closes: number,
    some: (text: string) => number,
    long: () => Promise<void>,
  ): Promise<void> {
    this.at++;
    for (let isFirst = true; ; isFirst = false) {
      await this.space();
      const end = this.endOfPiece(closes);
      if (end === null) {
        await long();
        await this.space();
      } else {
        const count = some(this.piece(this.at, end));
        this.at = end;
        // Between two commas, and behind the last one, there is a member.
        if (count === 0 && !(isFirst && this.text[end] === closes))
          throw new SyntaxError('a member is missing');
      }
      if (this.text[this.at] === closes) return void this.at++;
      this.expect(COMMA);
      await turns.pause();
    }
  }

  /** Where the last member ends that ends within a piece: at a comma, or at the end of them all. Null: the first one is longer. */
  private endOfPiece(closes: number): number | null {
    const { text } = this;
    const most = Math.min(text.length, this.at + PIECE_BYTES);
    let comma: number | null = null;
    let depth = 0;
    for (let i = this.at; i < most; i++) {
      const byte = text[i];
      if (byte === QUOTE) {
        for (i++; i < most && text[i] !== QUOTE; i++) if (text[i] === BACKSLASH) i++;
      } else if (byte === LIST.opens || byte === OBJECT.opens) depth++;
      else if (byte === LIST.closes || byte === OBJECT.closes) {
        if (depth > 0) depth--;
        else if (byte === closes) return i;
        else throw new SyntaxError('brackets do not match');
      } else if (byte === COMMA && depth === 0) comma = i;
    }
    return comma;
  }

  private async string(): Promise<string> {
    const { text } = this;
    let string = '';
    let from = ++this.at;
    for (; ; this.at += text[this.at] === BACKSLASH ? (text[this.at + 1] === U ? 6 : 2) : 1) {
      if (this.at >= text.length) throw new SyntaxError('a string is not terminated');
      const byte = text[this.at] as number;
      // Not within a character.
      const isLong = this.at - from >= PIECE_BYTES && (byte & 0xc0) !== 0x80;
      if (byte !== QUOTE && !isLong) continue;
      string += JSON.parse(`"${this.piece(from, this.at)}"`);
      from = this.at;
      if (byte === QUOTE) {
        this.at++;
        return string;
      }
      await turns.pause();
    }
  }

  private expect(byte: number): void {
    if (this.text[this.at] !== byte) throw new SyntaxError(`${String.fromCharCode(byte)} is missing`);
    this.at++;
  }

  private piece(from: number, to: number): string {
    return this.text.toString('utf8', from, to);
  }
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
/** Of a number or a name of a value: what cannot be part of it. */
const isEnd = (byte: number | undefined): boolean =>
  byte === undefined || byte === COMMA || byte === LIST.closes || byte === OBJECT.closes || isSpace(byte);
