import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MALFORMED_KEPT, parseTrace, readTrace } from '../../src/simulator/trace.js';

const JOB = '1 0 5 100 4 -1 -1 4 200 -1 1 7 3 2 1 1 -1 -1';

describe('the SWF reader', () => {
  it('reads 18 fields in the order of the format', () => {
    const [job] = parseTrace('1 2 3 4 5 6.5 7 8 9 10 11 12 13 14 15 16 17 18').jobs;
    expect(Object.values(job!)).toEqual([1, 2, 3, 4, 5, 6.5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    expect(job).toMatchObject({
      id: 1,
      submit: 2,
      run: 4,
      allocatedProcessors: 5,
      requestedProcessors: 8,
      requestedTime: 9,
    });
  });

  it('reads the header, with continued values', () => {
    const { header, jobs } = parseTrace(
      `; Version: 2.2\n;\n; Note: one\n;       two\n; MaxProcs: 100\n${JOB}\n`,
    );
    expect([...header]).toEqual([
      ['Version', '2.2'],
      ['Note', 'one\ntwo'],
      ['MaxProcs', '100'],
    ]);
    expect(jobs).toHaveLength(1);
  });

  it('takes white space, carriage returns, further columns and a last line without its end', () => {
    const { jobs, malformed } = parseTrace(
      `\r\n  ${JOB.replaceAll(' ', '\t ')}  \r\n${JOB} {1241,1241}\n${JOB}`,
    );
    expect(jobs).toHaveLength(3);
    expect(malformed).toEqual([]);
  });

  it('reports lines that are no jobs by their number and goes on', () => {
    const trace = parseTrace(`; A: b\n${JOB}\n1 2 3\n${JOB.replace('100', 'x')}\n\n${JOB}`);
    expect(trace.jobs).toHaveLength(2);
    expect(trace.malformed).toEqual([
      { line: 3, why: '3 fields; 18 are required' },
      { line: 4, why: 'field 4 is "x"; a number is required' },
    ]);
  });

  it('keeps a bounded number of complaints and counts all', () => {
    const trace = parseTrace(`${JOB}\n${'nonsense\n'.repeat(MALFORMED_KEPT + 50)}`);
    expect(trace.malformed).toHaveLength(MALFORMED_KEPT);
    expect(trace.malformedCount).toBe(MALFORMED_KEPT + 50);
  });

  it('reads a file, gzipped or not', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'swf-'));
    try {
      await writeFile(join(folder, 'a.swf'), `${JOB}\n`);
      await writeFile(join(folder, 'a.swf.gz'), gzipSync(`${JOB}\n`));
      const plain = await readTrace(join(folder, 'a.swf'));
      expect((await readTrace(join(folder, 'a.swf.gz'))).jobs).toEqual(plain.jobs);
      await expect(readTrace(join(folder, 'absent.swf'))).rejects.toThrow('ENOENT');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('gives back what was written, whatever the numbers', () => {
    const whole = fc.integer({ min: -1, max: 1e9 });
    const value = fc.oneof(whole, fc.double({ min: 0, max: 1e6, noNaN: true }));
    const real = [1, 2, 3, 5, 6, 8, 9, 17];
    const line = fc.tuple(...Array.from({ length: 18 }, (_, i) => (real.includes(i) ? value : whole)));
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 20 }), (lines) => {
        const { jobs, malformedCount } = parseTrace(lines.map((numbers) => numbers.join(' ')).join('\n'));
        expect(malformedCount).toBe(0);
        expect(jobs.map((job) => Object.values(job))).toEqual(
          lines.map((numbers) => numbers.map((n) => n + 0)),
        );
      }),
    );
  });
});
