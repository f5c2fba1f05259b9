// `npm run docs`: writes the parts of documents that follow from the code, between marks: tables of the glossary and of docs/operations/,
// the drawing of the rooms in docs/ARCHITECTURE.md, the reference of the API in docs/api/, and the JSON schema of workflow files.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  buildSchema,
  getDirectiveValues,
  getNamedType,
  isAbstractType,
  isInputObjectType,
  isLeafType,
  isObjectType,
  isSpecifiedScalarType,
} from 'graphql';

const root = fileURLToPath(new URL('../', import.meta.url));

function table(head, rows) {
  const lines = [head, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [lines[0], `|${'---|'.repeat(head.length)}`, ...lines.slice(1)].join('\n');
}

/** The rooms of src/ and the imports between them, without those that go a longer way too, for Mermaid. */
function roomsDrawing() {
  const source = join(root, 'src');
  const arrows = new Map();
  for (const path of readdirSync(source, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!path.endsWith('.ts')) continue;
    const [room] = path.split(sep);
    if (!arrows.has(room)) arrows.set(room, new Set());
    for (const [, target] of readFileSync(join(source, path), 'utf8').matchAll(/\bfrom '(\.[^']+)'/g)) {
      const [other] = relative(source, join(source, dirname(path), target)).split(sep);
      if (other !== room) arrows.get(room).add(other);
    }
  }
  const reached = (room) =>
    new Set([...(arrows.get(room) ?? [])].flatMap((other) => [other, ...reached(other)]));
  const lines = [...arrows].flatMap(([room, others]) => {
    const farther = new Set([...others].flatMap((other) => [...reached(other)]));
    const direct = [...others].filter((other) => !farther.has(other)).sort();
    return direct.map((other) => `  ${room} --> ${other}`);
  });
  return ['```mermaid', 'flowchart TD', ...lines, '```'].join('\n');
}

/** The document with the text between its marks `<!-- mark -->` and `<!-- /mark -->`. */
export function withPart(document, mark, text) {
  const [before, rest] = document.split(`<!-- ${mark} -->\n`);
  const after = rest?.split(`<!-- /${mark} -->`)[1];
  if (after === undefined) throw new Error(`the marks <!-- ${mark} --> are missing`);
  return `${before}<!-- ${mark} -->\n${text}\n<!-- /${mark} -->${after}`;
}

const code = (value) => ((value ?? '') === '' ? '' : `\`${value}\``);
const variableTable = (variables) =>
  table(
    ['variable', 'default', 'meaning'],
    Object.values(variables).map(({ name, default: value, meaning }) => [code(name), code(value), meaning]),
  );
const costTable = (head, costs) =>
  table(
    head,
    Object.entries(costs).map(([field, cost]) => [code(field), cost]),
  );
const fieldText = ({
  path,
  about,
  min,
  max,
  isAboveMin,
  isBelowMax,
  options,
  initial,
  isNullable,
  isOptional,
}) => {
  const range = options
    ? options.map(code).join(', ')
    : min === null
      ? ''
      : `${isAboveMin ? 'above ' : ''}${min} to ${isBelowMax ? 'below ' : ''}${max}`;
  const empty = isNullable ? ' or null' : isOptional ? ', or left out' : '';
  const first =
    initial === null
      ? ''
      : `default ${code(typeof initial === 'string' ? initial : JSON.stringify(initial))}`;
  const bounds = [range && `${range}${empty}`, first].filter(Boolean).join('; ');
  return `${code(path)}${bounds && ` (${bounds})`}: ${about}`;
};
const kindTable = (head, kinds) =>
  table(
    head,
    kinds.map(({ kind, about, fields }) => [code(kind), about, fields.map(fieldText).join('<br>')]),
  );

/** What of the schema is for an audience: its fields of Query, Mutation and Subscription, and the types that no other needs, or that portals have. */
function audienceReference(schema, audience) {
  const directive = schema.getDirective('audience');
  const of = ({ astNode }) => getDirectiveValues(directive, astNode)?.of ?? ['PORTALS'];
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const typesOf = (wanted) => {
    const found = new Set();
    const add = (type) => {
      const named = getNamedType(type);
      if (found.has(named) || roots.includes(named) || isSpecifiedScalarType(named)) return;
      found.add(named);
      for (const field of Object.values(named.getFields?.() ?? {})) addField(field);
      if (isAbstractType(named)) for (const one of schema.getPossibleTypes(named)) add(one);
    };
    const addField = ({ type, args = [] }) => [type, ...args.map((one) => one.type)].forEach(add);
    for (const field of roots.flatMap((root) => Object.values(root.getFields())))
      if (of(field).includes(wanted)) addField(field);
    return found;
  };
  const portals = typesOf('PORTALS');
  const types = [...typesOf(audience)].filter((type) => audience === 'PORTALS' || !portals.has(type));
  const cell = (text) => (text ?? '').replace(/\s+/g, ' ').replaceAll('|', '\\|');
  const fields = (root) =>
    Object.values(root.getFields())
      .filter((field) => of(field).includes(audience))
      .map(({ name, args, type, description }) => [
        code(name),
        args.map((one) => code(`${one.name}: ${one.type}`)).join('<br>'),
        code(String(type)),
        cell(description),
      ]);
  const kinds = [
    ['Objects', (type) => isObjectType(type) || isAbstractType(type)],
    ['Inputs', isInputObjectType],
    ['Enums and scalars', isLeafType],
  ];
  const sections = [
    ...roots.map((root) => [
      `${root.name} fields`,
      ['field', 'arguments', 'answers', 'what it does'],
      fields(root),
    ]),
    ...kinds.map(([title, is]) => [
      title,
      ['type', 'what it is'],
      types
        .filter(is)
        .map(({ name, description }) => [code(name), cell(description)])
        .sort(),
    ]),
  ];
  return sections
    .filter(([, , rows]) => rows.length > 0)
    .map(([title, head, rows]) => `### ${title}\n\n${table(head, rows)}`)
    .join('\n\n');
}

/** Each part as [document, mark, text]. `load` imports a module of src/ by its path without an ending. */
export async function parts(load) {
  const { transitions } = await load('core/states');
  const { dispatch, local } = (await load('core/index')).policyKinds();
  const { VARIABLES } = await load('platform/config');
  const { FIXED_LIMITS, LIMIT_VARIABLES, shownLimit } = await load('platform/limits');
  const { FIELD_COST, LIST_SIZE } = await load('api/admission/cost');
  const { TOOLS } = await load('mcp/server');
  const schema = buildSchema(readFileSync(join(root, 'schema.graphql'), 'utf8'));
  const reference = 'operations/reference.md';
  const policies = 'operations/policies.md';
  return [
    [
      'glossary.md',
      'transitions',
      table(
        ['from', 'to', 'action', 'when'],
        transitions.map(({ from, to, action, when }) => [from ?? '(new)', to, action, when]),
      ),
    ],
    ['ARCHITECTURE.md', 'rooms', roomsDrawing()],
    [
      'mcp.md',
      'tools',
      table(
        ['tool', 'what it does', 'arguments'],
        TOOLS.map(({ name, description, schema }) => [
          code(name),
          description,
          Object.keys(schema.shape).map(code).join(', '),
        ]),
      ),
    ],
    [reference, 'variables', variableTable(VARIABLES)],
    [reference, 'limits', variableTable(LIMIT_VARIABLES)],
    [
      reference,
      'fixed-limits',
      table(
        ['limit', 'of'],
        Object.values(FIXED_LIMITS).map(({ max, meaning }) => [shownLimit(max), meaning]),
      ),
    ],
    [reference, 'field-costs', costTable(['field', 'cost'], FIELD_COST)],
    [reference, 'list-sizes', costTable(['list', 'objects'], LIST_SIZE)],
    ...['portals', 'agents', 'peers'].map((name) => [
      `api/${name}.md`,
      'reference',
      audienceReference(schema, name.toUpperCase()),
    ]),
    [policies, 'dispatch-policies', kindTable(['kind', 'jobs go', 'fields'], dispatch)],
    [policies, 'local-policies', kindTable(['kind', 'a site starts jobs', 'fields'], local)],
  ];
}

/** Each file that follows from the code as a whole, as [name in docs/, text]. */
export async function files(load) {
  const { workflowSchema } = await load('cli/workflow');
  return [['workflow.schema.json', `${JSON.stringify(workflowSchema(), null, 2)}\n`]];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const load = (path) => import(`../dist/${path}.js`);
  for (const [name, mark, text] of await parts(load)) {
    const path = join(root, 'docs', name);
    writeFileSync(path, withPart(readFileSync(path, 'utf8'), mark, text));
  }
  for (const [name, text] of await files(load)) writeFileSync(join(root, 'docs', name), text);
}
