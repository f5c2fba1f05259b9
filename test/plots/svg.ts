/** A reader of SVG text, as much as the tests of pictures need. Throws when it is not well-formed. */

export interface Element {
  name: string;
  attributes: Record<string, string>;
  children: Element[];
  text: string;
}

export function parseSvg(svg: string): Element {
  const root: Element = { name: '', attributes: {}, children: [], text: '' };
  const open = [root];
  for (const [, text = '', close, name, rest, empty] of svg.matchAll(
    /([^<]*)(?:<(\/?)([\w:]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>|$)/g,
  )) {
    const inner = open[open.length - 1] as Element;
    inner.text += unescaped(text);
    if (name === undefined) continue;
    if (close === '/') {
      if (open.pop()?.name !== name) throw new Error(`</${name}> closes what is not open`);
      continue;
    }
    const attributes = Object.fromEntries(
      [...(rest ?? '').matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, key, value]) => [
        key,
        unescaped(value as string),
      ]),
    );
    const element = { name, attributes, children: [], text: '' };
    inner.children.push(element);
    if (empty !== '/') open.push(element);
  }
  const [svgElement] = root.children;
  if (open.length !== 1 || root.children.length !== 1 || svgElement?.name !== 'svg')
    throw new Error('accepted: one svg element, closed');
  const written = svg.match(/<(?!\/)/g)?.length;
  const read = all(root).length - 1;
  if (written !== read) throw new Error(`${read} elements could be read of ${written}`);
  return svgElement;
}

const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');

const all = (element: Element): Element[] => [element, ...element.children.flatMap(all)];

/** What stands for data: the items of all marks of a type (`rect`, `line`, `rule`, `symbol`, `text`), in order. */
export function marks(svg: string, type: string): Element[] {
  return all(parseSvg(svg))
    .filter(({ attributes }) => attributes.class?.startsWith(`mark-${type} role-mark `))
    .flatMap(({ children }) => children);
}

/** Every line of text in the picture. */
export const texts = (svg: string): string[] =>
  all(parseSvg(svg))
    .filter(({ name, text }) => /^(text|tspan)$/.test(name) && text !== '')
    .map(({ text }) => text);

/** Of a rectangle's path, in pixels. */
export function box({ attributes }: Element): { x: number; y: number; width: number; height: number } {
  const [x, y, width, height] = (attributes.d ?? '').match(/-?[\d.]+(e-?\d+)?/g)?.map(Number) ?? [];
  if (height === undefined) throw new Error(`"${attributes.d}" is no rectangle`);
  return { x: x as number, y: y as number, width: width as number, height };
}

/** The corners of a line's path of straight parts, in pixels. */
export function corners({ attributes }: Element): [x: number, y: number][] {
  return [...(attributes.d ?? '').matchAll(/[ML](-?[\d.]+),(-?[\d.]+)/g)].map(([, x, y]) => [
    Number(x),
    Number(y),
  ]);
}
