/** Names of container images. */

/** Where an image comes from: its registry, and its whole name there. What names no registry is one of Docker Hub. */
export function atRegistry(name: string): { registry: string; reference: string } {
  const [first = '', ...rest] = name.split('/');
  if (rest.length > 0 && /[.:]|^localhost$/.test(first)) return { registry: first, reference: name };
  return { registry: HUB, reference: `${HUB}/${rest.length > 0 ? '' : 'library/'}${name}` };
}

export const HUB = 'docker.io';
