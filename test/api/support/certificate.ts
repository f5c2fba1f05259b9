/** A certificate of the test's own, for an API over TLS. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, vi } from 'vitest';

/** Gives the surrounding file one. Call it while collecting, before `withApi`. */
export function withCertificate(): { certFile: string; keyFile: string } {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-tls-'));
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  beforeAll(async () => {
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }]);
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
    // fetch takes no certificate of the test's own.
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
    vi.unstubAllEnvs();
  });
  return files;
}
