/**
 * A peer of the release before, which speaks version 1 of the protocol: what such a service has asked and answered, recorded
 * (recorded/version-1.json), against this one as its guest and as its owner.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
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

const recorded = JSON.parse(readFileSync(packagePath('test/federation/recorded/version-1.json'), 'utf8')) as {
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
};

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

const understood = new Set(recorded.owner.documents.flatMap(fieldsOf));
const strange: string[] = [];
/** All that it was told in exchanges that it understood. */
const exchanges: Exchange[] = [];
const refused: number[] = [];
const reports: Report[] = [];
const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => void pieces.push(piece));
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'GET') return response.end('not what the catalog says');
    const { query, variables } = JSON.parse(Buffer.concat(pieces).toString());
    if (!fieldsOf(query).every((field) => understood.has(field))) {
      strange.push(query);
      const { status, answer } = recorded.owner.refusal;
      refused.push(variables.input?.protocol);
      return response.writeHead(status).end(JSON.stringify(answer));
    }
    const data = answerTo(query, variables);
    return response.end(JSON.stringify({ data }));
  });
});

function answerTo(
  query: string,
  variables: { input: Exchange; offers: string[]; reports: Report[] },
): object {
  if (query.includes('exchangeJobs')) {
    exchanges.push(variables.input);
    const { offers } = recorded.owner;
    const isNews = variables.input.after === '0';
    const answer = { service: 'old', site: 'site_2', cursor: '2', more: false, offers: isNews ? offers : [] };
    return { exchangeJobs: answer };
  }
  if (query.includes('claimJobs'))
    return { claimJobs: { results: variables.offers.map((one) => recorded.owner.claims[one]) } };
  if (query.includes('returnJobs')) return { returnJobs: true };
  reports.push(...variables.reports);
  return { reportRuns: { results: variables.reports.map(() => 'ACCEPTED') } };
}

let port = 0;
beforeAll(async () => {
  port = await portOf(server);
  for (const grant of Object.values(recorded.owner.claims) as { inputs: { urls: string[] }[] }[])
    for (const input of grant.inputs)
      input.urls = input.urls.map((url) => url.replace('files.example.org', `127.0.0.1:${port}`));
});
afterAll(() => void server.close());

test('an owner of version 1 refuses what it does not know, and is asked and told only what it does', async () => {
  await b.federate({ name: 'old', url: `http://127.0.0.1:${port}/graphql`, key: 'key' });
  const [echo, mismatch] = recorded.owner.offers.map(({ offer }) => offer);
  const ended = (cause: string) => reports.some((one) => one.phase === 'ENDED' && one.cause === cause);
  // Its argument is no number.
  await until('it runs here', () => ledger.some(({ number }) => Number.isNaN(number)));
  b.runner.finish(Number.NaN);
  await until(`${echo} has ended`, () => ended('EXITED_ZERO'));
  await until(`${mismatch} has ended, by a cause that its owner knows`, () => ended('STAGING_FAILED'));
  for (const report of reports)
    expect(recorded.owner.reportFields).toEqual(expect.arrayContaining(Object.keys(report)));
  const { input } = recorded.guest.Exchange.asked.variables;
  for (const exchange of exchanges) {
    expect(Object.keys(input)).toEqual(expect.arrayContaining(Object.keys(exchange)));
    for (const kind of exchange.kinds)
      expect(Object.keys(input.kinds[0]!)).toEqual(expect.arrayContaining(Object.keys(kind)));
  }
  expect(new Set(refused)).toEqual(new Set([2]));
  expect(new Set(strange.map((query) => /exchangeJobs/.test(query)))).toEqual(new Set([true]));
  await b.must('mutation ($peer: ID!) { isolatePeer(peer: $peer) { isolated } }', {
    peer: (await b.peer('old')).site.id,
  });
});

test('a guest of version 1 is offered and granted jobs in its own words, and its reports are taken', async () => {
  const key = (await b.federate({ name: 'guest', forward: 'ALWAYS' })) as string;
  const [job, withOutput, withParts] = (await Promise.all([
    b.submit([1], { os: 'linux' }),
    b.submit([2], { os: 'linux', outputs: [{ path: 'out' }] }),
    b.submit([3], { os: 'linux', parts: [{}, {}] }),
  ])) as [[string], [string], [string]];
  const { Exchange, Claim, Report } = recorded.guest;
  const ask = <T>({ query, variables }: { query: string; variables: object }) =>
    b.must<T>(query, variables, key);
  const { exchangeJobs } = await ask<Exchanged>(Exchange.asked);
  expect(exchangeJobs.offers.map((one) => one.request.request)).toEqual([
    expect.stringContaining(`/${job[0].slice('job_'.length)}/`),
  ]);
  const [offered] = exchangeJobs.offers as [Offered];
  const [before] = Exchange.answered.exchangeJobs.offers as [Offered];
  expect(Object.keys(offered.request)).toEqual(Object.keys(before.request));
  const { claimJobs } = await ask<{ claimJobs: { results: { epoch: number }[] } }>({
    ...Claim.asked,
    variables: { offers: [offered.offer] },
  });
  expect(Object.keys(claimJobs.results[0]!)).toEqual(Object.keys(Claim.answered.claimJobs.results[0]!));
  expect(claimJobs.results).toMatchObject([{ outcome: 'GRANTED', epoch: expect.any(Number) }]);
  const granted = { job: job[0], epoch: claimJobs.results[0]!.epoch };
  const told = Report.asked.variables.reports.map((report) => ({ ...report, ...granted }));
  const { reportRuns } = await ask<{ reportRuns: { results: string[] } }>({
    ...Report.asked,
    variables: { site: exchangeJobs.site, reports: told },
  });
  expect(reportRuns).toEqual({ results: ['ACCEPTED'] });
  await b.until('its end is known', job, 'COMPLETED');
  for (const [id] of [withOutput, withParts]) {
    const { job } = await b.must<{ job: { peers: { peer: { name: string }; reason: string }[] } }>(
      `{ job(id: "${id}") { peers { peer { name } reason } } }`,
    );
    expect(job.peers.find(({ peer }) => peer.name === 'guest')?.reason).toMatch(
      /earlier release .*no jobs with outputs or parts/,
    );
  }
  await b.change('cancelJobs', [...withOutput, ...withParts]);
});
