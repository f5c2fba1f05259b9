// Operations as typed documents, of everything here that speaks to the API: of each NAME.graphql a NAME.gql.ts beside it (git-ignored). Their types are
// left out for `npm start`, which does not look at types, and has no packages that write them.
// And, for the portal and for the others, the states of jobs and the groups of them (src/core/states.ts).
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { transform } from 'esbuild';
import { buildASTSchema, getNamedType, isLeafType, Kind, parse, print, visit } from 'graphql';

/** Where operations are, and what they are to their client: of each its text, and the type of what it asks and answers. */
const clients = [
  {
    folder: 'web/src',
    imports: () => "import type { TypedDocumentNode } from 'urql';",
    // The text is all that urql needs, which parses it: a tenth of the syntax tree.
    document: (name, types, text) => `${name} =\n  ${text} as unknown as TypedDocumentNode<${types}>;`,
    config: {},
  },
  ...[
    ...['src/agent', 'src/cli', 'src/federation', 'src/mcp', 'src/slurm'].map((folder) => [
      folder,
      'src/client/index.js',
    ]),
    ['src/client', 'src/client/client.js'],
    // The API asks itself.
    ['src/api/tes', 'src/api/tes/operation.js'],
  ].map(([folder, types]) => ({
    folder,
    imports: (from) => `import type { Document } from '${moduleFrom(from, types)}';`,
    document: (name, types, text) => `${name}: Document<${types}> =\n  ${text};`,
    config: { immutableTypes: true, arrayInputCoercion: false },
  })),
];

/** How a file of a folder imports a module. */
function moduleFrom(folder, file) {
  const path = relative(folder, file);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The generated files, as their paths and texts. */
export async function generateDocuments(root, typed) {
  const schema = unrefused(parse(readFileSync(join(root, 'schema.graphql'), 'utf8')));
  const write = typed ? await writerOfTypes() : () => '';
  const files = await Promise.all(clients.map((client) => documentsOf(root, schema, client, write)));
  return [...(await statesFiles(root)), ...files.flat()];
}

/**
 * The schema as our own operations see it: they do not ask for a payload's errors, so a refusal is an error of the whole answer, and what is null only
 * then (`@unlessRefused`) is there.
 */
const unrefused = (schema) =>
  visit(schema, {
    FieldDefinition: (field) =>
      field.directives.some(({ name }) => name.value === 'unlessRefused')
        ? { ...field, type: { kind: Kind.NON_NULL_TYPE, type: field.type } }
        : undefined,
  });

/** The states of jobs, and the groups of them that have names. */
async function statesFiles(root) {
  const file = join('src', 'core', 'states.ts');
  const { code } = await transform(readFileSync(join(root, file), 'utf8'), { loader: 'ts', format: 'esm' });
  const { endCauses, jobStates, stateGroups } = await import(
    `data:text/javascript,${encodeURIComponent(code)}`
  );
  const groups = Object.entries({ JOB: jobStates, ...stateGroups }).map(
    ([name, states]) =>
      `export const ${name}_STATES${name === 'JOB' ? '' : ': readonly JobState[]'} = ${JSON.stringify(states)}${name === 'JOB' ? ' as const' : ''};\n`,
  );
  const text = `// Generated from ${file} by scripts/codegen-documents.mjs. Do not edit.\n${groups.join('\n')}\nexport const END_CAUSES = ${JSON.stringify(endCauses)} as const;\n\nexport type JobState = (typeof JOB_STATES)[number];\n`;
  // No client may import the core.
  return ['web/src/api', 'src/client'].map((folder) => ({ path: join(root, folder, 'states.gql.ts'), text }));
}

/** The packages take a second to load. */
async function writerOfTypes() {
  const [{ codegen }, operations] = await Promise.all([
    import('@graphql-codegen/core'),
    import('@graphql-codegen/typescript-operations'),
  ]);
  return (one) => codegen({ ...one, plugins: [{ operations: {} }], pluginMap: { operations } });
}

function documentsOf(root, schema, { folder, imports, document: written, config }, write) {
  const source = join(root, folder);
  const names = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.graphql'))
    .sort();
  const texts = new Map(names.map((name) => [name, parse(readFileSync(join(source, name), 'utf8'))]));
  const shared = [...texts.values()].flatMap(({ definitions }) => definitions);
  const fragments = [
    ...shared.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION),
    ...everyFragments(buildASTSchema(schema), shared),
  ];
  return Promise.all(
    names.map(async (name) => {
      const filename = join(source, name.replace(/\.graphql$/, '.gql.ts'));
      const document = withFragments(texts.get(name), fragments);
      const types = await write({
        filename,
        schema,
        documents: [{ location: name, document }],
        config: { ...commonConfig, ...config },
      });
      const operationsOf = constants(document, written);
      const text = [
        `// Generated from ${relative(root, join(source, name))} by scripts/codegen-documents.mjs. Do not edit.`,
        ...(operationsOf.length > 0 ? [imports(dirname(relative(root, filename)))] : []),
        types,
        ...operationsOf,
      ];
      return { path: filename, text: `${text.join('\n')}\n` };
    }),
  );
}

const commonConfig = {
  enumType: 'string-literal',
  useTypeImports: true,
  disableDescriptions: true,
  scalars: { ID: 'string', DateTime: 'string', JSON: 'unknown' },
  defaultScalarType: 'unknown',
};

/** `...EveryX`, which nobody has to write: all fields of the type X but for those that are objects. */
function everyFragments(schema, definitions) {
  const wanted = new Set();
  visit(
    { kind: Kind.DOCUMENT, definitions },
    {
      FragmentSpread: ({ name }) => void (name.value.startsWith('Every') && wanted.add(name.value.slice(5))),
    },
  );
  return [...wanted].map((type) => {
    const fields = Object.values(schema.getType(type).getFields());
    const leaves = fields.filter(({ type }) => isLeafType(getNamedType(type))).map(({ name }) => name);
    return parse(`fragment Every${type} on ${type} { ${leaves.join(' ')} }`).definitions[0];
  });
}

/** Of each operation its text, with the fragments that it needs. */
function constants({ definitions }, written) {
  const fragments = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  return definitions
    .filter(({ kind }) => kind === Kind.OPERATION_DEFINITION)
    .map((operation) => {
      const parts = [
        operation,
        ...fragments.filter((one) => spreads(operation, fragments).has(one.name.value)),
      ];
      const text = parts.map(print).join('\n').replace(/\s+/g, ' ');
      const name = operation.name.value;
      const type = name + operation.operation[0].toUpperCase() + operation.operation.slice(1);
      return `\nexport const ${written(`${name}Document`, `${type}, ${type}Variables`, JSON.stringify(text))}`;
    });
}

/** Names of the fragments that a definition needs, also by way of others. */
function spreads(definition, fragments, found = new Set()) {
  visit(definition, {
    FragmentSpread({ name }) {
      if (found.has(name.value)) return;
      found.add(name.value);
      const fragment = fragments.find((one) => one.name.value === name.value);
      if (!fragment) throw new Error(`no fragment ${name.value}`);
      spreads(fragment, fragments, found);
    },
  });
  return found;
}

/** A document with the fragments that it spreads from its client's other files. */
function withFragments(document, fragments) {
  const needed = spreads(document, fragments);
  const foreign = fragments.filter(
    (one) => needed.has(one.name.value) && !document.definitions.includes(one),
  );
  return { ...document, definitions: [...document.definitions, ...foreign] };
}
