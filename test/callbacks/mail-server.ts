/** A real mail server for tests, which refuses, dies and comes back; and its mails, taken apart. */
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';

export interface Mail {
  to: string[];
  head: Record<string, string>;
  raw: string;
  /** The text part, decoded. */
  text: string;
  html: string;
}

/** A mail server. Closed and opened again, it has the same address. */
export class MailServer {
  readonly mails: Mail[] = [];
  /** What it answers to a recipient; null: it takes them. */
  refuses: (address: string) => { code: number; message: string } | null = () => null;
  private server: SMTPServer | null = null;
  private port = 0;

  async open(): Promise<this> {
    this.server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onRcptTo: ({ address }, _session, done) => {
        const refused = this.refuses(address);
        done(refused && Object.assign(new Error(refused.message), { responseCode: refused.code }));
      },
      onData: async (stream, session, done) => {
        const raw = await text(stream);
        this.mails.push({ ...parsed(raw), raw, to: session.envelope.rcptTo.map(({ address }) => address) });
        done();
      },
    });
    this.server.on('error', () => {});
    await new Promise<void>((resolve) => this.server?.listen(this.port, '127.0.0.1', resolve));
    this.port = (this.server.server.address() as AddressInfo).port;
    return this;
  }

  close(): Promise<void> {
    return new Promise((resolve) => (this.server ? this.server.close(() => resolve()) : resolve()));
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }
}

function unquoted(text: string): string {
  const bytes = text
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

/** As far as these mails go: headers unfolded, two parts in quoted-printable, Base64 or as they are. */
function parsed(raw: string): Pick<Mail, 'head' | 'text' | 'html'> {
  const fields = (head: string) =>
    Object.fromEntries(
      head
        .replace(/\r\n[ \t]+/g, ' ')
        // Encoded words (RFC 2047).
        .replace(/\?= =\?UTF-8\?Q\?/g, '')
        .replace(/=\?UTF-8\?Q\?(.*?)\?=/g, (_, words: string) => unquoted(words.replace(/_/g, ' ')))
        .split('\r\n')
        .map((line) => [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 1).trim(),
        ]),
    ) as Record<string, string>;
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const top = fields(head);
  const boundary = /boundary="([^"]+)"/.exec(top['content-type'] ?? '')?.[1];
  const parts = rest.join('\r\n\r\n').split(`--${boundary}`).slice(1, -1);
  const decoded = parts.map((part) => {
    const at = part.indexOf('\r\n\r\n');
    const encoding = fields(part.slice(2, at))['content-transfer-encoding'];
    const body = part.slice(at + 4);
    if (encoding === 'base64') return Buffer.from(body, 'base64').toString();
    if (encoding !== 'quoted-printable') return body;
    return unquoted(body);
  });
  return { head: top, text: decoded[0] ?? '', html: decoded[1] ?? '' };
}
