/** What the API can be told. */
import type { Limits } from '../platform/limits.js';
import type { UserRole } from './generated/types.js';

/** The identity provider that is believed. */
export interface OidcConfig {
  issuer: string;
  /** A token must be meant for one of these. */
  audience: readonly string[];
  /** With which the portal asks it for tokens, and for what; null: the portal takes API keys only. */
  client: { id: string; scope: string } | null;
  /** The claim that has the groups of a person. */
  groupsClaim: string;
  /** What a group may. Empty: every user has the role that an administrator gave them. */
  roles: ReadonlyMap<string, UserRole>;
  /** The claim that has the name of a person. */
  nameClaim: string;
  /** Whether people are made users when they come for the first time. */
  createUsers: boolean;
  /** By how much its clock may differ, seconds. */
  clockToleranceS: number;
}

/** What an operator decides of tasks of GA4GH TES. */
export interface TesConfig {
  /** Whether they run although they name images, which nothing here runs. */
  ignoresImages: boolean;
  /** URLs of places that the machines share. */
  storage: readonly string[];
}

export interface ApiConfig {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Whether clients may read the schema through GraphQL. */
  introspection: boolean;
  /** Whether browsers get the portal, and at the endpoint a page to write queries on. */
  portal: boolean;
  /** PEM files of the certificate and its key; null: plain HTTP. */
  tls: { certFile: string; keyFile: string } | null;
  /** Pages of these origins may use the API from a browser; `*`: of any. */
  corsOrigins: readonly string[];
  /** The only documents that are accepted, by the SHA-256 of their text; null: any. */
  trustedDocuments: ReadonlyMap<string, string> | null;
  /** Whether users may sign in by password. */
  passwords: boolean;
  /** null: there is none. */
  oidc: OidcConfig | null;
  /** How the door of GA4GH TES is open. */
  tes: TesConfig;
  /** Addresses and networks of proxies whose X-Forwarded-For is believed. */
  trustedProxies: readonly string[];
  limits: Limits;
}
