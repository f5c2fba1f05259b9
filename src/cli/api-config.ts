/** What the API is told, from the variables and the files that they name. */
import { readFileSync } from 'node:fs';
import { documents as ofAgents } from '../agent/index.js';
import { type ApiConfig, sha256 } from '../api/index.js';
import { documents as ofPeers } from '../federation/index.js';
import * as ofMcp from '../mcp/documents.gql.js';
import type { Config } from '../platform/config.js';
import { ConfigError } from '../platform/variables.js';
import * as ofSlurm from '../slurm/documents.gql.js';
import * as documents from './documents.gql.js';

/** Throws ConfigError for a file that cannot be used. */
export function apiConfig(config: Config): ApiConfig {
  const { tlsCert, tlsKey, oidcIssuer, oidcRoles } = config;
  return {
    ...config,
    tls: tlsCert && tlsKey ? { certFile: tlsCert, keyFile: tlsKey } : null,
    trustedDocuments: trustedDocuments(config.trustedDocuments),
    tes: { ignoresImages: config.tesIgnoreImages, storage: config.tesStorage },
    oidc: oidcIssuer
      ? {
          issuer: oidcIssuer,
          audience: config.oidcAudience,
          client: config.oidcClientId ? { id: config.oidcClientId, scope: config.oidcScope } : null,
          groupsClaim: config.oidcGroupsClaim,
          roles: new Map(
            oidcRoles.map((pair) => {
              const at = pair.lastIndexOf('=');
              return [pair.slice(0, at), pair.slice(at + 1) as 'ADMIN' | 'OPERATOR' | 'USER'];
            }),
          ),
          nameClaim: config.oidcNameClaim,
          createUsers: config.oidcCreateUsers,
          clockToleranceS: config.oidcClockToleranceS,
        }
      : null,
  };
}

/** The documents of the files, and what `switchyard`, the commands called like Slurm's, agents and peers ask for; null where no file is named. */
function trustedDocuments(files: readonly string[]): Map<string, string> | null {
  if (files.length === 0) return null;
  const trusted = new Map(
    [documents, ofAgents, ofMcp, ofPeers, ofSlurm]
      .flatMap(Object.values<string>)
      .map((text) => [sha256(text), text]),
  );
  for (const file of files) {
    for (const [hash, text] of Object.entries(read(file))) {
      if (typeof text !== 'string' || sha256(text) !== hash.replace(/^sha256:/, '')) {
        throw new ConfigError(
          `SWITCHYARD_TRUSTED_DOCUMENTS: ${file}: ${JSON.stringify(hash)} is not accepted; accepted: the SHA-256 of the document's text, hexadecimal`,
        );
      }
      trusted.set(sha256(text), text);
    }
  }
  return trusted;
}

function read(file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (value !== null && typeof value === 'object' && !Array.isArray(value))
      return value as Record<string, unknown>;
    throw new Error('it is not a JSON object');
  } catch (error) {
    throw new ConfigError(`SWITCHYARD_TRUSTED_DOCUMENTS: ${file}: ${(error as Error).message}`);
  }
}
