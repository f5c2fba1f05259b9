/** `/unsubscribe?token=…`, from links in mails: a page that asks (programs that look at links follow them too), and what its button, or a mail program by RFC 8058, sends. */
import type { Express, Request, Response } from 'express';
import type { MailKind } from '../store/job-fields.js';

export interface Unsubscribing {
  /** Whose mail about what a token ends; null: it is none of ours. */
  read(token: string): Promise<{ userId: number; kinds: MailKind[] } | null>;
  /** Refused: there is no such user. */
  unsubscribe(userId: number, kinds: readonly MailKind[]): Promise<{ kind: 'done' | 'refused' }>;
  failed(error: unknown): void;
}

export function mountUnsubscribe(app: Express, { read, unsubscribe, failed }: Unsubscribing): void {
  const answered =
    (answer: (of: { userId: number; kinds: MailKind[] } | null) => Promise<[number, string]>) =>
    async (req: Request, res: Response): Promise<void> => {
      try {
        const token = String(req.query.token);
        const [status, text] = await answer(token.length > 500 ? null : await read(token));
        page(res, status, text);
      } catch (error) {
        failed(error);
        page(res, 503, '<p>The service is unavailable. Try again later.</p>');
      }
    };
  const unknown: [number, string] = [404, '<p>This link is not valid.</p>'];
  app.get(
    '/unsubscribe',
    answered(async (of) =>
      of === null
        ? unknown
        : [
            200,
            `<p>Unsubscribe from mail about: ${said(of.kinds)}?</p><form method="post"><button>Unsubscribe</button></form>`,
          ],
    ),
  );
  app.post(
    '/unsubscribe',
    answered(async (of) => {
      if (of === null || (await unsubscribe(of.userId, of.kinds)).kind === 'refused') return unknown;
      return [200, `<p>You are unsubscribed from mail about: ${said(of.kinds)}.</p>`];
    }),
  );
}

/** Words of ours: nothing in them is markup. */
const said = (kinds: readonly MailKind[]): string => kinds.join(', ');

function page(res: Response, status: number, text: string): void {
  res.setHeader('content-security-policy', "default-src 'none'; form-action 'self'; frame-ancestors 'none'");
  res.setHeader('cache-control', 'no-store');
  res.setHeader('referrer-policy', 'no-referrer');
  res.setHeader('x-content-type-options', 'nosniff');
  const head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Switchyard: mail</title>';
  res.status(status).type('text/html').send(`${head}${text}</html>\n`);
}
