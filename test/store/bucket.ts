/** What we use of S3, over HTTP and in memory: objects, ranges and multipart uploads, for one bucket. It looks at no signature but that there is one. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export class TestBucket {
  readonly objects = new Map<string, Buffer>();
  readonly uploads = new Map<string, { key: string; parts: Map<number, Buffer> }>();
  /** The requests that came, such as `PUT files/7 partNumber`. */
  readonly asked: string[] = [];
  endpoint = '';
  private nextUpload = 1;
  private readonly server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const url = new URL(request.url!, 'http://x');
    const key = decodeURIComponent(url.pathname).replace(/^\/bucket\//, '');
    const query = url.searchParams;
    this.asked.push([request.method, key, ...query.keys()].join(' '));
    const answer = (
      status: number,
      text: string | Buffer = '',
      headers: Record<string, string> = {},
    ): void => {
      response.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    const missing = (code: string): void =>
      answer(404, `<Error><Code>${code}</Code></Error>`, { 'content-type': 'application/xml' });
    if (!/^AWS4-HMAC-SHA256 Credential=id\//.test(request.headers.authorization ?? '')) return answer(403);
    const upload = this.uploads.get(query.get('uploadId') ?? '');
    const tag = { etag: `"${createHash('md5').update(body).digest('hex')}"` };
    if (request.method === 'POST' && query.has('uploads')) {
      const id = `upload-${this.nextUpload++}`;
      this.uploads.set(id, { key, parts: new Map() });
      return answer(
        200,
        `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (query.has('uploadId') && upload?.key !== key) return missing('NoSuchUpload');
    if (request.method === 'PUT' && upload) {
      upload.parts.set(Number(query.get('partNumber')), body);
      return answer(200, '', tag);
    }
    if (request.method === 'POST' && upload) {
      const named = [
        ...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>\s*<ETag>"?([^<"]*)"?<\/ETag>/g),
      ];
      const parts = named.map(([, number, etag]) => {
        const part = upload.parts.get(Number(number));
        return part && createHash('md5').update(part).digest('hex') === etag ? part : null;
      });
      if (parts.includes(null)) return answer(400, '<Error><Code>InvalidPart</Code></Error>');
      this.objects.set(key, Buffer.concat(parts as Buffer[]));
      this.uploads.delete(query.get('uploadId')!);
      return answer(200, '<CompleteMultipartUploadResult><ETag>"x-1"</ETag></CompleteMultipartUploadResult>');
    }
    if (request.method === 'DELETE') {
      if (upload) this.uploads.delete(query.get('uploadId')!);
      else this.objects.delete(key);
      return answer(204);
    }
    if (request.method === 'PUT') {
      this.objects.set(key, body);
      return answer(200, '', tag);
    }
    const object = this.objects.get(key);
    if (!object) return missing('NoSuchKey');
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    if (from === undefined) return answer(200, object);
    return answer(206, object.subarray(Number(from), to ? Number(to) + 1 : undefined));
  });

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.endpoint = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/bucket`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
