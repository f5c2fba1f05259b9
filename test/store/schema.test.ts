/** What the database itself refuses, whoever writes to it, and that it speaks the core's language. */
import type pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { MAX_WINDOW } from '../../src/core/data/margins.js';
import { DEFAULT_POLICY, parsePolicy } from '../../src/core/policy.js';
import {
  endCauses,
  endedStates,
  jobStates,
  liveStates,
  transitions,
  waitingStates,
} from '../../src/core/states.js';
import { BOOST_MAX, INPUTS_MAX, MARGINS_KEPT, TRAFFIC_KEPT_S } from '../../src/store/constants.js';
import { withDatabase } from '../support/database.js';

const test = withDatabase();

const labels = async (type: string) =>
  (
    await test.pool.query<{ label: string }>(`SELECT unnest(enum_range(NULL::${type}))::text AS label`)
  ).rows.map((row) => row.label);

describe('the core and the schema', () => {
  it('have the same states, causes and transitions', async () => {
    expect((await labels('job_state')).sort()).toEqual([...jobStates].sort());
    expect((await labels('end_cause')).sort()).toEqual([...endCauses].sort());
    const { rows } = await test.pool.query<{ was: string; becomes: string }>(
      `SELECT was, becomes FROM unnest(enum_range(NULL::job_state)) was, unnest(enum_range(NULL::job_state)) becomes
        WHERE triggers.legal(was, becomes)`,
    );
    const legal = transitions.filter(({ from }) => from !== null).map(({ from, to }) => `${from} ${to}`);
    expect(rows.map(({ was, becomes }) => `${was} ${becomes}`).sort()).toEqual([...new Set(legal)].sort());
    const sets = { live: liveStates, ended: endedStates, waiting: waitingStates };
    for (const [name, states] of Object.entries(sets)) {
      const { rows: found } = await test.pool.query<{ state: string }>(
        `SELECT state FROM unnest(enum_range(NULL::job_state)) state WHERE triggers.${name}(state)`,
      );
      expect([name, found.map(({ state }) => state)]).toEqual([name, states]);
    }
  });

  it('have the same bounds, and the same states in constraints', async () => {
    const { rows } = await test.pool.query<{ name: string; text: string }>(
      `SELECT conname AS name, pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE contype = 'c' AND conrelid = 'jobs'::regclass`,
    );
    const text = (name: string) => rows.find((row) => row.name === name)?.text ?? '';
    const numbers = (name: string) => [...text(name).matchAll(/-?\d+/g)].map(([number]) => Number(number));
    expect(numbers('jobs_boost')).toEqual([-BOOST_MAX, BOOST_MAX]);
    expect(numbers('jobs_inputs')).toEqual([1, INPUTS_MAX]);
    const states = (name: string) =>
      [...text(name).matchAll(/'(\w+)'::job_state/g)].map(([, state]) => state);
    expect(states('jobs_end_has_cause')).toEqual(endedStates);
    expect(states('jobs_held_by_one')).toEqual(['DISPATCHED', ...liveStates]);
  });

  it('have no index on what changes before a job ends: such a change is no new entry in any of them', async () => {
    // Those of ranges of pages (BRIN) have no entry for a row.
    const { rows } = await test.pool.query<{ table: string; column: string }>(
      `SELECT DISTINCT i.indrelid::regclass::text AS table, a.attname AS column
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname <> 'brin'
         JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refobjid = i.indrelid
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
        WHERE i.indrelid IN ('jobs'::regclass, 'runs'::regclass)`,
    );
    const indexed = rows.map(({ table, column }) => `${table}.${column}`);
    expect(indexed).toContain('runs.ended_at');
    const changed = [
      'state',
      'seq',
      'changed_at',
      'site_id',
      'priority',
      'dispatched_at',
      'epoch',
      'started_at',
      'note',
    ];
    const found = [
      ...changed.map((column) => `jobs.${column}`),
      'runs.started_at',
      'runs.ending',
      'runs.local_state',
    ];
    expect(indexed.filter((column) => found.includes(column))).toEqual([]);
  });

  it('have no default for what may be nothing: what no row has is not copied in at all', async () => {
    const { rows } = await test.pool.query<{ column: string; hasDefault: boolean }>(
      `SELECT concat(table_name, '.', column_name) AS column, column_default IS NOT NULL AS "hasDefault" FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name IN ('jobs', 'runs') AND is_nullable = 'YES'`,
    );
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter(({ hasDefault }) => hasDefault)).toEqual([]);
  });

  it('keep as much as policies may ask for', () => {
    const window = (congestionWindowS: number) => () =>
      parsePolicy({ ...DEFAULT_POLICY, dispatch: { kind: 'diana', congestionWindowS } });
    expect(window(TRAFFIC_KEPT_S)).not.toThrow();
    expect(window(TRAFFIC_KEPT_S + 1)).toThrow();
    expect(MARGINS_KEPT).toBeGreaterThanOrEqual(MAX_WINDOW);
  });

  it('index nothing that changes while a job lives, so that its transitions touch no index', async () => {
    const { rows } = await test.pool.query<{ indexdef: string }>(
      `SELECT indexdef FROM pg_indexes WHERE tablename = 'jobs'`,
    );
    const changing =
      /\b(state|site_id|seq|priority|epoch|boost|dispatched_at|started_at|message|stop_cause|migrated_at)\b/;
    expect(
      rows
        .map((row) => row.indexdef)
        .filter((definition) => changing.test(definition.replace(/^.* ON public\.jobs/, ''))),
    ).toEqual([]);
  });
});

describe('the database refuses', () => {
  let client: pg.Pool;
  beforeAll(async () => {
    client = test.pool;
    await client.query(`
      INSERT INTO users (name) VALUES ('ann'), ('bea');
      INSERT INTO policies (version, document, reason) VALUES (1, '{}', 'test');
      INSERT INTO sites (name) VALUES ('here');
      INSERT INTO machines (site_id, name, cpus, memory_mb, benchmark, os, architecture) VALUES (1, 'm1', 2, 100, 100, 'linux', 'x64');
      INSERT INTO licenses (kind, copies) VALUES ('cad', 1);
      INSERT INTO jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at)
        SELECT CASE i WHEN 3 THEN 2 ELSE 1 END, 'app', 'true', 1, 1, 'QUEUED', now() FROM generate_series(1, 4) i;
      UPDATE jobs SET state = 'DISPATCHED', site_id = 1, seq = seq + 1 WHERE id < 4;`);
  });

  const run = (job: number, epoch: number, change: Record<string, string> = {}) => {
    const values: Record<string, string> = {
      job_id: String(job),
      epoch: String(epoch),
      site_id: '1',
      machine_ids: `'{1}'`,
      machine_tasks: `'{1}'`,
      cpus_per_task: '1',
      memory_mb_per_task: '0',
      policy_version: '1',
      assigned_at: 'now()',
      planned_s: '1',
      ...change,
    };
    return `INSERT INTO runs (${Object.keys(values).join(', ')}) VALUES (${Object.values(values).join(', ')})`;
  };
  const refused = (statements: string) =>
    client.query(`BEGIN; ${statements}; COMMIT`).then(
      () => null,
      async (error: pg.DatabaseError) => {
        return error.constraint ?? error.message;
      },
    );

  it.each([
    [
      'an illegal transition',
      `UPDATE jobs SET state = 'RUNNING', site_id = 1, seq = seq + 1 WHERE id = 4`,
      'jobs_legal_transition',
    ],
    [
      'a change that is not counted, so that its event would be lost',
      `UPDATE jobs SET boost = 1 WHERE id = 4`,
      'jobs_legal_transition',
    ],
    [
      'a job held by nobody',
      `UPDATE jobs SET state = 'DISPATCHED', seq = seq + 1 WHERE id = 4`,
      'jobs_held_by_one',
    ],
    [
      'an end without a cause',
      `UPDATE jobs SET state = 'FAILED', ended_at = now(), seq = seq + 1 WHERE id = 4`,
      'jobs_end_has_cause',
    ],
    [
      'an end without an instant',
      `UPDATE jobs SET state = 'FAILED', cause = 'LOST', seq = seq + 1 WHERE id = 4`,
      'jobs_end_has_cause',
    ],
    [
      'a move between meta-queues that is not counted',
      `UPDATE jobs SET site_id = 1 WHERE id = 4`,
      'jobs_legal_transition',
    ],
    [
      'more inputs than a hundred',
      `UPDATE jobs SET inputs = (SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 101)), seq = seq + 1 WHERE id = 4`,
      'jobs_inputs',
    ],
    ['a link within a site', `INSERT INTO links VALUES (1, 1, 1, 0, 0, now(), 'ADMIN')`, 'links_between_two'],
    [
      'two datasets of one name',
      `INSERT INTO datasets (name, size_mb) VALUES ('a', 1), ('a', 1)`,
      'datasets_name',
    ],
    [
      'a group with more jobs than ids',
      `INSERT INTO job_groups VALUES (1, 1, NULL, NULL, 3, 1, 2, now())`,
      'job_groups_range',
    ],
    ['two live runs of a job', `${run(1, 1)}; ${run(1, 2)}`, 'runs_live'],
    [
      'a run that ends twice',
      `${run(1, 1)}; UPDATE runs SET ended_at = now(), cause = 'LOST'; UPDATE runs SET cause = 'SIGNALLED'`,
      'runs_end_once',
    ],
    ['more CPUs than there are', run(1, 1, { cpus_per_task: '3' }), 'machines_cpus_never_over_committed'],
    [
      'more CPUs than are left',
      `${run(1, 1, { cpus_per_task: '2' })}; ${run(2, 1)}`,
      'machines_cpus_never_over_committed',
    ],
    [
      'a run beside one that has its machine to itself',
      `${run(1, 1, { whole_cpus: `'{2}'`, whole_places: `'{0}'` })}; ${run(2, 1)}`,
      'machines_cpus_never_over_committed',
    ],
    [
      'a run of another user beside one that keeps its machine for its own',
      `${run(1, 1, { keeps_machines: 'true' })}; ${run(3, 1)}`,
      'machines_kept_from_others',
    ],
    [
      'a run that keeps its machine for its user beside one of another',
      `${run(3, 1)}; ${run(1, 1, { keeps_machines: 'true' })}`,
      'machines_kept_from_others',
    ],
    [
      'a whole of other machines',
      run(1, 1, { whole_cpus: `'{1,1}'`, whole_places: `'{0}'` }),
      'runs_whole_aligned',
    ],
    [
      'more memory than there is',
      run(1, 1, { memory_mb_per_task: '101' }),
      'machines_memory_never_over_committed',
    ],
    [
      'more licenses than there are',
      `${run(1, 1, { license_ids: `'{1}'` })}; ${run(2, 1, { license_ids: `'{1}'` })}`,
      'licenses_never_over_committed',
    ],
    [
      'a machine smaller than what is used of it',
      `${run(1, 1, { cpus_per_task: '2' })}; UPDATE machines SET cpus = 1`,
      'machines_cpus_never_over_committed',
    ],
    [
      'more tasks than share a machine in time',
      `UPDATE machines SET max_tasks = 1; ${run(1, 1)}; ${run(2, 1)}`,
      'machines_tasks_never_over_committed',
    ],
    [
      'fewer places than tasks on a machine',
      `UPDATE machines SET max_tasks = 2; ${run(1, 1)}; ${run(2, 1)}; UPDATE machines SET max_tasks = 1`,
      'machines_tasks_never_over_committed',
    ],
    [
      'a machine shared in space with tasks that share it in time',
      `UPDATE machines SET max_tasks = 2; ${run(1, 1)}; UPDATE machines SET max_tasks = NULL`,
      'machines_tasks_never_over_committed',
    ],
    [
      'a machine shared in time with jobs that hold its CPUs',
      `${run(1, 1)}; UPDATE machines SET max_tasks = 2`,
      'machines_shared_one_way',
    ],
    [
      'more running jobs than a site may have',
      `UPDATE sites SET max_running_jobs = 1; ${run(1, 1)}; ${run(2, 1)}`,
      'sites_running_jobs_limited',
    ],
    [
      'two pools of one kind in one place',
      `INSERT INTO licenses (kind, copies) VALUES ('cad', 3)`,
      'licenses_kind',
    ],
    [
      'a job of nobody',
      `INSERT INTO jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at) VALUES (9, 'app', 'true', 1, 1, 'QUEUED', now())`,
      'jobs_user',
    ],
    [
      'a job from a site that there is not',
      `INSERT INTO jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at, origin_site_id)
        VALUES (1, 'app', 'true', 1, 1, 'QUEUED', now(), 9)`,
      'jobs_site',
    ],
    [
      'a job at a site that there is not',
      `UPDATE jobs SET site_id = 9, seq = seq + 1 WHERE id = 4`,
      'jobs_site',
    ],
    ['a run of no job', run(99, 1), 'runs_job'],
    ['a run at a site that there is not', run(1, 1, { site_id: '9' }), 'runs_site'],
    ['a run under a policy that there is not', run(1, 1, { policy_version: '9' }), 'runs_policy'],
    ['a user that goes', 'DELETE FROM users', 'rows of users are never deleted'],
    ['a site that goes', 'DELETE FROM sites', 'rows of sites are never deleted'],
    ['a policy that changes', `UPDATE policies SET reason = 'other'`, 'policies is append-only'],
    ['a policy that goes', `DELETE FROM policies`, 'policies is append-only'],
    ['an audit entry that changes', `UPDATE audits SET reason = 'other'`, 'audits is append-only'],
  ])('%s', async (_, statements, constraint) => {
    expect(await refused(statements)).toBe(constraint);
  });

  it('nothing that is legal', async () => {
    expect(
      await refused(`${run(3, 1, { cpus_per_task: '2', license_ids: `'{1}'` })};
      UPDATE jobs SET state = 'ASSIGNED', epoch = 1, seq = seq + 1 WHERE id = 3`),
    ).toBeNull();
    const { rows } = await client.query(`SELECT cpus_used, in_use FROM machines, licenses`);
    expect(rows).toEqual([{ cpus_used: 2, in_use: 1 }]);
  });

  it('no tasks that there are places for, and counts them until their runs end', async () => {
    const wide = { cpus_per_task: '2' };
    const statements = `INSERT INTO machines (site_id, name, cpus, memory_mb, benchmark, os, architecture, max_tasks)
        VALUES (1, 'shared', 2, 100, 100, 'linux', 'x64', 2);
      UPDATE sites SET max_running_jobs = 3;
      ${run(1, 1, { ...wide, machine_ids: `'{2}'` })}; ${run(2, 1, { ...wide, machine_ids: `'{2}'` })};
      UPDATE runs SET ended_at = now(), cause = 'EXITED_ZERO' WHERE job_id = 1`;
    expect(await refused(statements)).toBeNull();
    const { rows } = await client.query('SELECT cpus_used, tasks_used FROM machines WHERE id = 2');
    expect(rows).toEqual([{ cpus_used: 0, tasks_used: 1 }]);
  });
});
