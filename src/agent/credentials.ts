/** Asks the service for what users have stored for registries of images: for one run and its fetch, and never written down here. */
import { type Client, ServiceError } from '../client/index.js';
import { TakeRegistryCredentialDocument } from './documents.gql.js';
import type { KnownAgent } from './files/handover.js';
import type { RunName } from './runner.js';

/** What a registry asks for. */
export interface Login {
  username: string;
  password: string;
}

/** The login of a run's user for the registry of its image, or why there is none. Throws where the service does not answer. */
export type AskLogin = (run: RunName) => Promise<Login | string>;

export class RegistryCredentials {
  private us: KnownAgent | null = null;

  constructor(private readonly client: Pick<Client, 'request'>) {}

  /** From now on there is somebody to ask for. */
  serve(us: KnownAgent): void {
    this.us = us;
  }

  readonly of: AskLogin = async ({ jobId, epoch, token = null }) => {
    if (this.us === null) throw new Error('the agent has not registered yet');
    const input = { siteId: this.us.site, agentId: this.us.agent(), jobId, epoch, token };
    try {
      const { takeRegistryCredential } = await this.client.request(TakeRegistryCredentialDocument, { input });
      return (
        takeRegistryCredential.login ?? takeRegistryCredential.missing ?? 'there is no credential for it'
      );
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // One of the release before keeps none.
      if (error.isUnknownThere) return 'the service does not keep credentials for registries';
      if (error.code === 'NOT_FOUND') return 'the run is no longer live';
      throw error;
    }
  };
}
