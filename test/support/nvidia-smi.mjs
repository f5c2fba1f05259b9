// In place of nvidia-smi: cards whose instances are kept in a directory, in the formats that the real one prints (drivers 535 to 580).
// `node nvidia-smi.mjs DIRECTORY WORDS…`. In the directory: `cards.json` (`[{name, mib, mig}]`), `topology` (what `topo -m` prints),
// `instances.json`, and files by which a test changes what it does: `slow` (seconds before an instance is made), `busy` (nothing can be
// removed), `broken` (nothing can be made); it says there that it is `making` one, and that it was asked what is `used`.
import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [directory, ...words] = process.argv.slice(2);
const at = (name) => join(directory, name);
const cards = JSON.parse(readFileSync(at('cards.json'), 'utf8'));
/** Of an H100 with 80 GB: id, name, how many at once, GiB, and where one may begin in the eight parts of its memory, and how many it takes. */
const PROFILES = [
  { id: 19, name: '1g.10gb', most: 7, gib: '9.75', starts: [0, 1, 2, 3, 4, 5, 6], size: 1 },
  { id: 20, name: '1g.10gb+me', most: 1, gib: '9.75', starts: [0, 1, 2, 3, 4, 5, 6], size: 1 },
  { id: 15, name: '1g.20gb', most: 4, gib: '19.62', starts: [0, 2, 4, 6], size: 2 },
  { id: 14, name: '2g.20gb', most: 3, gib: '19.62', starts: [0, 2, 4], size: 2 },
  { id: 9, name: '3g.40gb', most: 2, gib: '39.50', starts: [0, 4], size: 4 },
  { id: 5, name: '4g.40gb', most: 1, gib: '39.50', starts: [0], size: 4 },
  { id: 0, name: '7g.80gb', most: 1, gib: '79.25', starts: [0], size: 8 },
];
const slices = (name) => Number(/^\d+/.exec(name)[0]);
const instances = () =>
  existsSync(at('instances.json')) ? JSON.parse(readFileSync(at('instances.json'), 'utf8')) : [];
const keep = (list) => {
  writeFileSync(at('instances.new'), JSON.stringify(list));
  renameSync(at('instances.new'), at('instances.json'));
};
const print = (text) => process.stdout.write(`${text}\n`);
let locked = false;
const fail = (text, code) => {
  if (locked) rmdirSync(at('lock'));
  print(text);
  process.exit(code);
};
const pad = (value, width) => String(value).padStart(width);

async function alone(work) {
  for (;;) {
    try {
      mkdirSync(at('lock'));
      locked = true;
      break;
    } catch {
      await sleep(10);
    }
  }
  work();
  rmdirSync(at('lock'));
}

function listCards() {
  cards.forEach(({ name }, index) => {
    print(`GPU ${index}: ${name} (UUID: GPU-${index}1111111-2222-3333-4444-555555555555)`);
    instances()
      .filter(({ card }) => card === index)
      .forEach(({ profile, uuid }, i) => {
        print(`  MIG ${profile.padEnd(12)}Device ${pad(i, 2)}: (UUID: ${uuid})`);
      });
  });
}

function query(fields) {
  cards.forEach(({ name, mib, mig }, index) => {
    const values = {
      index,
      name,
      'memory.total': words.includes('--format=csv,noheader,nounits') ? mib : `${mib} MiB`,
      uuid: `GPU-${index}1111111-2222-3333-4444-555555555555`,
      'mig.mode.current': mig ? 'Enabled' : '[N/A]',
      'utilization.gpu': mig ? '[N/A]' : 50,
      'memory.used': 1_000,
    };
    print(fields.map((field) => values[field]).join(', '));
  });
  if (fields.includes('utilization.gpu')) writeFileSync(at('used'), '');
}

function listProfiles() {
  print('+-----------------------------------------------------------------------------+');
  print('| GPU instance profiles:                                                      |');
  print('| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |');
  print('|                              Free/Total   GiB              CE    JPEG  OFA  |');
  print('|=============================================================================|');
  cards.forEach(({ mig }, index) => {
    if (!mig) return;
    for (const { id, name, most, gib } of PROFILES) {
      print(
        `|${pad(index, 4)}  MIG ${name.padEnd(12)}${pad(id, 5)}     ${most}/${most}${pad(gib, 13)}       No     ${pad(16 * slices(name), 2)}     1     0   |`,
      );
      print('|                                                             1     1     0   |');
      print('+-----------------------------------------------------------------------------+');
    }
  });
}

function listInstances(card) {
  const own = instances().filter((one) => one.card === card);
  if (own.length === 0) fail('No GPU instances found: Not Found', 6);
  print('+-------------------------------------------------------+');
  print('| GPU instances:                                        |');
  print('| GPU   Name             Profile  Instance   Placement  |');
  print('|                          ID       ID       Start:Size |');
  print('|=======================================================|');
  for (const { profile, profileId, id, start, size } of own) {
    print(
      `|${pad(card, 4)}  MIG ${profile.padEnd(15)}${pad(profileId, 4)}${pad(id, 9)}${pad(`${start}:${size}`, 13)}     |`,
    );
    print('+-------------------------------------------------------+');
  }
}

async function make(card, profileId) {
  writeFileSync(at('making'), '');
  if (existsSync(at('slow'))) await sleep(1000 * Number(readFileSync(at('slow'), 'utf8')));
  const profile = PROFILES.find(({ id }) => id === profileId);
  await alone(() => {
    const all = instances();
    const own = all.filter((one) => one.card === card);
    const isFree = (start) =>
      own.every((one) => start + profile.size <= one.start || one.start + one.size <= start);
    const start = profile.starts.find(isFree);
    const used = own.reduce((sum, one) => sum + slices(one.profile), 0);
    if (existsSync(at('broken'))) fail('Unable to create a GPU instance: Insufficient Permissions', 4);
    if (start === undefined || used + slices(profile.name) > 7) {
      print(
        `Unable to create a GPU instance on GPU ${pad(card, 2)} using profile ${profileId}: Insufficient Resources`,
      );
      fail('Failed to create GPU instances: Insufficient Resources', 19);
    }
    const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const id = ids.find((one) => own.every((other) => other.id !== one));
    const uuid = `MIG-${card}${id}${start}11111-2222-3333-4444-${pad(process.pid, 12).replaceAll(' ', '0')}`;
    keep([
      ...all,
      { card, id, uuid, profile: profile.name, profileId, start, size: profile.size, compute: true },
    ]);
    const name = `MIG ${profile.name} (ID ${pad(profileId, 2)})`;
    print(`Successfully created GPU instance ID ${pad(id, 2)} on GPU ${pad(card, 2)} using profile ${name}`);
    print(
      `Successfully created compute instance ID  0 on GPU ${pad(card, 2)} GPU instance ID ${pad(id, 2)} using profile ${name}`,
    );
  });
}

async function remove(card, id, what) {
  await alone(() => {
    const all = instances();
    const one = all.find((other) => other.card === card && other.id === id);
    if (one === undefined) fail('No GPU instances found: Not Found', 6);
    if (existsSync(at('busy')))
      fail(
        `Unable to destroy GPU instance ID ${pad(id, 2)} from GPU ${pad(card, 2)}: In use by another client`,
        19,
      );
    if (what === 'compute') {
      keep(all.map((other) => (other === one ? { ...one, compute: false } : other)));
      print(
        `Successfully destroyed compute instance ID  0 from GPU ${pad(card, 2)} GPU instance ID ${pad(id, 2)}`,
      );
      return;
    }
    if (one.compute)
      fail(
        `Unable to destroy GPU instance ID ${pad(id, 2)} from GPU ${pad(card, 2)}: In use by another client`,
        19,
      );
    keep(all.filter((other) => other !== one));
    print(`Successfully destroyed GPU instance ID ${pad(id, 2)} from GPU ${pad(card, 2)}`);
  });
}

const option = (name) => (words.includes(name) ? Number(words[words.indexOf(name) + 1]) : undefined);
const queried = words.find((word) => word.startsWith('--query-gpu='));
if (queried) query(queried.slice('--query-gpu='.length).split(','));
else if (words[0] === 'topo') print(readFileSync(at('topology'), 'utf8'));
else if (words[0] === '-L') listCards();
else if (words.includes('-lgip')) listProfiles();
else if (words.includes('-lgi')) listInstances(option('-i'));
else if (words.includes('-cgi')) await make(option('-i'), option('-cgi'));
else if (words.includes('-dci')) await remove(option('-i'), option('-gi'), 'compute');
else if (words.includes('-dgi')) await remove(option('-i'), option('-gi'), 'gpu');
else fail(`nvidia-smi.mjs: ${words.join(' ')}: not played`, 2);
