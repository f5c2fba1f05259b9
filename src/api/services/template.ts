/**
 * Texts with places for parameters, as in the template of a bulk group: `{x}` stands for the parameter x, `{{x}}` for the text `{x}`.
 * Every other brace is text, so JSON and most of what shells and awk are given need no care.
 */

const PLACEHOLDER = /\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** A text whose places are known: `texts[0]`, the value of `names[0]`, `texts[1]`, … and the last of `texts`. */
export interface Template {
  texts: readonly string[];
  names: readonly string[];
}

export function templateOf(source: string): Template {
  const texts: string[] = [];
  const names: string[] = [];
  let text = '';
  let end = 0;
  for (const match of source.matchAll(PLACEHOLDER)) {
    const [whole, literal, name] = match;
    text += source.slice(end, match.index);
    end = match.index + whole.length;
    if (name === undefined) text += `{${literal}}`;
    else {
      texts.push(text);
      names.push(name);
      text = '';
    }
  }
  texts.push(text + source.slice(end));
  return { texts, names };
}

/** How long the text with its places filled would be: asked before it is made. */
export function filledChars({ texts, names }: Template, valueFor: (name: string) => string): number {
  let chars = 0;
  for (const text of texts) chars += text.length;
  for (const name of names) chars += valueFor(name).length;
  return chars;
}

/** The text with its places filled; `valueFor` knows each of the template's names. */
export function filled({ texts, names }: Template, valueFor: (name: string) => string): string {
  let text = texts[0] as string;
  for (let i = 0; i < names.length; i++) text += valueFor(names[i] as string) + (texts[i + 1] as string);
  return text;
}
