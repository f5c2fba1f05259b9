/** What an entry of the audit log is about, as people call it. */
import type { AuditRow } from '../../store/rows.js';
import type { Loaders } from '../loaders.js';

type Named = { name: string | null } | { kind: string } | null | undefined;

const NUMBERED = /^([a-z]+)_(\d+)(?:_(\d+))?$/;

const FIND: Readonly<Record<string, (loaders: Loaders, id: number) => Promise<Named>>> = {
  site: (loaders, id) => loaders.findSite(id),
  user: (loaders, id) => loaders.findUser(id),
  machine: (loaders, id) => loaders.findMachine(id),
  license: (loaders, id) => loaders.findLicense(id),
  group: (loaders, id) => loaders.findGroup(id),
  dataset: async (loaders, id) => loaders.dataset(id),
  hold: (loaders, id) => loaders.hold(id),
  scheduler: async (loaders, id) => loaders.scheduler(id),
};

const nameIn = (value: unknown): string | null => {
  const { name, kind } = (value ?? {}) as { name?: unknown; kind?: unknown };
  return typeof name === 'string' ? name : typeof kind === 'string' ? kind : null;
};

/** Its name today; of what has been removed since, as the entry knew it. Null: it has none. */
export async function targetName(
  { target, before, after }: AuditRow,
  loaders: Loaders,
): Promise<string | null> {
  const [, type = '', id, to] = NUMBERED.exec(target) ?? [];
  if (type === 'link') {
    const ends = await Promise.all([id, to].map((site) => loaders.findSite(Number(site))));
    return ends.map((site, i) => site?.name ?? `site ${i === 0 ? id : to}`).join(' → ');
  }
  const found = await FIND[type]?.(loaders, Number(id)).catch(() => null);
  return nameIn(found) ?? nameIn(after) ?? nameIn(before);
}

/** Id of the site that it is, or that it is at; null: of none. */
export async function targetSiteId({ target }: AuditRow, loaders: Loaders): Promise<number | null> {
  const [, type = '', id] = NUMBERED.exec(target) ?? [];
  if (type === 'site') return Number(id);
  if (type === 'machine') return (await loaders.findMachine(Number(id)))?.siteId ?? null;
  if (type === 'license') return (await loaders.findLicense(Number(id)))?.siteId ?? null;
  if (type === 'hold') return (await loaders.hold(Number(id)))?.siteId ?? null;
  return null;
}
