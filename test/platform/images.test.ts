/** Names of images, compared with what Docker's own parser makes of them (its tests, normalize_test.go of github.com/distribution/reference). */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { atRegistry, isImageName, namesOf, referenceOf } from '../../src/platform/images.js';

const DIGEST = `sha256:${'0d'.repeat(32)}`;

it.each([
  ['debian', 'docker.io', 'docker.io/library/debian:latest'],
  ['debian:12', 'docker.io', 'docker.io/library/debian:12'],
  ['library/debian', 'docker.io', 'docker.io/library/debian:latest'],
  ['docker.io/debian:12', 'docker.io', 'docker.io/library/debian:12'],
  ['docker.io/library/debian:12', 'docker.io', 'docker.io/library/debian:12'],
  ['index.docker.io/debian', 'docker.io', 'docker.io/library/debian:latest'],
  ['index.docker.io/library/debian', 'docker.io', 'docker.io/library/debian:latest'],
  ['dmcgowan/myapp', 'docker.io', 'docker.io/dmcgowan/myapp:latest'],
  ['library/foo/bar', 'docker.io', 'docker.io/library/foo/bar:latest'],
  ['test_com/foo', 'docker.io', 'docker.io/test_com/foo:latest'],
  ['test.com/foo', 'test.com', 'test.com/foo:latest'],
  ['test-com:8080/foo:1', 'test-com:8080', 'test-com:8080/foo:1'],
  ['127.0.0.1:8000/private/moonbase', '127.0.0.1:8000', '127.0.0.1:8000/private/moonbase:latest'],
  ['192.168.0.1:80', 'docker.io', 'docker.io/library/192.168.0.1:80'],
  ['localhost/a', 'localhost', 'localhost/a:latest'],
  ['localhost', 'docker.io', 'docker.io/library/localhost:latest'],
  ['FOO/bar', 'FOO', 'FOO/bar:latest'],
  [`redis@${DIGEST}`, 'docker.io', `docker.io/library/redis@${DIGEST}`],
  // A digest says which image it is, whatever its tag.
  [`ghcr.io/tools/a:1.4@${DIGEST}`, 'ghcr.io', `ghcr.io/tools/a@${DIGEST}`],
])('%s is from %s: %s', (name, registry, reference) => {
  expect(isImageName(name)).toBe(true);
  expect(atRegistry(name)).toEqual({ registry, reference });
});

const pieces = [
  'a',
  'b',
  'A',
  '1',
  '.',
  ':',
  '@',
  '/',
  'docker.io/',
  'index.docker.io/',
  'library/',
  'localhost/',
  ':latest',
];
const names = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 8 })
  .map((some) => some.join(''));

it('every name has one reference, whose own it is, and which names of directories have, too', () => {
  fc.assert(
    fc.property(fc.oneof(names, fc.string()), (name) => {
      const reference = referenceOf(name);
      expect(referenceOf(reference)).toBe(reference);
      const all = namesOf(name);
      expect(all).toContain(reference);
      expect(new Set(all).size).toBe(all.length);
      for (const one of all) expect(namesOf(one)).toEqual(all);
    }),
    { numRuns: 1000 },
  );
});

it('directories may have any name that people write, the shortest first', () => {
  expect(namesOf('docker.io/debian')).toEqual([
    'debian',
    'debian:latest',
    'library/debian',
    'library/debian:latest',
    'docker.io/debian',
    'docker.io/debian:latest',
    'docker.io/library/debian',
    'docker.io/library/debian:latest',
  ]);
  expect(namesOf('tools/a:1')).toEqual(['tools/a:1', 'docker.io/tools/a:1']);
  expect(namesOf('ghcr.io/tools/a')).toEqual(['ghcr.io/tools/a', 'ghcr.io/tools/a:latest']);
});
