/** Who serves which machines: agents register, take leases, and renew them. */
import { countsOf } from '../../core/resources/units.js';
import { MAX } from '../../platform/limits.js';
import { list, table } from '../columns.js';
import { type Database, type Transaction, transaction } from '../pool.js';
import { type ClaimedMachine, claim, serviceReport } from '../rules.js';
import { type Sql, sql } from '../sql.js';
import { type Connection, prepared, rows, run, value } from '../statement.js';
import type {
  AgentBeat,
  AgentRegistration,
  HeartbeatOutcome,
  LeasedMachine,
  MachineClaim,
  RegistrationOutcome,
} from '../store.js';
import { insertAudit } from './audit.js';
import { reportRuns } from './reports.js';
import { type LostRun, lostWith } from './tasks.js';

type Db = Pick<Database, 'pool'>;
/** At once; a machine where runs are left is refused until the next time. */
const ORPHANS_MAX = 10_000;
/** A site is said to have been heard of at most this often: the rows of sites are what cycles lock. */
const SITE_SEEN_S = 2;

export async function registerAgent(
  database: Db,
  registration: AgentRegistration,
  now: number,
  maxAttempts: number,
): Promise<RegistrationOutcome> {
  // Before the lease changes hands, for what its former holder has started must not be given to anybody again. Nothing new
  // begins on these machines meanwhile: they are silent.
  const orphans = await findOrphans(database.pool, registration);
  const reports = orphans.map(({ machine, host, ...run }) =>
    serviceReport(
      run,
      now,
      'LOST',
      `machine ${machine} moved from the agent on ${host} to another agent, on ${registration.host}`,
    ),
  );
  const lost = await reportRuns(database, { siteId: null, reports, maxAttempts });
  const outcome = await transaction(database, async (tx): Promise<Omit<RegistrationOutcome, 'touched'>> => {
    await seeSites(tx, [registration.siteId], now);
    const agentId = await putAgent(tx, registration, now);
    if (typeof agentId === 'string') return { agentId, machines: [], changed: false };
    const made = await makeMachines(tx, registration);
    if (made.length > 0 && registration.audit)
      await insertAudit(tx, { ...registration.audit, after: { machines: made } });
    const found = await lockClaimed(tx, registration);
    const decided = found.map((machine) => claim(registration, agentId, machine, now));
    const taken = decided.filter(({ refused }) => refused === null);
    const changed = taken.filter((one) => one.changed);
    if (changed.length > 0) await takeLeases(tx, agentId, changed, now);
    const missing = missingOf(registration, found);
    const refusals = decided
      .flatMap(({ refused }) => refused ?? [])
      .concat(missing.map(({ refused }) => refused));
    await noteProblem(tx, agentId, refusals);
    const machines: LeasedMachine[] = decided.map(({ machineId, name, refused, problem }) => ({
      ...{ machineId, name, refused, problem },
    }));
    return { agentId, machines: [...machines, ...missing], changed: changed.length > 0 || made.length > 0 };
  });
  return { ...outcome, touched: lost.touched };
}

/** Which machines of the site are meant, of machines as m. */
function claimed({ siteId, machines }: AgentRegistration): Sql {
  const inService = sql`m.site_id = ${siteId}::integer AND m.removed_at IS NULL`;
  if (machines === null) return inService;
  const names = list(
    'text',
    machines.map(({ name }) => name),
  );
  return sql`${inService} AND m.name = ANY (${names})`;
}

const missingOf = (
  { machines }: AgentRegistration,
  found: readonly ClaimedMachine[],
): (LeasedMachine & { refused: string })[] => {
  const known = new Set(found.map(({ name }) => name));
  return (machines ?? [])
    .filter(({ name }) => !known.has(name))
    .map(({ name }) => ({
      machineId: null,
      name,
      refused: `there is no machine ${name} at the site`,
      problem: null,
    }));
};

/** Live runs, or their tasks, on machines that nobody serves any more and that this agent would take over from another. */
function findOrphans(
  connection: Connection,
  all: AgentRegistration,
): Promise<(LostRun & { host: string })[]> {
  const registration = { ...all, machines: all.machines?.filter(({ waits }) => waits === null) ?? null };
  return rows(
    connection,
    prepared(sql`
WITH gone AS MATERIALIZED (
  SELECT m.id, m.site_id, m.name, a.host FROM machines m JOIN agents a ON a.id = m.agent_id AND a.identity <> ${registration.identity}
   WHERE ${claimed(registration)} AND m.silent
) ${lostWith(ORPHANS_MAX, sql`, gone.host`)}`),
  );
}

/** The latest instance speaks for the agent. */
async function putAgent(
  tx: Transaction,
  agent: AgentRegistration,
  now: number,
): Promise<RegistrationOutcome['agentId']> {
  const at = sql`to_timestamp(${now}::float8)`;
  const known = sql`EXISTS (SELECT FROM agents WHERE site_id = ${agent.siteId} AND identity = ${agent.identity})`;
  const id = await value<number | null>(
    tx,
    prepared(sql`
INSERT INTO agents AS a (site_id, identity, instance, host, version, protocol, simulated, registered_at, seen_at)
  SELECT ${agent.siteId}::integer, ${agent.identity}::text, ${agent.instance}::text, ${agent.host}::text, ${agent.version}::text,
         ${agent.protocol}::integer, ${agent.simulated}::boolean, ${at}, ${at}
   WHERE ${known} OR (SELECT count(*) FROM agents WHERE site_id = ${agent.siteId}) < ${MAX.siteAgents}
  ON CONFLICT (site_id, identity) DO UPDATE SET instance = excluded.instance, host = excluded.host, version = excluded.version,
    protocol = excluded.protocol, simulated = excluded.simulated, seen_at = greatest(a.seen_at, excluded.seen_at),
    registered_at = CASE WHEN a.instance = excluded.instance THEN a.registered_at ELSE excluded.registered_at END,
    superseded = CASE WHEN a.instance = excluded.instance THEN a.superseded ELSE (a.instance || a.superseded)[1:8] END
    WHERE excluded.instance <> ALL (a.superseded)
  RETURNING id AS v`),
  );
  return id ?? ((await value(tx, sql`SELECT ${known} AS v`)) ? 'superseded' : 'too-many');
}

/** Machines that have been measured and that nobody has registered are as they were measured. Answers their names. */
async function makeMachines(tx: Transaction, { siteId, machines }: AgentRegistration): Promise<string[]> {
  const measured = (machines ?? []).filter((one) => one.measured !== null);
  if (measured.length === 0) return [];
  const items = table('t', measured, {
    name: ['text', ({ name }) => name],
    cpus: ['integer', (one) => one.measured!.cpus],
    memory_mb: ['integer', (one) => one.measured!.memoryMb],
    benchmark: ['float8', (one) => one.measured!.benchmark],
    os: ['text', (one) => one.measured!.os],
    architecture: ['text', (one) => one.measured!.architecture],
    devices: ['text', (one) => JSON.stringify(one.measured!.devices ?? [])],
    resources: ['text', (one) => JSON.stringify(countsOf(one.measured!.devices ?? []))],
  });
  const made = await rows<{ name: string }>(
    tx,
    sql`
INSERT INTO machines (site_id, name, cpus, memory_mb, benchmark, os, architecture, devices, resources, power_measured)
  SELECT ${siteId}::integer, name, cpus, memory_mb, benchmark, os, architecture, devices::jsonb, resources::jsonb, true FROM ${items}
   WHERE NOT EXISTS (SELECT FROM machines m WHERE m.site_id = ${siteId}::integer AND m.name = t.name AND m.removed_at IS NULL)
   ORDER BY place
  ON CONFLICT (site_id, name) WHERE removed_at IS NULL DO NOTHING RETURNING name`,
  );
  return made.map(({ name }) => name);
}

/** In the order of ids, with who holds or held them. */
function lockClaimed(tx: Transaction, registration: AgentRegistration): Promise<ClaimedMachine[]> {
  return rows(
    tx,
    prepared(sql`
SELECT m.id AS "machineId", m.name, m.agent_id AS "agentId", m.silent, m.cpus, m.memory_mb AS "memoryMb", m.os, m.architecture,
       m.problem, m.measured, m.devices, a.host AS "holderHost", extract(epoch FROM a.seen_at)::float8 AS "holderSeenAt",
       m.agent_id IS NOT NULL AND a.identity <> ${registration.identity}
         AND EXISTS (SELECT FROM runs r WHERE r.site_id = m.site_id AND r.ended_at IS NULL AND m.id = ANY (r.machine_ids)) AS busy
  FROM machines m LEFT JOIN agents a ON a.id = m.agent_id
 WHERE ${claimed(registration)} ORDER BY m.id FOR NO KEY UPDATE OF m`),
  );
}

type Taken = Pick<MachineClaim, 'measured' | 'problem'> & { machineId: number };

/** Writes an event for each. */
function takeLeases(tx: Transaction, agentId: number, taken: readonly Taken[], now: number): Promise<number> {
  const items = table('t', taken, {
    id: ['integer', ({ machineId }) => machineId],
    measured: ['text', ({ measured }) => measured && JSON.stringify(measured)],
    problem: ['text', ({ problem }) => problem],
  });
  return run(
    tx,
    sql`
UPDATE machines m SET agent_id = ${agentId}, silent = false, problem = t.problem, measured = t.measured::jsonb,
    benchmark = CASE WHEN m.power_measured THEN coalesce((t.measured::jsonb ->> 'benchmark')::float8, m.benchmark) ELSE m.benchmark END,
    measured_at = CASE WHEN m.measured IS DISTINCT FROM t.measured::jsonb THEN to_timestamp(${now}::float8) ELSE m.measured_at END
  FROM ${items} WHERE m.id = t.id`,
  );
}

function noteProblem(tx: Transaction, agentId: number, refusals: readonly string[]): Promise<number> {
  const problem = refusals.length === 0 ? null : refusals.slice(0, 10).join('; ');
  return run(
    tx,
    sql`UPDATE agents SET problem = ${problem} WHERE id = ${agentId} AND problem IS DISTINCT FROM ${problem}::text`,
  );
}

// Renewing ------------------------------------------------------------------------------------------------------------------

/** All beats that have come together: one statement for a thousand agents. */
export function heartbeat(database: Db, beats: readonly AgentBeat[], now: number): Promise<HeartbeatOutcome> {
  return transaction(database, async (tx): Promise<HeartbeatOutcome> => {
    const [known, back] = await value<[known: number[], back: [id: number, siteId: number][]]>(
      tx,
      prepared(renewed(beats, now)),
    );
    await seeSites(tx, [...new Set(beats.map(({ siteId }) => siteId))], now);
    if (back.length > 0)
      await run(
        tx,
        setSilent(
          back.map(([id]) => id),
          false,
        ),
      );
    const good = new Set(known);
    const others = beats.filter((_, i) => !good.has(i + 1)).map(({ agentId }) => agentId);
    // An instance that is not among those before this one has to register again: the database may have been restored to before it did.
    const superseded = new Set(
      others.length === 0
        ? []
        : (
            await rows<{ instance: string }>(
              tx,
              sql`SELECT unnest(superseded) AS instance FROM agents WHERE id = ANY (${list('integer', others)})`,
            )
          ).map(({ instance }) => instance),
    );
    return {
      answers: beats.map(({ instance }, i) =>
        good.has(i + 1) ? 'known' : superseded.has(instance) ? 'superseded' : 'unknown',
      ),
      touched: [...new Set(back.map(([, siteId]) => siteId))],
    };
  });
}

/** Locks agents and then their silent machines, each in the order of ids. */
const renewed = (beats: readonly AgentBeat[], now: number): Sql => {
  const items = table('t', beats, {
    id: ['integer', ({ agentId }) => agentId],
    site_id: ['integer', ({ siteId }) => siteId],
    instance: ['text', ({ instance }) => instance],
  });
  return sql`
WITH agent AS MATERIALIZED (
  SELECT a.id, t.place FROM agents a JOIN ${items} ON t.id = a.id AND t.site_id = a.site_id AND t.instance = a.instance
   ORDER BY a.id FOR NO KEY UPDATE OF a
), seen AS (
  UPDATE agents a SET seen_at = greatest(a.seen_at, to_timestamp(${now}::float8)) WHERE id IN (SELECT id FROM agent)
), back AS MATERIALIZED (
  SELECT id, site_id FROM machines
   WHERE agent_id IN (SELECT id FROM agent) AND silent AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array((SELECT coalesce(json_agg(place), '[]') FROM agent),
  (SELECT coalesce(json_agg(json_build_array(id, site_id)), '[]') FROM back)) AS v`;
};

const seeSites = (tx: Transaction, siteIds: readonly number[], now: number): Promise<number> =>
  run(
    tx,
    prepared(sql`
UPDATE sites SET agent_seen_at = to_timestamp(${now}::float8)
 WHERE id IN (SELECT id FROM sites WHERE id = ANY (${list('integer', siteIds)}) AND removed_at IS NULL
   AND coalesce(agent_seen_at < to_timestamp(${now}::float8) - make_interval(secs => ${SITE_SEEN_S}), true) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)`),
  );

/** Writes an event for each. */
export const setSilent = (machineIds: readonly number[], silent: boolean): Sql =>
  sql`UPDATE machines SET silent = ${silent} WHERE id = ANY (${list('integer', machineIds)})`;
