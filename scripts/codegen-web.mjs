// The portal's operations as typed documents: of each web/src/**/NAME.graphql a NAME.gql.ts beside it (committed). And the
// states of jobs, for what has to list them all.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { codegen } from '@graphql-codegen/core';
import * as operations from '@graphql-codegen/typescript-operations';
import { Kind, parse, print, visit } from 'graphql';

/** The generated files, as their paths and texts. */
export async function generateWeb(root) {
  const schema = parse(readFileSync(join(root, 'schema.graphql'), 'utf8'));
  const source = join(root, 'web', 'src');
  const names = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.graphql'),
  );
  const texts = new Map(names.map((name) => [name, parse(readFileSync(join(source, name), 'utf8'))]));
  const config = {
    enumType: 'string-literal',
    useTypeImports: true,
    disableDescriptions: true,
    scalars: { ID: 'string', DateTime: 'string', JSON: 'unknown' },
    defaultScalarType: 'unknown',
  };
  const states = schema.definitions.find(({ name }) => name?.value === 'JobState').values;
  const statesFile = {
    path: join(source, 'api', 'states.gql.ts'),
    text: `// Generated from schema.graphql by scripts/codegen-web.mjs. Do not edit.\nexport const JOB_STATES = [\n${states.map(({ name }) => `  '${name.value}',\n`).join('')}] as const;\n`,
  };
  const files = await Promise.all(
    names.sort().map(async (name) => {
      const filename = join(source, name.replace(/\.graphql$/, '.gql.ts'));
      const document = withFragments(texts.get(name), texts);
      const types = await codegen({
        filename,
        schema,
        documents: [{ location: name, document }],
        config,
        plugins: [{ operations: {} }],
        pluginMap: { operations },
      });
      const text = [
        `// Generated from ${relative(root, join(source, name))} by scripts/codegen-web.mjs. Do not edit.`,
        "import type { TypedDocumentNode } from 'urql';",
        types,
        ...constants(document),
      ];
      return { path: filename, text: `${text.join('\n')}\n` };
    }),
  );
  return [statesFile, ...files];
}

/** Of each operation its text, which the client parses: a tenth of the syntax tree. */
function constants({ definitions }) {
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
      // The text is all that urql needs; the type tells callers what it asks and answers.
      return `\nexport const ${name}Document =\n  ${JSON.stringify(text)} as unknown as TypedDocumentNode<${type}, ${type}Variables>;`;
    });
}

/** Names of the fragments that a definition needs, also by way of others. */
function spreads(definition, fragments, found = new Set()) {
  visit(definition, {
    FragmentSpread({ name }) {
      if (found.has(name.value)) return;
      found.add(name.value);
      const fragment = fragments.find((one) => one.name.value === name.value);
      if (!fragment) throw new Error(`no fragment ${name.value} in web/src`);
      spreads(fragment, fragments, found);
    },
  });
  return found;
}

/** A document with the fragments that it spreads from the portal's other files. */
function withFragments(document, texts) {
  const all = [...texts.values()].flatMap(({ definitions }) => definitions);
  const fragments = all.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const needed = spreads(document, fragments);
  const foreign = fragments.filter(
    (one) => needed.has(one.name.value) && !document.definitions.includes(one),
  );
  return { ...document, definitions: [...document.definitions, ...foreign] };
}
