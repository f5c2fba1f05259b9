/**
 * Credentials for registries of container images: everybody's own. Who sets one never sees it again, nor does anybody else: it is for the agents
 * that run the user's jobs in images of that registry.
 */
import { atRegistry } from '../../platform/images.js';
import { MAX } from '../../platform/limits.js';
import type { Secrets } from '../../platform/secrets.js';
import { ownerOf, type SealedCredential } from '../../store/directory/registries.js';
import type { RegistryCredentialRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { text, textFault } from '../check.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type {
  RegistryLogin,
  SetRegistryCredentialInput,
  TakeRegistryCredentialInput,
} from '../generated/types.js';
import { localId } from '../ids.js';
import { guarded, ownSite } from './access.js';
import { agentOf } from './agents.js';
import { actor, done, type ServiceParts } from './parts.js';

export function createRegistriesService({ directory, limits, secrets, now }: ServiceParts) {
  return guarded({
    registryCredentials: (viewer: Viewer): Promise<RegistryCredentialRow[]> =>
      directory.registryCredentials(viewer.userId),

    async setRegistryCredential(
      viewer: Viewer,
      input: SetRegistryCredentialInput,
      requestId: string,
    ): Promise<RegistryCredentialRow> {
      if (secrets === null)
        throw new ApiError(
          'CONFLICT',
          'the service has no key to encrypt credentials with: its operator must set SECRETS_KEY',
        );
      const { userId } = viewer;
      // Docker Hub has two names.
      const { registry } = atRegistry(`${hostOf('registry', input.registry)}/`);
      const username = text('username', input.username, MAX.nameChars, 1);
      if (!USERNAME.test(username)) throw badInput('username', username, 'no control characters, and no `:`');
      // Not quoted, whatever is wrong with it.
      const fault = textFault(input.password, MAX.registryPasswordChars, 1);
      if (fault !== null) throw new ApiError('BAD_USER_INPUT', `password: not accepted; accepted: ${fault}`);
      const sealed = secrets.seal(input.password, ownerOf({ userId, registry, username }));
      const credential = { registry, username, setAt: now(), ...sealed };
      const by = actor(viewer, requestId);
      return done(await directory.setRegistryCredential(userId, credential, limits.userRegistries, by));
    },

    async removeRegistryCredential(
      viewer: Viewer,
      registry: string,
      requestId: string,
    ): Promise<RegistryCredentialRow> {
      const host = hostOf('registry', registry);
      return done(await directory.removeRegistryCredential(viewer.userId, host, actor(viewer, requestId)));
    },

    async takeRegistryCredential(
      viewer: Viewer,
      { siteId: site, agentId, jobId: job, epoch, token = null }: TakeRegistryCredentialInput,
    ): Promise<{ login: RegistryLogin | null; missing: string | null }> {
      const siteId = localId('site', site, 'siteId');
      ownSite(viewer, siteId);
      const run = { siteId, agentId: agentOf(agentId), jobId: localId('job', job, 'jobId'), epoch, token };
      const found = await directory.imageOfRun(run);
      if (found === null) throw notFound('job', job);
      const { userId, user, image } = found;
      const registry = atRegistry(image).registry.toLowerCase();
      const none = (missing: string) => ({ login: null, missing });
      const stored = await directory.registryCredential(userId, registry);
      if (stored === null)
        return none(
          `${user} has stored no credential for ${registry} (\`switchyard registries add ${registry} --username USER\`)`,
        );
      const password = opened(secrets, stored);
      if (password === null)
        return none(
          `the service cannot decrypt the credential of ${user} for ${registry}, because it lacks the key ${stored.keyId} (SECRETS_KEY, SECRETS_KEYS_OLD) or the record was altered; store it again`,
        );
      await directory.registryCredentialUsed(stored.id, now());
      return { login: { registry, username: stored.username, password }, missing: null };
    },
  });
}

/** null: with the keys that there are it cannot be read. */
function opened(secrets: Secrets | null, stored: SealedCredential): string | null {
  try {
    return secrets?.open(stored, ownerOf(stored)) ?? null;
  } catch {
    return null;
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const USERNAME = /^[^\0-\x1f\x7f:]+$/;
/** As the first part of the name of an image is one: with a dot or a port, or this host. */
const HOST = /^(localhost|(?=[^/]*[.:])[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?)$/;

function hostOf(field: string, given: string): string {
  const host = given.toLowerCase();
  if (!HOST.test(host) || host.length > MAX.nameChars)
    throw badInput(
      field,
      given,
      'the host of a registry as in names of its images, such as docker.io or registry.example.org:5000',
    );
  return host;
}
