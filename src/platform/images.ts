/**
 * Names of container images. One image has several, such as `debian` and `docker.io/library/debian:latest`: they are compared by the reference that
 * they stand for, after the rules of Docker (`ParseDockerRef` of github.com/distribution/reference). None of npm's parsers of such names puts a name
 * into this form.
 */
import { MAX } from './limits.js';

/** As registries name them, without what could lead out of a directory of images. */
export const isImageName = (name: string): boolean =>
  name.length <= MAX.nameChars && /^[A-Za-z0-9][\w.:@+-]*(\/[A-Za-z0-9][\w.:@+-]*)*$/.test(name);

export const HUB = 'docker.io';
/** Where names of Docker Hub's official images are. */
const OFFICIAL = 'library/';
const LATEST = ':latest';

/**
 * Where an image comes from: its registry, and the one name that it has there, with a tag or a digest. Any text has one; it is that of the
 * reference, too.
 */
export function atRegistry(name: string): { registry: string; reference: string } {
  const [, first, rest] = /^([^/]*)\/(.*)$/s.exec(name) ?? [];
  // A name in capital letters can only be that of a host.
  const isHost = first !== undefined && (/[.:A-Z]/.test(first) || first === 'localhost');
  const registry = isHost && first !== 'index.docker.io' ? first : HUB;
  const path = isHost ? rest! : name;
  const official = registry === HUB && !path.includes('/') ? OFFICIAL : '';
  return { registry, reference: `${registry}/${official}${versioned(path)}` };
}

/** With its tag, by default the latest, or with its digest alone, which says more. */
function versioned(path: string): string {
  const [, repository, tag = LATEST, digest] = /^((?:.*\/)?[^/:@]*)(:[^/@]*)?(@[^/]*)?$/s.exec(path)!;
  return `${repository}${digest ?? tag}`;
}

/** The one name of an image, however it is written: two names of one image have the same. */
export const referenceOf = (name: string): string => atRegistry(name).reference;

/** All names that a directory of this image may have, the shortest first. */
export function namesOf(name: string): string[] {
  const reference = referenceOf(name);
  const bare = reference.replace(/^docker\.io\/(library\/)?/, '');
  const tagged = bare.endsWith(LATEST) ? [bare.slice(0, -LATEST.length), bare] : [bare];
  const prefixes = ['', OFFICIAL, `${HUB}/`, `${HUB}/${OFFICIAL}`];
  const names = prefixes.flatMap((prefix) => tagged.map((one) => `${prefix}${one}`));
  return names.filter((one) => referenceOf(one) === reference);
}
