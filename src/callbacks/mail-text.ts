/** What a mail says, as text and as HTML, and the links in it. Names of jobs are their users' to choose: nothing of them is a header or markup. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SendMailOptions } from 'nodemailer';
import { type MailKind, mailKinds } from '../store/job-fields.js';
import type { Digest, Notice } from '../store/mails.js';

export interface MailLinks {
  /** Where people reach this service; null: mails have no links. */
  publicUrl: string | null;
  /** What signs the links. */
  secret(): Promise<string>;
}

const SAID: Readonly<Record<MailKind, string>> = {
  BEGIN: 'started',
  END: 'ended',
  FAIL: 'failed',
  LIMIT_80: 'used 80 % of the run time limit',
  WAITED: 'still waiting',
  GROUP_DONE: 'group ended',
  RESERVATION: 'changes of reservations',
};

/** On one line, and not too long. */
const plain = (text: string, most = 200): string => {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
};
const html = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);

function said({
  kind,
  jobId,
  name,
  arrayIndex,
  application,
  state,
  cause,
  exitCode,
  message,
  group,
  hold,
}: Notice): string {
  if (kind === 'RESERVATION')
    return hold
      ? `reservation ${hold.name} at ${plain(hold.site, 80)}: ${plain(hold.note)}`
      : 'a reservation';
  if (kind === 'GROUP_DONE')
    return `all jobs of ${group?.startsWith('group_') ? group : plain(group?.replace(/^\d+ /, '') ?? '')} have ended`;
  const element = arrayIndex === null ? '' : `[${arrayIndex}]`;
  const job = `job_${jobId} (${plain(name ?? application ?? 'removed', 80)}${element})`;
  if (kind !== 'END' && kind !== 'FAIL') return `${job}: ${SAID[kind]}`;
  const how = [
    cause,
    exitCode === null || exitCode === 0 ? null : `exit code ${exitCode}`,
    message && plain(message),
  ];
  return `${job}: ${state}, ${how.filter(Boolean).join(', ')}`;
}

const pageOf = ({ jobId, hold }: Notice): string =>
  hold ? `sites/site_${hold.siteId}?tab=calendar` : `jobs/job_${jobId}`;

const inTotal = ({ counts }: Digest): number => counts.reduce((sum, { notices }) => sum + notices, 0);

function subjectOf(digest: Digest): string {
  const [only] = digest.notices;
  if (inTotal(digest) === 1 && only) return said(only);
  return `${digest.counts.every(({ kind }) => kind === 'RESERVATION') ? 'Reservations' : 'Jobs'}: ${digest.counts.map(({ kind, notices }) => `${notices} ${SAID[kind]}`).join(', ')}`;
}

export async function mailOf(digest: Digest, links: MailLinks, from: string): Promise<SendMailOptions> {
  const { userId, userName, address, notices, upTo } = digest;
  const kinds = digest.counts.map(({ kind }) => kind);
  const base = links.publicUrl;
  const secret = await links.secret();
  const unsubscribe = (some: readonly MailKind[]) =>
    `${base}/unsubscribe?token=${tokenFor(secret, userId, some)}`;
  const lines = notices.map((notice) => ({
    at: new Date(notice.at * 1000).toISOString().replace('T', ' ').slice(0, 19),
    what: said(notice),
    link: base && `${base}/${pageOf(notice)}`,
  }));
  const more = inTotal(digest) - lines.length;
  const rest = more > 0 ? `and ${more} more: see your jobs` : null;
  const why = `Mail for ${userName}. \`switchyard mail\` shows and sets the kinds of mail that you get.`;
  const text = [
    ...lines.map(({ at, what, link }) => `${at} UTC  ${what}${link ? `\n  ${link}` : ''}`),
    ...(rest ? [rest] : []),
    ...['', why],
    ...(base ? kinds.map((kind) => `Unsubscribe from "${SAID[kind]}": ${unsubscribe([kind])}`) : []),
  ];
  const row = ({ at, what, link }: (typeof lines)[number]) =>
    `<tr><td>${at} UTC</td><td>${link ? `<a href="${html(link)}">${html(what)}</a>` : html(what)}</td></tr>`;
  const page = [
    `<table>${lines.map(row).join('\n')}</table>`,
    ...(rest ? [`<p>${rest}</p>`] : []),
    `<p>${html(why)}</p>`,
    ...(base
      ? kinds.map(
          (kind) => `<p><a href="${html(unsubscribe([kind]))}">Unsubscribe from “${SAID[kind]}”</a></p>`,
        )
      : []),
  ];
  return {
    to: { name: '', address },
    subject: plain(subjectOf(digest)),
    messageId: `<switchyard-${userId}-${upTo}@${from.split('@')[1]}>`,
    text: `${text.join('\n')}\n`,
    html: page.join('\n'),
    // Nobody answers machines (RFC 3834), and lists are left by one click (RFC 8058).
    headers: {
      'Auto-Submitted': 'auto-generated',
      ...(base?.startsWith('https:') && { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
      ...(base && { 'List-Unsubscribe': `<${unsubscribe(kinds)}>` }),
    },
  };
}

const signature = (secret: string, said: string): string =>
  createHmac('sha256', secret).update(`unsubscribe ${said}`).digest('base64url');

/** For a link that ends mail of these kinds. */
export function tokenFor(secret: string, userId: number, kinds: readonly MailKind[]): string {
  const said = `${userId}.${kinds.join('-')}`;
  return `${said}.${signature(secret, said)}`;
}

/** Whose mail about what a token ends; null: nobody has signed it. */
export function readToken(secret: string, token: string): { userId: number; kinds: MailKind[] } | null {
  const [user = '', written = '', given = ''] = token.split('.');
  const expected = Buffer.from(signature(secret, `${user}.${written}`));
  const actual = Buffer.from(given);
  if (expected.length !== actual.length || !timingSafeEqual(expected, actual)) return null;
  return { userId: Number(user), kinds: mailKinds.filter((kind) => written.split('-').includes(kind)) };
}
