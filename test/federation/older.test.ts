/**
 * Peers of earlier releases, which speak versions 1 and 2 of the protocol: what such services have asked and answered, recorded
 * (recorded/version-1.json and version-2.json), against this one as their guest and as their owner.
 */
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { Kind, parse, type SelectionSetNode } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { portOf } from '../support/ports.js';
import { type Launch, until, withService } from './service.js';

interface Message<A, T> {
  asked: { query: string; variables: A };
  answered: T;
}
interface Offered {
  offer: string;
  job: string;
  request: Record<string, unknown>;
}
interface Exchange {
  after: string;
  protocol: number;
  kinds: object[];
}
interface Exchanged {
  exchangeJobs: { site: string; offers: Offered[] };
}
type Report = Record<string, unknown>;

interface Recorded {
  owner: {
    refusal: { status: number; answer: object };
    /** All that it was asked, and understood. */
    documents: string[];
    offers: Offered[];
    claims: Record<string, object>;
    reportFields: string[];
  };
  guest: {
    Exchange: Message<{ input: Exchange }, Exchanged>;
    Claim: Message<{ offers: string[] }, { claimJobs: { results: object[] } }>;
    Report: Message<{ site: string; reports: Report[] }, { reportRuns: { results: string[] } }>;
  };
}

const ledger: Launch[] = [];
const b = withService('b', ledger);

/** What a document asks for, field by field, whatever fragments they are in. */
function fieldsOf(document: string): string[] {
  const { definitions } = parse(document);
  const walk = (at: string, of?: SelectionSetNode): string[] =>
    (of?.selections ?? []).flatMap((one) => {
      if (one.kind === Kind.INLINE_FRAGMENT) return walk(at, one.selectionSet);
      if (one.kind === Kind.FIELD)
        return [`${at}.${one.name.value}`, ...walk(`${at}.${one.name.value}`, one.selectionSet)];
      const named = definitions.find(
        (known) => known.kind === Kind.FRAGMENT_DEFINITION && known.name.value === one.name.value,
      );
      return walk(at, named?.kind === Kind.FRAGMENT_DEFINITION ? named.selectionSet : undefined);
    });
  return definitions.flatMap((one) =>
    one.kind === Kind.OPERATION_DEFINITION ? walk(one.operation, one.selectionSet) : [],
  );
}

/** A service that owns jobs and speaks an earlier version. */
class OldOwner {
  readonly recorded: Recorded;
  /** What it has not understood, and in which versions that was. */
  readonly strange: string[] = [];
  readonly refused: number[] = [];
  /** All that it was told in exchanges that it understood. */
  readonly exchanges: Exchange[] = [];
  readonly reports: Report[] = [];
  port = 0;
  private readonly understood: ReadonlySet<string>;
  private readonly server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => void pieces.push(piece));
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      if (request.method === 'GET') response.end('not what the catalog says');
      else this.answer(JSON.parse(Buffer.concat(pieces).toString()), response);
    });
  });

  constructor(readonly version: number) {
    const file = packagePath(`test/federation/recorded/version-${version}.json`);
    this.recorded = JSON.parse(readFileSync(file, 'utf8'));
    this.understood = new Set(this.recorded.owner.documents.flatMap(fieldsOf));
  }

  async start(): Promise<void> {
    this.port = await portOf(this.server);
    for (const grant of Object.values(this.recorded.owner.claims) as { inputs: { urls: string[] }[] }[])
      for (const input of grant.inputs)
        input.urls = input.urls.map((url) => url.replace('files.example.org', `127.0.0.1:${this.port}`));
  }

  stop(): void {
    this.server.close();
  }

  private answer({ query, variables }: { query: string; variables: Asked }, response: ServerResponse): void {
    if (fieldsOf(query).every((field) => this.understood.has(field)))
      return void response.end(JSON.stringify({ data: this.answerTo(query, variables) }));
    const { status, answer } = this.recorded.owner.refusal;
    this.strange.push(query);
    this.refused.push(variables.input?.protocol);
    response.writeHead(status).end(JSON.stringify(answer));
  }

  private answerTo(query: string, variables: Asked): object {
    const { owner } = this.recorded;
    if (query.includes('exchangeJobs')) {
      this.exchanges.push(variables.input);
      const offers = variables.input.after === '0' ? owner.offers : [];
      return { exchangeJobs: { service: 'old', site: 'site_2', cursor: '7', more: false, offers } };
    }
    if (query.includes('claimJobs'))
      return { claimJobs: { results: variables.offers.map((one) => owner.claims[one]) } };
    if (query.includes('returnJobs')) return { returnJobs: true };
    this.reports.push(...variables.reports);
    return { reportRuns: { results: variables.reports.map(() => 'ACCEPTED') } };
  }
}
interface Asked {
  input: Exchange;
  offers: string[];
  reports: Report[];
}

const owners = [1, 2].map((version) => new OldOwner(version));
beforeAll(async () => {
  for (const owner of owners) await owner.start();
  const { policy } = await b.must<{ policy: { version: number; document: object } }>(
    '{ policy { version document } }',
  );
  const classes = { spare: { scavenger: true } };
  await b.must(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    {
      input: {
        document: { ...policy.document, classes },
        expectedVersion: policy.version,
        reason: 'a class',
      },
    },
  );
  await b.must('mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }', {
    input: {
      ...{ siteId: b.site, name: 'gpus', cpus: 4, memoryMb: 4_000, benchmark: 100, os: 'other' },
      ...{ architecture: 'x64', devices: [{ id: 'gpu0', kind: 'gpu', model: 'a100' }] },
    },
  });
});
afterAll(() => {
  for (const owner of owners) owner.stop();
});

test.each(owners)(
  'an owner of version $version refuses what it does not know, and is asked and told only what it does',
  async (owner) => {
    const { version, recorded, reports, exchanges } = owner;
    const name = `old-${version}`;
    // Its argument is no number.
    const ran = () => ledger.filter(({ number }) => Number.isNaN(number)).length;
    const before = ran();
    await b.federate({ name, url: `http://127.0.0.1:${owner.port}/graphql`, key: 'key' });
    const [echo, mismatch] = recorded.owner.offers.map(({ offer }) => offer);
    const ended = (cause: string) => reports.some((one) => one.phase === 'ENDED' && one.cause === cause);
    await until('it runs here', () => ran() > before);
    b.runner.finish(Number.NaN);
    await until(`${echo} has ended`, () => ended('EXITED_ZERO'));
    const cause = version === 1 ? 'STAGING_FAILED' : 'INPUT_MISMATCH';
    await until(`${mismatch} has ended, by a cause that its owner knows`, () => ended(cause));
    for (const report of reports)
      expect(recorded.owner.reportFields).toEqual(expect.arrayContaining(Object.keys(report)));
    const { input } = recorded.guest.Exchange.asked.variables;
    for (const exchange of exchanges) {
      expect(Object.keys(input)).toEqual(expect.arrayContaining(Object.keys(exchange)));
      for (const kind of exchange.kinds)
        expect(Object.keys(input.kinds[0]!)).toEqual(expect.arrayContaining(Object.keys(kind)));
    }
    expect(new Set(exchanges.map(({ protocol }) => protocol))).toEqual(new Set([version]));
    expect(new Set(owner.refused)).toEqual(new Set([3, 2].filter((one) => one > version)));
    expect(new Set(owner.strange.map((query) => /exchangeJobs/.test(query)))).toEqual(new Set([true]));
    await b.must('mutation ($peer: ID!) { isolatePeer(input: { siteId: $peer }) { peer { isolated } } }', {
      peer: (await b.peer(name)).site.id,
    });
  },
);

test.each(owners)(
  'a guest of version $version is offered and granted jobs in its own words, and its reports are taken',
  async ({ version, recorded }) => {
    const name = `guest-${version}`;
    const key = (await b.federate({ name, forward: 'ALWAYS' })) as string;
    const from = version * 10;
    const submit = async (number: number, more: object) =>
      (await b.submit([from + number], { os: 'linux', ...more }))[0] as string;
    const job = await submit(1, {});
    const since2 = [await submit(2, { outputs: [{ path: 'out' }] }), await submit(3, { parts: [{}, {}] })];
    const devicesPerTask = [{ kind: 'gpu', model: 'a100' }];
    const since3 = [
      await submit(4, { class: 'spare' }),
      await submit(5, { devicesPerTask }),
      await submit(6, { parts: [{}, { devicesPerTask }] }),
    ];
    const { Exchange, Claim, Report } = recorded.guest;
    const ask = <T>({ query, variables }: { query: string; variables: object }) =>
      b.must<T>(query, variables, key);
    const { exchangeJobs } = await ask<Exchanged>(Exchange.asked);
    expect(exchangeJobs.offers.map((one) => one.job)).toEqual(version === 1 ? [job] : [job, ...since2]);
    const [offered] = exchangeJobs.offers as [Offered];
    const [before] = Exchange.answered.exchangeJobs.offers as [Offered];
    expect(Object.keys(offered.request)).toEqual(Object.keys(before.request));
    const { claimJobs } = await ask<{ claimJobs: { results: { epoch: number }[] } }>({
      ...Claim.asked,
      variables: { offers: [offered.offer] },
    });
    expect(Object.keys(claimJobs.results[0]!)).toEqual(Object.keys(Claim.answered.claimJobs.results[0]!));
    expect(claimJobs.results).toMatchObject([{ outcome: 'GRANTED', epoch: expect.any(Number) }]);
    const granted = { job, epoch: claimJobs.results[0]!.epoch };
    const told = Report.asked.variables.reports.map((report) => ({ ...report, ...granted }));
    const { reportRuns } = await ask<{ reportRuns: { results: string[] } }>({
      ...Report.asked,
      variables: { site: exchangeJobs.site, reports: told },
    });
    expect(reportRuns).toEqual({ results: ['ACCEPTED'] });
    await b.until('its end is known', [job], 'COMPLETED');
    const why = async (id: string) => {
      const { job } = await b.must<{ job: { peers: { peer: { name: string }; reason: string | null }[] } }>(
        `{ job(id: "${id}") { peers { peer { name } reason } } }`,
      );
      return job.peers.find(({ peer }) => peer.name === name)?.reason;
    };
    const older = `It is of an earlier release (version ${version} of the peer protocol), which takes no jobs with`;
    for (const id of since2) expect(await why(id)).toBe(version === 1 ? `${older} outputs or parts.` : null);
    for (const id of since3)
      expect(await why(id)).toBe(`${older} a class, or with devices requested by kind and model.`);
    await b.change('cancelJobs', [...since2, ...since3]);
  },
);
