/** The content of files: the same in a directory and in a bucket, part by part, whatever is asked for twice or was lost. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX } from '../../src/platform/limits.js';
import { type Blobs, BucketBlobs, DirectoryBlobs, PartsMissing } from '../../src/store/blobs.js';
import type { FileOnItsWay } from '../../src/store/files.js';
import { TestBucket } from './bucket.js';

const PART = MAX.filePartBytes;
const dir = mkdtempSync(join(tmpdir(), 'switchyard-blobs-'));
const bucket = new TestBucket();
beforeAll(() => bucket.open());
afterAll(() => {
  bucket.close();
  rmSync(dir, { recursive: true, force: true });
});

// `SWITCHYARD_TEST_BUCKET=http://host/bucket` takes a real one, with the key `id` and the secret `secret`.
const endpoint = (): string => process.env.SWITCHYARD_TEST_BUCKET ?? bucket.endpoint;
const access = { region: 'us-east-1', accessKeyId: 'id', secretAccessKey: 'secret', prefix: 'files/' };

let nextId = 1;
const onItsWay = (bytes: number): FileOnItsWay => ({
  id: nextId++,
  bytes,
  received: 0,
  upload: null,
  parts: [],
  kept: false,
});

describe.each<[string, () => Blobs]>([
  ['a directory', () => new DirectoryBlobs(dir)],
  ['a bucket', () => new BucketBlobs({ endpoint: endpoint(), ...access })],
])('%s', (_, open) => {
  const body = Buffer.alloc(2 * PART + 77, randomBytes(997));

  async function add(file: FileOnItsWay, part: Buffer): Promise<void> {
    const { upload, part: name } = await open().add(file, part);
    Object.assign(file, { upload, received: file.received + part.length });
    file.parts.push(name);
  }

  it('keeps parts, the last of them once more, and makes a whole of them, once more too', async () => {
    const file = onItsWay(body.length);
    await add(file, body.subarray(0, PART));
    // Another process did not know of it.
    await open().add({ ...file, received: 0, parts: [] }, body.subarray(0, PART));
    await add(file, body.subarray(PART, 2 * PART));
    await add(file, body.subarray(2 * PART));
    await open().finish(file);
    await open().finish(file);
    expect((await buffer(await open().read(file.id, 0, body.length))).equals(body)).toBe(true);
    expect(await buffer(await open().read(file.id, PART - 3, PART + 4))).toEqual(
      body.subarray(PART - 3, PART + 4),
    );
    await open().remove(file.id, null);
    await open().remove(file.id, null);
    await expect(open().read(file.id, 0, 1).then(buffer)).rejects.toThrow();
  });

  it('keeps what fits into one part, and what is empty', async () => {
    for (const bytes of [0, 5]) {
      const file = onItsWay(bytes);
      if (bytes > 0) await add(file, Buffer.from('small'));
      await open().finish(file);
      expect((await buffer(await open().read(file.id, 0, bytes))).toString()).toBe('small'.slice(0, bytes));
    }
  });

  it('puts a file in the place of one that had its id before the database was restored from a backup', async () => {
    for (const bytes of [5, PART + 5]) {
      const { id } = onItsWay(bytes);
      for (const content of ['first', 'again']) {
        const file = { ...onItsWay(bytes), id };
        const body = Buffer.alloc(bytes, content);
        for (let at = 0; at < bytes; at += PART) await add(file, body.subarray(at, at + PART));
        for (let times = 0; times < 2; times++) await open().finish(file);
        expect((await buffer(await open().read(id, 0, bytes))).equals(body)).toBe(true);
      }
    }
  });

  it('says when parts are gone, and removes what there is of a file on its way', async () => {
    const file = onItsWay(body.length);
    await add(file, body.subarray(0, PART));
    await open().remove(file.id, file.upload);
    await open().remove(file.id, file.upload);
    const rest = async () => {
      await add(file, body.subarray(PART, 2 * PART));
      await add(file, body.subarray(2 * PART));
      await open().finish(file);
    };
    await expect(rest()).rejects.toThrow(PartsMissing);
  });
});

it('a directory is the account’s own, with a thousand files in each below it', async () => {
  const blobs = new DirectoryBlobs(dir);
  for (const id of [999, 1000, 12_345]) await blobs.finish({ ...onItsWay(0), id });
  expect(statSync(join(dir, '12')).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, '12', '12345')).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir)).toEqual(expect.arrayContaining(['0', '1', '12']));
});
