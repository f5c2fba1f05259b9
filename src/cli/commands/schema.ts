/** `switchyard schema`: the JSON schemas of the files that simulations read. */
import type { Command } from 'commander';
import { z } from 'zod';
import { policySchema } from '../../core/index.js';
import { sitesSchema } from '../../simulator/sites.js';
import { printJson } from '../command.js';
import { usage } from '../errors.js';

const SCHEMAS = { policy: policySchema, sites: sitesSchema };
const schemaNames = Object.keys(SCHEMAS) as (keyof typeof SCHEMAS)[];

/** The schema as JSON. */
const jsonSchema = (name: keyof typeof SCHEMAS): unknown => z.toJSONSchema(SCHEMAS[name], { io: 'input' });

export function addSchema(program: Command): void {
  program
    .command('schema <name>')
    .description(`print the JSON schema of input files for simulations: ${schemaNames.join(' or ')}`)
    .action((name: string) => {
      const known = schemaNames.find((one) => one === name);
      if (known === undefined) throw usage('schema', name, schemaNames.join(', '));
      printJson(jsonSchema(known));
    });
}
