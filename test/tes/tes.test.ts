/** GA4GH TES 1.1 by a whole service whose agent runs the tasks. */
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTask } from '../../src/api/tes/document.js';
import { jobOfTask, taskOfJob } from '../../src/api/tes/job.js';
import { endAll, type Service, serve, until } from '../cli/service.js';
import { tesClient } from './client.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-tes-'));
const files = join(home, 'files with spaces');
let service: Service;
let tes: Awaited<ReturnType<typeof tesClient>>;

beforeAll(async () => {
  mkdirSync(files);
  service = await serve(home, [], '0', { TES_STORAGE: `file://${home}` });
  tes = await tesClient(new URL(service.url).origin, readFileSync(join(home, 'admin.key'), 'utf8').trim());
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

const at = (name: string): string => join(files, name);
const urlOf = (name: string): string => `file://${encodeURI(at(name))}`;
/** A task of these commands of `sh`, whose image is left out. */
const task = (commands: string[], more: object = {}) => ({
  executors: commands.map((command) => ({ image: 'alpine', command: ['sh', '-c', command] })),
  resources: { backend_parameters: { run_without_image: 'true' } },
  ...more,
});

describe('a task', () => {
  it('is run with its inputs, its executors one after another, and its outputs, and is the job that GraphQL shows', async () => {
    mkdirSync(at('tree/deep'), { recursive: true });
    writeFileSync(at('tree/deep/leaf'), 'leaf');
    const sent = {
      name: "it's a task",
      description: 'all that a task may have',
      inputs: [
        { path: at('in/text'), content: "one 'two'\n$(id) é𝄞\n", name: 'text', description: 'as it is' },
        { path: at('in/tree'), url: urlOf('tree'), type: 'DIRECTORY' },
        { path: at('tree/deep/leaf'), url: at('tree/deep/leaf') },
      ],
      outputs: [
        { path: at('work/upper'), url: urlOf('kept/upper'), type: 'FILE', name: 'upper' },
        { path: at('work/*.txt'), path_prefix: at('work'), url: urlOf('kept/texts') },
        { path: at('in/tree'), url: urlOf('kept/tree'), type: 'DIRECTORY' },
      ],
      volumes: [at('volume')],
      executors: [
        {
          image: 'alpine',
          command: ['sh', '-c', 'cat; echo "$WORD $PWD"; exit 3'],
          workdir: at('work'),
          stdin: at('in/text'),
          stdout: at('work/upper'),
          env: { WORD: 'a "b"' },
          ignore_error: true,
        },
        {
          image: 'debian',
          command: ['sh', '-c', 'echo x >"a b.txt"; echo yy >c.txt; echo out; echo err >&2'],
          workdir: at('work'),
        },
      ],
      tags: { workflow: 'w1', empty: '' },
      resources: {
        cpu_cores: 1,
        ram_gb: 0.01,
        disk_gb: 1,
        preemptible: true,
        zones: ['local'],
        backend_parameters: { Run_Without_Image: 'true', project: 'genomes', vmSize: 'large' },
      },
    };
    const id = await tes.create(sent);
    const ended = await tes.ended(id);
    const { logs, creation_time: _, ...document } = ended as typeof ended & { creation_time: string };
    // What is not supported is not kept.
    const { Run_Without_Image: _image, vmSize: _size, ...others } = sent.resources.backend_parameters;
    expect(document).toEqual({
      ...{ id, state: 'COMPLETE' },
      ...sent,
      inputs: sent.inputs.map((input) => ({ type: 'FILE', ...input })),
      outputs: sent.outputs.map((output) => ({ type: 'FILE', ...output })),
      resources: { ...sent.resources, backend_parameters: { ...others, run_without_image: 'true' } },
    });
    expect(readFileSync(at('kept/upper'), 'utf8')).toBe(`${sent.inputs[0]!.content}a "b" ${at('work')}\n`);
    expect(readdirSync(at('kept/texts')).sort()).toEqual(['a b.txt', 'c.txt']);
    expect(readFileSync(at('kept/tree/deep/leaf'), 'utf8')).toBe('leaf');
    expect(readdirSync(at('volume'))).toEqual([]);
    expect(logs).toHaveLength(1);
    expect(logs[0]!.logs.map(({ exit_code }) => exit_code)).toEqual([3, 0]);
    expect(logs[0]!.logs[1]).toMatchObject({ stdout: 'out\n', stderr: expect.stringContaining('err\n') });
    expect(logs[0]!.outputs).toEqual(
      expect.arrayContaining([
        { url: urlOf('kept/texts/a b.txt'), path: at('work/a b.txt'), size_bytes: '2' },
        { url: urlOf('kept/tree/deep/leaf'), path: at('in/tree/deep/leaf'), size_bytes: '4' },
      ]),
    );
    expect(logs[0]!.outputs).toHaveLength(4);

    const basic = await tes.get(id, 'BASIC');
    expect(basic.inputs?.[0]).not.toHaveProperty('content');
    expect(basic.logs[0]).not.toHaveProperty('system_logs');
    expect(basic.logs[0]!.logs[1]).not.toHaveProperty('stdout');
    expect(basic.logs[0]!.outputs).toEqual(logs[0]!.outputs);

    expect(await service.json('job', id)).toMatchObject({
      ...{ state: 'COMPLETED', name: sent.name, application: 'sh', project: 'genomes' },
      ...{ cpusPerTask: 1, memoryMbPerTask: 10, restartable: true },
    });
  });

  it('ends at the first executor that fails; what is not there for it is an error of the system', async () => {
    const failed = await tes.ended(await tes.create(task(['true', 'exit 7', 'echo never'])));
    expect(failed.state).toBe('EXECUTOR_ERROR');
    expect(failed.logs[0]!.logs.map(({ exit_code }) => exit_code)).toEqual([0, 7]);
    const single = await tes.ended(await tes.create(task(['echo only; exit 9'])));
    expect([single.state, single.logs[0]!.logs]).toEqual([
      'EXECUTOR_ERROR',
      [expect.objectContaining({ exit_code: 9, stdout: 'only\n', stderr: '' })],
    ]);
    const missing = { inputs: [{ path: at('x'), url: at('missing') }] };
    const without = await tes.ended(await tes.create(task(['true'], missing)));
    expect([without.state, without.logs[0]!.logs]).toEqual(['SYSTEM_ERROR', []]);
    expect(without.logs[0]!.system_logs).toEqual(['EXITED_NONZERO', `${at('missing')} does not exist`]);
    const unmade = { outputs: [{ path: at('never made'), url: urlOf('y') }] };
    const incomplete = await tes.ended(await tes.create(task(['true'], unmade)));
    expect([incomplete.state, incomplete.logs[0]!.logs[0]]).toMatchObject(['SYSTEM_ERROR', { exit_code: 0 }]);
    expect(incomplete.logs[0]!.system_logs).toEqual(['EXITED_NONZERO', `${at('never made')} does not exist`]);
  });

  it('leaves in place what is already where it should be, under whatever name', async () => {
    mkdirSync(at('shared'));
    symlinkSync('shared', at('link'));
    // As cwl-tes sends it: the directory of the executor is the one that its files are to be in, with / behind it.
    const id = await tes.create(
      task([], {
        inputs: [{ path: at('shared'), url: urlOf('link'), type: 'DIRECTORY' }],
        outputs: [{ path: at('shared'), url: `${urlOf('shared')}/`, type: 'DIRECTORY' }],
        executors: [
          { image: 'alpine', command: ['sh', '-c', 'echo made >file'], workdir: at('shared'), env: {} },
        ],
      }),
    );
    expect(await tes.ended(id)).toMatchObject({
      state: 'COMPLETE',
      logs: [{ outputs: [{ path: at('shared/file'), size_bytes: '5' }] }],
    });
    expect(readFileSync(at('shared/file'), 'utf8')).toBe('made\n');
  });

  it('takes 128 KiB of content, character by character', async () => {
    const content = `${'x'.repeat(32_767)}𝄞${'é'.repeat(98_300)}`;
    const id = await tes.create(
      task([`wc -c <'${at('large')}'`], {
        inputs: [
          { path: at('large'), content },
          { path: at('none'), content: '' },
        ],
      }),
    );
    const ended = await tes.ended(id);
    expect(ended.logs[0]!.logs[0]!.stdout?.trim()).toBe(String(Buffer.byteLength(content)));
    expect(readFileSync(at('large'), 'utf8')).toBe(content);
    expect(readFileSync(at('none'), 'utf8')).toBe('');
    expect(ended.inputs?.map((input) => input.content)).toEqual([content, '']);
  });

  it('is cancelled once; a held job is a paused task', async () => {
    const id = await tes.create(task(['sleep 600']));
    await until(
      () => tes.state(id),
      (state) => state === 'RUNNING',
    );
    // As py-tes, and so Toil, cwl-tes and Snakemake: with a type of the body that it does not send.
    const ofNothing = { headers: { 'content-type': 'application/json' } };
    expect(await tes.ask('POST', `/tasks/${id}:cancel`, ofNothing)).toMatchObject({ status: 200, body: {} });
    expect((await tes.ended(id)).state).toBe('CANCELED');
    expect((await tes.ask('POST', `/tasks/${id}:cancel`, ofNothing)).status).toBe(409);
    expect((await tes.ask('POST', `/tasks/${id}:cancel`)).status).toBe(409);
    expect((await tes.ask('GET', `/tasks/${id}`, ofNothing)).status).toBe(200);
    const [refused, said] = await tes.refused('');
    expect([refused, said]).toEqual([400, expect.stringContaining('not JSON')]);
    const [held] = await service.json<{ id: string }[]>(
      'submit',
      '--hold',
      '--env',
      'A=1',
      '--',
      'echo',
      'x y',
    );
    expect(await tes.state(held!.id)).toBe('PAUSED');
    expect(await tes.get(held!.id, 'FULL')).toMatchObject({
      executors: [{ image: '', command: ['echo', 'x y'], env: { A: '1' } }],
      logs: [],
    });
    await tes.cancel(held!.id);
    for (const unknown of ['job_999999', 'no-such', '..%2f']) {
      expect((await tes.ask('GET', `/tasks/${unknown}`)).status).toBe(404);
      expect((await tes.ask('POST', `/tasks/${unknown}:cancel`)).status).toBe(404);
    }
  });

  it('is refused with the field and what is accepted', async () => {
    const ok = task(['true']);
    const one = (more: object) => ({ ...ok, ...more });
    const parameters = (backend_parameters: object, more = {}) =>
      one({ resources: { backend_parameters, ...more } });
    const [path, url] = [at('p'), urlOf('p')];
    for (const [bad, message] of [
      [{ executors: ok.executors }, /^executors\[0\].image: alpine .*run_without_image/],
      [{}, /^executors: missing; accepted: a list$/],
      [{ executors: [] }, /^executors: .*; accepted: at least 1 entry$/],
      [{ executors: [{ image: '', command: [] }] }, /^executors\[0\]\.command: /],
      [
        { executors: [{ image: '', command: ['x'], workdir: 'work' }] },
        /^executors\[0\]\.workdir: "work" .*absolute path/,
      ],
      [
        { executors: [{ image: '', command: ['x'], env: { 'a b': '' } }] },
        /^executors\[0\]\.env\.a b: .* accepted: a name of letters/,
      ],
      [one({ inputs: [{ path }] }), /^inputs\[0\]\.url: missing/],
      [one({ inputs: [{ path, url: 's3://bucket/key' }] }), /^inputs\[0\]\.url: "s3:.*file:\/\/\//],
      [one({ inputs: [{ path: 'p', url }] }), /^inputs\[0\]\.path: "p" .*absolute path/],
      [one({ inputs: [{ path, content: 'x', type: 'DIRECTORY' }] }), /^inputs\[0\]\.type: /],
      [one({ outputs: [{ path, url: 'ftp://host/x' }] }), /^outputs\[0\]\.url: /],
      [one({ outputs: [{ path: `${path}*`, url }] }), /^outputs\[0\]\.path_prefix: missing/],
      [one({ resources: { zones: ['moon'] } }), /^resources\.zones: "moon"/],
      [parameters({ run_without_image: 'yes' }), /^resources\.backend_parameters\.run_without_image: "yes"/],
      [parameters({ run_without_image: 'true' }, { zones: ['moon'] }), /^resources\.zones: "moon" .* local/],
      [
        parameters({ run_without_image: 'true', exclusive: 'yes' }),
        /^resources\.backend_parameters\.exclusive: "yes" .*machine or user/,
      ],
      [
        parameters({ run_without_image: 'true', estimate_s: 'long' }),
        /^resources\.backend_parameters\.estimate_s/,
      ],
      [
        parameters({ run_without_image: 'true', vmSize: 'x' }, { backend_parameters_strict: true }),
        /^resources\.backend_parameters: "vmSize"/,
      ],
      [parameters({ run_without_image: 'true' }, { cpu_cores: 0 }), /^resources\.cpu_cores: /],
      [parameters({ run_without_image: 'true' }, { cpu_cores: 100_000 }), /CPUs|cpusPerTask/],
      ['[]', /task: /],
      ['{', /not JSON/],
    ] as const) {
      const [status, said] = await tes.refused(bad);
      expect(said, JSON.stringify(bad)).toMatch(message);
      expect(status).toBe(400);
    }
    const [status, said] = await tes.refused(one({ tags: { large: 'x'.repeat(140_000) } }));
    expect([status, said]).toEqual([413, expect.stringContaining('too large')]);
    const text = { body: JSON.stringify(ok), headers: { 'content-type': 'text/plain' } };
    expect((await tes.ask('POST', '/tasks', text)).body.errors?.[0]?.message).toContain('application/json');
  });
});

describe('the list', () => {
  it('has every task once in pages, the newest first, and those with a state, name or tags only', async () => {
    const make = (name: string, tags: object) => tes.create(task(['exit 5'], { name, tags }));
    const ids = [
      await make('list-a', { of: 'list', n: '1' }),
      await make('list-b', { of: 'list', n: '2' }),
      await make('other', { of: 'list' }),
      await make('list-c', {}),
    ];
    for (const id of ids) await tes.ended(id);
    const all: string[] = [];
    let token: string | undefined;
    for (let pages = 0; pages === 0 || token !== undefined; pages++) {
      const page = await tes.list(
        `page_size=3&view=BASIC${token === undefined ? '' : `&page_token=${token}`}`,
      );
      expect(page.tasks.length).toBeGreaterThan(0);
      all.push(...page.tasks.map(({ id }) => id));
      token = page.next_page_token;
    }
    const jobs = await service.json<{ id: string }[]>('jobs', '--all');
    expect(all).toEqual(jobs.map(({ id }) => id));

    const found = async (query: string) => (await tes.list(query)).tasks.map(({ id }) => ids.indexOf(id));
    expect(await found('name_prefix=list-')).toEqual([3, 1, 0]);
    expect(await found('tag_key=of&tag_value=list')).toEqual([2, 1, 0]);
    expect(await found('tag_key=n&name_prefix=list')).toEqual([1, 0]);
    expect(await found('tag_key=of&tag_value=list&tag_key=n&tag_value=2')).toEqual([1]);
    expect(await found('tag_key=of&tag_value=other')).toEqual([]);
    expect((await found('state=EXECUTOR_ERROR')).slice(0, 4)).toEqual([3, 2, 1, 0]);
    expect(await found('state=PREEMPTED')).toEqual([]);
    const full = await tes.list('view=FULL&page_size=2047');
    expect(full.tasks[0]).toMatchObject({ id: ids[3], name: 'list-c', logs: [{ logs: [{ exit_code: 5 }] }] });
    expect((await tes.list('page_size=1')).tasks).toEqual([{ id: ids[3], state: 'EXECUTOR_ERROR' }]);
  });

  it('says what is wrong with what it is asked for', async () => {
    for (const [query, message] of [
      ['view=ALL', /^view: "ALL"/],
      ['state=DONE', /^state: "DONE"/],
      ['page_size=0', /^page_size: "0".*2047/],
      ['page_size=2048', /^page_size/],
      ['page_token=x', /cursor/],
      ['state=QUEUED&state=RUNNING', /^state: .*one value/],
    ] as const) {
      const { status, body } = await tes.ask('GET', `/tasks?${query}`);
      expect([status, body.errors?.[0]?.message]).toEqual([400, expect.stringMatching(message)]);
    }
  });
});

describe('who asks', () => {
  it('shows a key, as a bearer or as the password of basic authentication, and sees their own tasks', async () => {
    expect(await tes.info()).toMatchObject({
      type: { group: 'org.ga4gh', artifact: 'tes', version: '1.1.0' },
      storage: [`file://${home}`],
      tesResources_backend_parameters: expect.arrayContaining(['run_without_image']),
    });
    const made = await service.json<{ id: string }>('users', 'add', 'grace');
    const { secret } = await service.json<{ secret: string }>('keys', 'add', 'tes', '--user', 'grace');
    expect(made.id).toMatch(/^user_/);
    const id = await tes.create(task(['true']));
    const basic = (password: string) => ({
      headers: { authorization: `Basic ${Buffer.from(`anybody:${password}`).toString('base64')}` },
    });
    expect((await tes.ask('GET', '/tasks', basic(secret))).body).toEqual({ tasks: [] });
    expect((await tes.ask('GET', `/tasks/${id}`, basic(secret))).status).toBe(404);
    expect((await tes.ask('POST', `/tasks/${id}:cancel`, basic(secret))).status).toBe(404);
    for (const headers of [{ authorization: '' }, { authorization: 'Bearer wrong' }, basic('wrong').headers])
      for (const path of ['/tasks', '/service-info', `/tasks/${id}`])
        expect((await tes.ask('GET', path, { headers })).status).toBe(401);
  });
});

it('the image of a task is that of its job, unless the operator leaves images out of account', () => {
  const named = readTask({ executors: [{ image: 'alpine', command: ['true'] }] });
  const circumstances = { ignoresImages: false, sites: [] };
  expect(jobOfTask(named, circumstances)).toMatchObject({ image: 'alpine', application: 'true' });
  expect(jobOfTask(named, { ...circumstances, ignoresImages: true })).not.toHaveProperty('image');
});

it('whatever words a task is made of, the shell takes them as they are', () => {
  const word = fc
    .oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[\s'"\\$`(){};|&<>*?~#!a=-]{0,12}$/))
    .filter((text) => !text.includes('\0') && !/[\ud800-\udfff]/.test(text));
  const name = word
    .map((text) => text.replaceAll('/', ''))
    .filter((text) => !/^\.*$/.test(text) && text.length < 60);
  let directory = 0;
  fc.assert(
    fc.property(
      word,
      word,
      name,
      fc.record({ content: word, input: name, output: name }),
      (a, b, dir, io) => {
        const root = join(files, `words${++directory}`);
        const out = `${root}/${dir}/o${io.output}`;
        const sent = readTask({
          name: a,
          tags: { [b]: a },
          inputs: [{ path: `${root}/i${io.input}`, content: io.content }],
          executors: [
            {
              ...{ image: '', command: ['sh', '-c', 'printf "<%s>" "$@" "$V"; cat', 'sh', a, b] },
              ...{ env: { V: b }, workdir: `${root}/${dir}`, stdin: `${root}/i${io.input}`, stdout: out },
            },
          ],
        });
        const job = jobOfTask(sent, { ignoresImages: false, sites: [] });
        execFileSync(job.command, job.arguments as string[], { stdio: ['ignore', 'ignore', 'inherit'] });
        expect(readFileSync(out, 'utf8')).toBe(`<${a}><${b}><${b}>${io.content}`);
        expect(taskOfJob({ command: job.command, arguments: job.arguments as string[] })).toEqual(sent);
      },
    ),
    { numRuns: 60 },
  );
});
