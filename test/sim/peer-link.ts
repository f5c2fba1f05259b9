/** How one service of a simulation asks another, its peer. */
import type { Viewer } from '../../src/api/auth.js';
import type { ExchangeInput, RunReportInput } from '../../src/api/generated/types.js';
import { ServiceError } from '../../src/client/index.js';
import type { PeerLink } from '../../src/federation/guest.js';
import { Api, viewer } from './api.js';
import type { Wire } from './network.js';
import type { Process } from './time.js';

interface PeerVariables {
  input: ExchangeInput;
  offers: string[];
  site: string;
  reports: (Omit<RunReportInput, 'at'> & { at: string })[];
}

/** As GraphQL writes it. */
const written = <T>(answer: unknown): T =>
  JSON.parse(
    JSON.stringify(answer, (key, value) =>
      key === 'deadline' && typeof value === 'number' ? new Date(value * 1000).toISOString() : value,
    ),
  ) as T;

/** With what it may leave out. */
const asGiven = ({ kinds, classes, load, ...input }: ExchangeInput): ExchangeInput => ({
  ...input,
  kinds: kinds.map((kind) => ({ ...kind, devices: kind.devices ?? [] })),
  ...{ classes: classes ?? [], load: load ?? null },
});

/** As a guest asks a service, for which it is this site. */
export function peerLink(
  current: () => Api,
  { siteId, wire, caller }: { siteId: number; wire: Wire; caller: Process },
): PeerLink {
  const key = (api: Api): Viewer => {
    const peer = api.world.store.federation.peers.get(siteId);
    if (peer === undefined) throw new ServiceError('there is no such key', 'UNAUTHENTICATED');
    return viewer({ role: 'PEER', siteId, userId: peer.userId });
  };
  const ask = async (api: Api, document: string, given: PeerVariables): Promise<unknown> => {
    const { federation, agents, files } = api;
    const who = key(api);
    if (document.includes('exchangeJobs('))
      return {
        exchangeJobs: await federation.exchangeJobs(who, asGiven(given.input)),
      };
    if (document.includes('claimJobs(')) return { claimJobs: await federation.claimJobs(who, given.offers) };
    if (document.includes('returnJobs('))
      return { returnJobs: await federation.returnJobs(who, given.offers) };
    if (document.includes('keepFiles(')) {
      const kept = await files.keepFiles(who, given as never);
      return { keepFiles: kept.map(({ id, received }) => ({ id: String(id), receivedBytes: received })) };
    }
    const reports = given.reports.map((report) => ({ ...report, at: new Date(report.at) }));
    return { reportRuns: { results: await agents.reportRuns(who, given.site, null, reports, null) } };
  };
  return {
    request: async <T>(document: string, variables: object): Promise<T> => {
      const given = written<PeerVariables>(variables);
      return Api.call(current, wire, caller, async (api) => written<T>(await ask(api, document, given)));
    },
    put: async <T>(address: string, body: Buffer, headers: Readonly<Record<string, string>>): Promise<T> => {
      const url = new URL(address, 'http://x');
      const offset = Number(url.searchParams.get('offset'));
      const part = {
        agent: '',
        offset,
        body: Buffer.from(body),
        digest: headers['content-digest'] as string,
      };
      return Api.call(current, wire, caller, async (api) =>
        written<T>(await api.files.receive(key(api), url.pathname.slice('/files/'.length), part)),
      );
    },
  };
}
