/** Devices of a host that jobs can be given: found by the tools of their makers, in `/sys`, or declared in a directory. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findMigCards, type MigCard, type MigCards, slicesOf } from './mig.js';
import { deviceOf, type Placed, unitsOf } from './units.js';

export interface HostDevice {
  id: string;
  kind: string;
  model: string | null;
  memoryMb: number;
  shares: number;
  link: string | null;
  /** All who share it are of one user. */
  oneUser?: true;
  /** What a job opens to use it, below `/dev`. */
  files: string[];
  /** By variable, what names it to libraries. */
  environment: Readonly<Record<string, string>>;
  /** Its shares are made when a run starts. */
  mig?: MigCard;
  /** A tool, or its driver, tells what is used of it ({@link devicesInUse}). */
  told?: boolean;
}

/** What is used of a device at an instant. */
export interface DeviceUse {
  /** The part of the last moments in which it computed, 0 to 1. */
  busy: number;
  memoryMb: number;
}

/** What cards are that are given in slices. */
const MIG = 'mig';

/**
 * By all means; of a kind that is declared in the directory, only what is declared. Devices of one kind have equally many shares: others get
 * a kind with a number. `stateDir`: of the agent, which knows what it has made of them; null: nothing was made.
 */
export async function findDevices(directory: string | null, stateDir: string | null): Promise<HostDevice[]> {
  const declared = directory === null ? [] : declaredDevices(directory);
  const [nvidia, links, amd, fabric, slicing] = await Promise.all([
    output('nvidia-smi', ['--query-gpu=index,name,memory.total,uuid', '--format=csv,noheader,nounits']),
    output('nvidia-smi', ['topo', '-m']),
    output('rocm-smi', ['--showproductname', '--showmeminfo', 'vram', '--json']),
    output('rocm-smi', ['--showtopotype', '--json']),
    findMigCards(stateDir),
  ]);
  const told = [...nvidiaDevices(nvidia ?? '', links ?? '', slicing), ...amdDevices(amd ?? '', fabric ?? '')];
  const kinds = new Set(declared.map(({ kind }) => kind));
  const found = told.length > 0 ? told : sysDevices('/sys');
  return [...declared, ...apart(found.filter(({ kind }) => !kinds.has(kind)))];
}

/** Lines of an index, a name, MiB and an id. What is no such line is left out. `links`: how the cards are joined. */
export function nvidiaDevices(
  text: string,
  links = '',
  { cards, foreign }: MigCards = { cards: new Map(), foreign: new Set() },
): HostDevice[] {
  const groups = linkGroups(links);
  return text.split('\n').flatMap((line): HostDevice | [] => {
    const [, index, name, mib, uuid] = /^(\d+), (.+), (\d+), (\S+)$/.exec(line.trim()) ?? [];
    if (index === undefined || name === undefined || uuid === undefined || foreign.has(index)) return [];
    const device = gpu(index, name, (Number(mib) * (1 << 20)) / 1e6);
    // The card, and what all cards are opened by.
    const files = [`/dev/nvidia${index}`, '/dev/nvidiactl', '/dev/nvidia-uvm', '/dev/nvidia-uvm-tools'];
    const mig = cards.get(index);
    if (mig) return { ...device, kind: MIG, ...slicesOf(mig), files, environment: {}, mig };
    const link = groups.get(`GPU${index}`) ?? null;
    return { ...device, link, files, environment: { CUDA_VISIBLE_DEVICES: uuid }, told: true };
  });
}

/** Sequences for terminals. */
const UNDERLINE = new RegExp(`${String.fromCharCode(27)}\\[\\d*m`, 'g');

/** By card, the group of those that NVLinks join, also by way of others, as `nvidia-smi topo -m` shows it; none for a card without any. */
export function linkGroups(text: string): Map<string, string> {
  // The names of the columns are underlined.
  const [head = [], ...rows] = text
    .replaceAll(UNDERLINE, '')
    .split('\n')
    .map((line) => line.split('\t').map((cell) => cell.trim()));
  return joinedIn(
    rows.flatMap(([name = '', ...cells]): Joined[] => {
      const joined = cells.flatMap((cell, i) => (/^NV\d+$/.test(cell) ? (head[i + 1] as string) : []));
      const isCard = /^GPU\d+$/.test(name) && joined.length > 0;
      return isCard ? [{ cards: [name, ...joined], group: `nvlink${name.slice('GPU'.length)}` }] : [];
    }),
  );
}

/** Cards that are joined; a group of them that is not known yet has this name. */
interface Joined {
  cards: readonly string[];
  group: string;
}

/** By card, its group: those that are joined by way of others too. */
function joinedIn(all: readonly Joined[]): Map<string, string> {
  const groups = new Map<string, string>();
  for (const { cards, group: name } of all) {
    const known = cards.flatMap((one) => groups.get(one) ?? []);
    const group = known[0] ?? name;
    for (const [one, of] of groups) if (known.includes(of)) groups.set(one, group);
    for (const one of cards) groups.set(one, group);
  }
  return groups;
}

/**
 * By index, the group of cards that Infinity Fabric (XGMI) joins, also by way of others, as `rocm-smi --showtopotype --json` shows it:
 * `{"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI", …}}`, each pair once. None for a card that has none.
 */
export function fabricGroups(text: string): Map<string, string> {
  let told: { system?: Record<string, string> };
  try {
    told = JSON.parse(text);
  } catch {
    return new Map();
  }
  return joinedIn(
    Object.entries(told.system ?? {}).flatMap(([name, type]): Joined[] => {
      const [, one, other] = /\bLink type between DRM devices (\d+) and (\d+)$/i.exec(name) ?? [];
      const isJoined = one !== undefined && other !== undefined && one !== other && type === 'XGMI';
      return isJoined ? [{ cards: [one, other], group: `xgmi${one}` }] : [];
    }),
  );
}

/** `{"card0": {"Card Series": …, "VRAM Total Memory (B)": …}, …}`. `links`: how the cards are joined. */
export function amdDevices(text: string, links = ''): HostDevice[] {
  const groups = fabricGroups(links);
  return amdCards(text).flatMap(([index, facts]) => {
    const bytes = Number(facts['VRAM Total Memory (B)']);
    if (!(bytes > 0)) return [];
    const model = facts['Card Series'] ?? facts['Card series'] ?? facts['Card Model'] ?? '';
    return {
      ...gpu(index, model, bytes / 1e6),
      link: groups.get(index) ?? null,
      files: ['/dev/kfd', `/dev/dri/renderD${128 + Number(index)}`],
      environment: { ROCR_VISIBLE_DEVICES: index },
      told: true,
    };
  });
}

/** By index, what rocm-smi tells of each card; what is no such answer is left out. */
function amdCards(text: string): [index: string, facts: Record<string, string>][] {
  let cards: Record<string, Record<string, string>>;
  try {
    cards = JSON.parse(text);
  } catch {
    return [];
  }
  return Object.entries(cards).flatMap(([card, facts]): [string, Record<string, string>][] => {
    const index = /^card(\d+)$/.exec(card)?.[1];
    return index === undefined ? [] : [[index, facts]];
  });
}

/** Cards whose driver tells their memory, where no tool of their maker is installed. `root`: of the file system that tells. */
export const sysDevices = (root: string): HostDevice[] =>
  sysCards(root).map(({ bytes, read }, place) => ({
    ...gpu(String(place), `${read('vendor') ?? ''}:${read('device') ?? ''}`, bytes / 1e6),
    link: hiveOf(read),
    files: ['/dev/kfd', `/dev/dri/renderD${128 + place}`],
    environment: { ROCR_VISIBLE_DEVICES: String(place) },
    told: read('gpu_busy_percent') !== null,
  }));

/** Cards that Infinity Fabric (XGMI) joins are of one hive; 0 and none: the card has no such links. */
function hiveOf(read: (file: string) => string | null): string | null {
  const hive = read('xgmi_hive_info/xgmi_hive_id');
  return hive === null || /^(0x)?0*$/i.test(hive) ? null : `hive${hive.slice(0, 100)}`;
}

/** Cards with memory of their own, in order. */
function sysCards(root: string): { bytes: number; read: (file: string) => string | null }[] {
  const cards = join(root, 'class', 'drm');
  let names: string[];
  try {
    names = readdirSync(cards).filter((name) => /^card\d+$/.test(name));
  } catch {
    return [];
  }
  return names
    .sort((a, b) => Number(a.slice('card'.length)) - Number(b.slice('card'.length)))
    .map((name) => {
      const read = (file: string): string | null => {
        try {
          return readFileSync(join(cards, name, 'device', file), 'utf8').trim();
        } catch {
          return null;
        }
      };
      return { bytes: Number(read('mem_info_vram_total')), read };
    })
    .filter(({ bytes }) => bytes > 0);
}

/** What is used of the host's devices, by id, by the tools that found them ({@link findDevices}). */
export async function devicesInUse(): Promise<Map<string, DeviceUse>> {
  const [nvidia, amd] = await Promise.all([
    output('nvidia-smi', ['--query-gpu=index,utilization.gpu,memory.used', '--format=csv,noheader,nounits']),
    output('rocm-smi', ['--showuse', '--showmeminfo', 'vram', '--json']),
  ]);
  const told = [...nvidiaUse(nvidia ?? ''), ...amdUse(amd ?? '')];
  return new Map(told.length > 0 ? told : sysUse('/sys'));
}

/** Lines of an index, a percentage and MiB. What is no such line, as where a card tells neither, is left out. */
export const nvidiaUse = (text: string): [id: string, use: DeviceUse][] =>
  text.split('\n').flatMap((line): [string, DeviceUse][] => {
    const [, index, percent, mib] = /^(\d+), (\d+), (\d+)$/.exec(line.trim()) ?? [];
    if (index === undefined) return [];
    return used(index, Number(percent), Number(mib) * (1 << 20));
  });

/** `{"card0": {"GPU use (%)": …, "VRAM Total Used Memory (B)": …}, …}`. */
export const amdUse = (text: string): [id: string, use: DeviceUse][] =>
  amdCards(text).flatMap(([index, facts]) =>
    used(index, Number(facts['GPU use (%)']), Number(facts['VRAM Total Used Memory (B)'])),
  );

export const sysUse = (root: string): [id: string, use: DeviceUse][] =>
  sysCards(root).flatMap(({ read }, place) =>
    used(String(place), Number(read('gpu_busy_percent') ?? NaN), Number(read('mem_info_vram_used') ?? NaN)),
  );

/** None where one of them is no number. */
const used = (index: string, percent: number, bytes: number): [id: string, use: DeviceUse][] =>
  percent >= 0 && bytes >= 0
    ? [[`gpu${index}`, { busy: Math.min(1, percent / 100), memoryMb: bytes / 1e6 }]]
    : [];

const gpu = (index: string, model: string, memoryMb: number) => ({
  ...{ id: `gpu${index}`, kind: 'gpu', memoryMb: Math.round(memoryMb), shares: 1, link: null },
  model: model.trim().slice(0, 200) || null,
});

/** Of each kind, that of the first ones stays; others that are shared as none before get the next number. */
function apart(devices: readonly HostDevice[]): HostDevice[] {
  const shared = new Map<string, number[]>();
  return devices.map((device) => {
    const { kind, shares } = device;
    const known = shared.get(kind) ?? [];
    if (!known.includes(shares)) known.push(shares);
    shared.set(kind, known);
    const place = known.indexOf(shares);
    return place === 0 ? device : { ...device, kind: `${kind}${place + 1}` };
  });
}

/**
 * A file `ID.json` for each, with `kind`, and perhaps `model`, `memoryMb`, `shares`, `link`, `oneUser`, `files` and `environment`.
 *
 * @throws Error that names the file, the field and what is accepted
 */
export function declaredDevices(directory: string): HostDevice[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => declared(join(directory, name), name.slice(0, -'.json'.length)));
}

function declared(path: string, id: string): HostDevice {
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}; accepted: a JSON object`);
  }
  const field = <T>(name: string, otherwise: T, fits: (value: unknown) => boolean, accepted: string): T => {
    const value = given[name] ?? otherwise;
    if (!fits(value)) throw new Error(`${path}: ${name} is ${JSON.stringify(value)}; accepted: ${accepted}`);
    return value as T;
  };
  const text = (value: unknown): boolean => typeof value === 'string' && value !== '' && value.length <= 200;
  const whole =
    (least: number) =>
    (value: unknown): boolean =>
      Number.isInteger(value) && (value as number) >= least;
  return {
    id,
    kind: field('kind', '', text, 'a name'),
    model: field<string | null>('model', null, (value) => value === null || text(value), 'a name'),
    memoryMb: field('memoryMb', 0, whole(0), 'MB, a whole number from 0'),
    shares: field('shares', 1, whole(1), 'a whole number from 1'),
    link: field<string | null>('link', null, (value) => value === null || text(value), 'a name'),
    ...(field('oneUser', false, (value) => typeof value === 'boolean', 'true or false')
      ? { oneUser: true as const }
      : {}),
    files: field<string[]>(
      'files',
      [],
      (value) =>
        Array.isArray(value) &&
        value.every((file) => /^\/dev\/[^\0]+$/.test(String(file)) && !/(^|\/)\.\.(\/|$)/.test(String(file))),
      'a list of paths below /dev',
    ),
    environment: field(
      'environment',
      {},
      (value) =>
        typeof value === 'object' &&
        value !== null &&
        Object.entries(value).every(
          ([name, one]) => /^[A-Za-z_]\w*$/.test(name) && typeof one === 'string' && !one.includes('\0'),
        ),
      'an object of variables and texts',
    ),
  };
}

/** What a program writes; null where there is none, or it fails. */
const output = (program: string, args: string[]): Promise<string | null> =>
  new Promise((resolve) => {
    execFile(program, args, { timeout: 10_000 }, (error, stdout) => resolve(error ? null : stdout));
  });

/** What one run has of the host's devices: the units of its task, in order. */
export function devicesOf(
  placed: Placed,
  host: readonly HostDevice[],
): { units: readonly string[]; files: string[]; environment: Record<string, string> } {
  const units = unitsOf(placed);
  const byId = new Map(host.map((device) => [device.id, device]));
  const held = [...new Set(units.map(deviceOf))].map((id) => {
    const device = byId.get(id);
    if (device === undefined) throw new Error(`device ${id} is not on this host`);
    return device;
  });
  const environment: Record<string, string> = {};
  for (const device of held)
    for (const [name, value] of Object.entries(device.environment))
      environment[name] = name in environment ? `${environment[name]},${value}` : value;
  if (units.length > 0) environment.SWITCHYARD_DEVICES = units.join(',');
  return { units, files: [...new Set(held.flatMap(({ files }) => files))], environment };
}
