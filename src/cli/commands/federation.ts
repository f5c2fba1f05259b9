/** `switchyard peers`, `federate`: other services that jobs are exchanged with. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Client, Document } from '../../client/index.js';
import { given, parseDuration, parseNumber, parseWord } from '../../words/values.js';
import { addCommand, findUser, note, print, printJson, show, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { table, time } from '../format.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';

type Peer = documents.PeerFieldsFragment;

interface Settings {
  forward?: string;
  neededAfter?: string;
  hops?: string;
  lostAfter?: string;
  cap?: string;
  boost?: string;
  user?: string;
  keyOut?: string;
}

const FORWARDING = ['ALWAYS', 'WHEN_NEEDED', 'WHEN_CHEAPER', 'NEVER'] as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: commands and their options, a line each
export function addFederation(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'peers', 'list or change the peers: services that exchange jobs with this one'),
    COLUMNS,
  );
  list.action(async () => {
    const client = connect();
    await showList(
      list,
      COLUMNS,
      async () => (await client.request(documents.FederationPeersDocument, {})).federationPeers,
      (peers) => {
        if (wantsJson(list)) return;
        for (const { name, notOffered } of peers) for (const why of notOffered) note(`${name}: ${why}`);
      },
    );
  });

  const add = withSettings(
    addCommand(
      list,
      'add <name>',
      'register a service as a peer and create a key for its administrators, or change its settings (ADMIN)',
    ),
  );
  add.action((name: string, options: Settings) => federate(add, { name }, options));

  const addAction = <Field extends string>(
    name: string,
    description: string,
    document: Document<Record<Field, { peer: Peer }>, { peer: string }>,
    field: Field,
  ): void => {
    const command = addCommand(list, `${name} <peer>`, description);
    command.action(async (peer: string) => {
      const client = connect();
      const one = await findPeer(client, peer);
      const data = await client.request(document, { peer: one.site.id });
      show(command, data[field].peer, (changed) => peerTable([changed]));
    });
  };
  const { IsolatePeerDocument, RejoinPeerDocument, RemovePeerDocument } = documents;
  addAction(
    'isolate',
    'stop exchanging jobs with a peer; granted runs continue to their end (ADMIN)',
    IsolatePeerDocument,
    'isolatePeer',
  );
  addAction('rejoin', 'end the isolation of a peer (ADMIN)', RejoinPeerDocument, 'rejoinPeer');
  addAction(
    'remove',
    'remove a peer that is isolated and has no jobs left at either service (ADMIN)',
    RemovePeerDocument,
    'removePeer',
  );

  const users = addCommand(
    list,
    'users <peer> [mappings...]',
    'show or change which local users own the jobs of its users (ADMIN)',
  ).addHelpText(
    'after',
    '\nA mapping is a name at the peer and a local user, such as alice=guest-a; alice= removes it.\nExample: switchyard peers users east alice=guest-a bob=',
  );
  users.action(async (name: string, mappings: string[]) => {
    const client = connect();
    let peer = await findPeer(client, name);
    if (mappings.length > 0) {
      const input = { name, users: await Promise.all(mappings.map((one) => mappingOf(client, one))) };
      peer = (await client.request(documents.FederateDocument, { input })).setPeer.peer;
    }
    show(users, { user: peer.user, users: peer.users }, (mapped) =>
      table(
        ['USER THERE', 'USER HERE'],
        [...mapped.users.map((one) => [one.name, one.user.name]), ['all others', mapped.user.name]],
      ),
    );
  });

  const register = withSettings(
    addCommand(
      program,
      'federate <url>',
      'run jobs from the service at this address, with the key that it issued (ADMIN)',
    )
      .requiredOption('--key-file <file>', 'file with the PEER key that it issued; - for standard input')
      .option('--name <name>', 'its local name (default: the host of the address)'),
  );
  register.action((url: string, options: Settings & { keyFile: string; name?: string }) => {
    const name = options.name ?? (URL.canParse(url) ? new URL(url).hostname : '');
    return federate(register, { name, url, key: keyFrom(options.keyFile) }, options);
  });
}

async function findPeer(client: Client, name: string): Promise<Peer> {
  const { federationPeers } = await client.request(documents.FederationPeersDocument, {});
  const peer = federationPeers.find((one) => one.name === name);
  if (peer !== undefined) return peer;
  throw new CliError(
    `there is no peer "${name}"; there are ${federationPeers.map((one) => one.name).join(', ') || 'none'} (NOT_FOUND)`,
    ExitCode.NOT_FOUND,
  );
}

async function mappingOf(client: Client, given: string): Promise<documents.ForeignUserInput> {
  const at = given.lastIndexOf('=');
  if (at < 1)
    throw new CliError(
      `mapping: ${JSON.stringify(given)} is not accepted; accepted: a name at the peer and a local user, such as alice=guest-a, or alice= to remove the mapping`,
      ExitCode.USAGE,
    );
  const user = given.slice(at + 1);
  return { name: given.slice(0, at), userId: user === '' ? null : (await findUser(client, user)).id };
}

const withSettings = (command: Command): Command =>
  command
    .option(
      '--forward <when>',
      `when jobs of this service are offered to it: ${FORWARDING.join(', ')} (default: WHEN_NEEDED)`,
    )
    .option(
      '--needed-after <duration>',
      'WHEN_NEEDED: offer jobs whose predicted wait exceeds this (default: 10m)',
    )
    .option(
      '--hops <count>',
      'how many services a job of this service may pass through, including this one (default: 4)',
    )
    .option(
      '--lost-after <duration>',
      'runs granted to it are lost after it has been silent this long (default: 1h)',
    )
    .option('--cap <jobs>', 'how many of its jobs may be here at the same time (default: 1000)')
    .option('--boost <boost>', 'added to the boost of its jobs here (default: 0)')
    .option(
      '--user <user>',
      'local user to whom its jobs belong, except those mapped by `peers users` (default: a user created for the peer)',
    )
    .option('--key-out <file>', 'write the key created for it to this file instead of the terminal');

async function federate(
  command: Command,
  service: { name: string; url?: string; key?: string },
  options: Settings,
): Promise<void> {
  const client = connect();
  const whole = (option: string, value: string | undefined, min: number, max: number) =>
    value === undefined ? undefined : parseNumber(option, value, { min, max, integer: true });
  const input = {
    ...service,
    forward: given(options.forward, (value) => parseWord('--forward', value, FORWARDING)),
    neededAfterS: given(options.neededAfter, (value) => parseDuration('--needed-after', value)),
    hops: whole('--hops', options.hops, 2, 64),
    lostAfterS: given(options.lostAfter, (value) => parseDuration('--lost-after', value)),
    foreignMax: whole('--cap', options.cap, 0, 100_000),
    foreignBoost: whole('--boost', options.boost, -1000, 1000),
    userId: options.user && (await findUser(client, options.user)).id,
  };
  const data = await client.request(documents.FederateDocument, { input });
  const { peer, secret } = data.setPeer;
  if (secret !== null && options.keyOut !== undefined) {
    writeFileSync(options.keyOut, `${secret}\n`, { mode: 0o600, flag: 'wx' });
    note(`its key is in ${options.keyOut}; give it to the administrators of ${peer.name}`);
  }
  const shown = options.keyOut === undefined ? secret : null;
  if (wantsJson(command)) return printJson({ ...peer, secret: shown });
  print(peerTable([peer]));
  if (shown !== null)
    print(`Its key, shown only this once; give it to the administrators of ${peer.name}:\n${shown}`);
}

function keyFrom(file: string): string {
  try {
    return readFileSync(file === '-' ? '/dev/stdin' : file, 'utf8').trim();
  } catch (error) {
    throw new CliError(`--key-file ${file}: ${(error as Error).message}`, ExitCode.USAGE);
  }
}

const COLUMNS: Columns<Peer> = {
  NAME: ({ name }) => name,
  STATE: ({ isolated, failure }) => (isolated ? 'isolated' : failure !== null ? 'unreachable' : 'joined'),
  FORWARD: ({ forward }) => forward,
  OFFERED: ({ offeredJobs }) => offeredJobs,
  'RUNS FOR US': ({ claimedJobs }) => claimedJobs,
  'ITS JOBS HERE': ({ foreignJobs }) => foreignJobs,
  PROTOCOL: ({ protocol }) => protocol,
  CLASSES: ({ classes }) => classes.join(',') || null,
  'HEARD (UTC)': ({ seenAt }) => time(seenAt),
  'REACHED (UTC)': ({ reachedAt }) => time(reachedAt),
  ADDRESS: ({ url }) => url,
};

const peerTable = (peers: readonly Peer[]): string => tableOf(COLUMNS, peers);
