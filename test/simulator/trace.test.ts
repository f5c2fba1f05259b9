import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { piecesOf, textOf } from '../../src/simulator/input.js';
import { prepare } from '../../src/simulator/simulate.js';
import { parseTrace, readTrace, scanTrace, wholeInHeader } from '../../src/simulator/trace.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trace-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string | Buffer): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

/** A line of SWF with one field changed, counted from 1. */
const line = (field = 1, value = '1'): string =>
  '1 0 5 100 4 -1 -1 4 200 -1 1 7 3 2 1 1 -1 -1'
    .split(' ')
    .map((word, i) => (i === field - 1 ? value : word))
    .join(' ');

describe('values that are none', () => {
  it.each([
    [2, '9007199254740992', 'a number up to 1000000000000 is required'],
    [7, '9007199254740992', 'a number up to 9007199254740991 is required'],
    [4, '1e308', 'a number up to 1000000000000 is required'],
    [4, '1e999', 'a number up to 1000000000000 is required'],
    [5, '4.5', 'a whole number is required'],
    [8, '0.5', 'a whole number is required'],
    [12, '1.25', 'a whole number is required'],
    [4, '0x10', 'a number is required'],
    [4, 'Infinity', 'a number is required'],
    [4, 'NaN', 'a number is required'],
    [4, '1_000', 'a number is required'],
    [4, '--5', 'a number is required'],
  ])('field %i, %s: its line is malformed, and the next is read', (field, value, why) => {
    const { jobs, malformed } = parseTrace(`${line()}\n${line(field, value)}\n${line()}\n`);
    expect(jobs).toHaveLength(2);
    expect(malformed).toEqual([{ line: 2, why: expect.stringMatching(`^field ${field} is .*${why}$`) }]);
  });

  it('takes the largest that are exact, and times with fractions', () => {
    expect(parseTrace(line(7, '9007199254740991')).jobs[0]?.usedMemoryKb).toBe(Number.MAX_SAFE_INTEGER);
    expect(parseTrace(line(4, '1e12')).jobs[0]?.run).toBe(1e12);
    expect(parseTrace(line(4, '+2.5e1')).jobs[0]?.run).toBe(25);
  });

  it('never shows a number that is not exact, whatever is written', () => {
    const word = fc.oneof(
      fc.double().map(String),
      fc.bigInt().map(String),
      fc.stringMatching(/^[0-9a-fx.eE+-]{1,12}$/),
      fc.constantFrom('1e400', '-1e400', '0b11', '0o7', '١', '', '-'),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 18 }), word), { maxLength: 20 }), (changes) => {
        const text = changes.map(([field, value]) => line(field, value.replaceAll(/\s/g, ''))).join('\n');
        const { jobs, malformedCount } = parseTrace(`${line()}\n${text}`);
        expect(jobs.length + malformedCount).toBe(changes.length + 1);
        for (const value of jobs.flatMap((job) => Object.values(job)))
          expect(Math.abs(value)).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
      }),
    );
  });
});

describe('files that are no traces', () => {
  it('are errors that name the file, and the line where there is one', async () => {
    const refused = (name: string, content: string) => expect(readTrace(file(name, content))).rejects;
    await refused('empty', '').toThrow(`${folder}/empty: no jobs: the file is empty`);
    await refused('blank', '\n \n\n').toThrow('blank: no jobs, only 3 empty or comment lines');
    await refused('comment', '; A: b\n;\n').toThrow('comment: no jobs, only 2 empty or comment lines');
    await refused('wrong', '; A: b\n1 2\nx\n').toThrow(
      'wrong: no jobs; 2 malformed lines, the first is line 2: 2 fields; 18 are required',
    );
    await expect(readTrace(file('torn.gz', gzipSync(line().repeat(1000)).subarray(0, 40)))).rejects.toThrow(
      /torn\.gz: unexpected end of file/,
    );
    await expect(readTrace(folder)).rejects.toThrow(`${folder}: EISDIR`);
    await expect(readTrace(join(folder, 'absent'))).rejects.toThrow(/ENOENT.*absent/);
  });

  it('are not read for ever: a line, the bytes and what is unpacked have bounds', async () => {
    await expect(readTrace('/dev/zero')).rejects.toThrow('/dev/zero, line 1: longer than 65536 bytes');
    const long = `${line()}\n${'x'.repeat(70_000)}\n`;
    await expect(readTrace(file('long', long + long.repeat(30)))).rejects.toThrow(/long, line \d+: longer/);
    const path = file('bomb.gz', gzipSync(Buffer.alloc(3_000_000, '\n')));
    const read = async (maxBytes: number): Promise<number> => {
      let bytes = 0;
      for await (const piece of piecesOf(path, maxBytes)) bytes += piece.length;
      return bytes;
    };
    expect(await read(3_000_000)).toBe(3_000_000);
    await expect(read(2_999_999)).rejects.toThrow('bomb.gz: more than 2999999 bytes');
    await expect(textOf(path, 10)).rejects.toThrow('bomb.gz: more than 10 bytes');
  });

  it('say what is wrong with the number of processors in the header', () => {
    const options = {
      processors: null,
      estimate: 'requested',
      missingEstimate: 'drop',
      overrun: 'kill',
    } as const;
    const prepared = (header: string) => () =>
      prepare(parseTrace(`; Note: a\n${header}\n${line()}`, 'a.swf'), null, options);
    expect(prepared('; MaxProcs: lots')).toThrow(
      'a.swf, line 2: MaxProcs is "lots"; accepted: a whole number from 1 to 10000000',
    );
    expect(prepared('; MaxProcs: 0')).toThrow('line 2: MaxProcs is "0"');
    expect(prepared('; MaxProcs: 1e400')).toThrow('line 2: MaxProcs is "1e400"');
    expect(prepared('; MaxProcs: 99999999')).toThrow('line 2: MaxProcs is "99999999"');
    expect(prepared('; MaxProcs: 12')().world.machines[0]?.cpus).toBe(12);
    expect(prepared(';')).toThrow('a.swf: the header has no MaxProcs');
    expect(wholeInHeader(parseTrace(line()), 'MaxProcs', 10)).toBeNull();
  });
});

describe('reading in pieces', () => {
  it('finds the same jobs, wherever the file is cut', async () => {
    // Lines of many lengths over several pieces of a megabyte; every seventh is malformed, and the last has no end.
    const jobs = 60_000;
    const lines = Array.from({ length: jobs }, (_, i) =>
      i % 7 === 3
        ? 'no job'
        : `${i} ${'0'.repeat(i % 11)}${i} -1 ${i % 13}.5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1`,
    );
    for (const path of [
      file('large.swf', lines.join('\n')),
      file('large.swf.gz', gzipSync(lines.join('\r\n'))),
    ]) {
      let next = 0;
      const scan = await scanTrace(path, ({ id, submit, run }) => {
        if (next % 7 === 3) next++;
        if (id !== next || submit !== next || run !== (next % 13) + 0.5)
          expect({ id, submit, run }).toBe(next);
        next++;
      });
      expect(next).toBe(jobs);
      expect([scan.jobCount, scan.malformedCount]).toEqual([
        lines.filter((one) => one !== 'no job').length,
        lines.filter((one) => one === 'no job').length,
      ]);
      expect(scan.malformed[99]?.line).toBe(99 * 7 + 4);
    }
  });
});

describe('the Grid Workload Format', () => {
  const job = (id: number, user: string, site: string, rest = {}) => {
    const fields: Record<number, string> = { 2: String(1_100_000_000 + id), 12: user, 17: site, ...rest };
    const plain = `${id} 0 5 60 2 -1 -1 2 100 -1 1 u g e q p s s BoT 7 -1 -1 -1 -1 -1 -1 -1 vo p`.split(' ');
    return plain.map((word, i) => fields[i + 1] ?? word).join('\t');
  };
  const text = [
    '# JobID SubmitTime WaitTime RunTime',
    job(1, 'ann', 'fs1'),
    job(2, 'bob', 'fs0'),
    job(3, 'ann', '-1'),
    job(4, 'cat', 'fs0', { 4: 'x' }),
    job(5, 'bob', 'fs1', { 7: '?' }),
  ].join('\n');

  it('is known by its comments, and numbers the names of users and sites', () => {
    const trace = parseTrace(text);
    expect(trace.jobs.map(({ id, submit, user, partition }) => [id, submit, user, partition])).toEqual([
      [1, 1_100_000_001, 1, 1],
      [2, 1_100_000_002, 2, 2],
      [3, 1_100_000_003, 1, -1],
      [5, 1_100_000_005, 2, 1],
    ]);
    expect(trace.malformed).toEqual([{ line: 5, why: 'field 4 is "x"; a number is required' }]);
    expect([...trace.siteNames]).toEqual([
      [1, 'fs1'],
      [2, 'fs0'],
    ]);
    expect([...trace.userNames.values()]).toEqual(['ann', 'bob']);
  });

  it('is known by the name of the file', async () => {
    const path = file('b.gwf.gz', gzipSync(text.split('\n').slice(1).join('\n')));
    expect((await readTrace(path)).jobs).toHaveLength(4);
  });

  it('has its jobs run at the sites whose names, or numbers, they name', () => {
    const sites = [
      { id: 7, name: 'fs0', processors: 4 },
      { id: 9, name: 'fs1', processors: 4 },
    ];
    const options = {
      processors: null,
      estimate: 'requested',
      missingEstimate: 'drop',
      overrun: 'kill',
    } as const;
    const { workload } = prepare(parseTrace(text), sites, options);
    expect(workload.jobs.map(({ sourceId, siteId }) => [sourceId, siteId])).toEqual([
      [1, 9],
      [2, 7],
      [5, 9],
    ]);
    expect(workload.dropped.noSite).toBe(1);
  });
});
