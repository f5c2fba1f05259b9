/** What the API can be told. */
import type { Limits } from '../platform/limits.js';

export interface ApiConfig {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Whether clients may read the schema through GraphQL. */
  introspection: boolean;
  /** Whether browsers get the portal, and at the endpoint a page to write queries on. */
  portal: boolean;
  limits: Limits;
}
