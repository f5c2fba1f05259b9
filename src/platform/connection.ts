/**
 * Where the service is, and who asks it: all of the configuration that a command needs which only asks. Those called like Slurm's load nothing
 * else of it, as they are started often.
 */
import { resolve } from 'node:path';
import { ConfigError, optional, readTable, text, type Values, whole } from './variables.js';

/** Part of the table of all variables (config.ts). */
export const CONNECTION = {
  port: whole('PORT', 4000, 0, 65_535, 'Port of the API; 0: any free port.'),
  home: text(
    'SWITCHYARD_HOME',
    '.switchyard',
    'a directory',
    /^[^\0]+$/,
    "Directory for the built-in database, the keys, files of runs and the agent's state.",
  ),
  url: optional(
    'SWITCHYARD_URL',
    'http://host:port/graphql or https://…',
    /^https?:\/\/\S+$/,
    false,
    'GraphQL endpoint for the command line and agents; by default the one on this machine, at PORT.',
  ),
  key: optional(
    'SWITCHYARD_KEY',
    'an API key',
    /^[\x21-\x7e]+$/,
    true,
    'API key for the command line and agents; by default the one in SWITCHYARD_HOME/admin.key.',
  ),
  tlsCert: optional(
    'SWITCHYARD_TLS_CERT',
    'a file',
    /^[^\0]+$/,
    false,
    'PEM file with the certificate of the API and its chain; reread when it changes. By default the API uses plain HTTP.',
  ),
} as const;

export interface Connection {
  /** Absolute. */
  home: string;
  /** GraphQL endpoint to talk to: the one given, else the local one. */
  url: string;
  key: string | null;
}

export function located({ home, url, key, tlsCert, port }: Values<typeof CONNECTION>): Connection {
  const local = `${tlsCert ? 'https' : 'http'}://localhost:${port}/graphql`;
  return { home: resolve(home), url: url ?? local, key };
}

/** @throws ConfigError naming every bad variable at once */
export function loadConnection(): Connection {
  const problems: string[] = [];
  const values = readTable(CONNECTION, process.env, problems);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return located(values);
}

/** The environment of whoever runs a command: to find programs as their shell does, and to give to jobs what they ask for. */
export const programEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;
