/** Names of container images. */
import { MAX } from './limits.js';

/** As registries name them, without what could lead out of a directory of images. */
export const isImageName = (name: string): boolean =>
  name.length <= MAX.nameChars && /^[A-Za-z0-9][\w.:@+-]*(\/[A-Za-z0-9][\w.:@+-]*)*$/.test(name);

/** Where an image comes from: its registry, and its whole name there. What names no registry is one of Docker Hub. */
export function atRegistry(name: string): { registry: string; reference: string } {
  const [first = '', ...rest] = name.split('/');
  if (rest.length > 0 && /[.:]|^localhost$/.test(first)) return { registry: first, reference: name };
  return { registry: HUB, reference: `${HUB}/${rest.length > 0 ? '' : 'library/'}${name}` };
}

export const HUB = 'docker.io';
