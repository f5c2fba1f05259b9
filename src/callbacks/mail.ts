/**
 * Mail about jobs. The follower makes notices of events, each once; beside it, what waits for a user goes out as one mail, and not before
 * the user's last mail is so old. A process that dies between sending and noting so sends the same mail again, under the same Message-ID.
 */
import nodemailer from 'nodemailer';
import { endedStates, type JobState } from '../core/states.js';
import type { EngineLog, Following } from '../engine/index.js';
import { type Env, pause } from '../platform/env.js';
import type { Metrics } from '../platform/metrics.js';
import type { Mails } from '../store/mails.js';
import { type MailLinks, mailOf } from './mail-text.js';

/** Between two looks at what is due by the clock, at what was sent long ago, and at whom to send to, seconds. */
const DUE_EVERY_S = 30;
const PRUNE_EVERY_S = 3_600;
const SEND_EVERY_S = 1;
/** What happens within so many seconds after something goes into the same mail. */
const GATHER_S = 5;
/** Mails in one round. */
const ROUND = 100;
/** For the mail that is being sent when the process stops, ms. */
const GRACE_MS = 2_000;
/** After a failure of the mail server, seconds; twice as long each time, up to. */
const FIRST_PAUSE_S = 5;
const LONGEST_PAUSE_S = 600;

export interface MailParts {
  mails: Mails;
  smtpUrl: string;
  from: string;
  everyS: number;
  waitedS: number;
  links: MailLinks;
  log: EngineLog;
  metrics: Pick<Metrics, 'mails'>;
  env: Env;
  /** Epoch seconds. */
  now(): number;
}

/** What nodemailer throws; without a code the server gave no answer. */
type Refused = { responseCode?: number; command: string; response: string };

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
export function mailFollowing(parts: MailParts): Following {
  const { mails, env, now, log, metrics } = parts;
  /** Connects for each mail: mails are minutes apart. */
  const transport = nodemailer.createTransport(
    {
      url: parts.smtpUrl,
      connectionTimeout: 10_000,
      greetingTimeout: 10_000,
      socketTimeout: 30_000,
    },
    { from: { name: 'Switchyard', address: parts.from } },
  );
  const at = { due: Number.NEGATIVE_INFINITY, prune: Number.NEGATIVE_INFINITY };
  let stopping = new AbortController();
  let sending: Promise<void> | null = null;
  let failures = 0;

  /** Whether so long has passed; a clock that was set back does not stop it. */
  function isTime(what: keyof typeof at, everyS: number): boolean {
    if (Math.abs(now() - at[what]) < everyS) return false;
    at[what] = now();
    return true;
  }

  async function send(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      let pauseS = SEND_EVERY_S;
      try {
        const refused: unknown[] = [];
        for (const userId of await mails.due(now(), GATHER_S, parts.everyS, ROUND)) {
          if (signal.aborted) return;
          await sendTo(userId).catch((error: Refused) => {
            // A server that answers may take the mail of others.
            if (error.responseCode === undefined) throw error;
            refused.push(error);
          });
        }
        if (refused.length > 0) throw refused[0];
        failures = 0;
      } catch (error) {
        failures++;
        pauseS = Math.min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** Math.min(failures - 1, 20));
        metrics.mails.inc({ outcome: 'failed' });
        log.warn({ err: error, pauseS }, 'mail could not be sent; trying again');
      }
      await pause(env, pauseS * 1000, signal);
    }
  }

  async function sendTo(userId: number): Promise<void> {
    const digest = await mails.digest(userId);
    // Nothing that may be sent is left.
    if (digest === null) return mails.sent(userId, null, now());
    try {
      await transport.sendMail(await mailOf(digest, parts.links, parts.from));
    } catch (error) {
      const { responseCode, command, response } = error as Refused;
      // Only what is said of the recipient is about the address.
      if (command !== 'RCPT TO' || !((responseCode ?? 0) >= 500)) throw error;
      metrics.mails.inc({ outcome: 'refused' });
      log.warn({ user: userId, response }, 'the mail server rejects an address; no more mail is sent there');
      return mails.refused(userId, digest.address, `the mail server responded: ${response}`.slice(0, 500));
    }
    metrics.mails.inc({ outcome: 'sent' });
    await mails.sent(userId, digest.upTo, now());
  }

  return {
    name: 'mail',
    wants: () => ({ states: TOLD }),
    async take(events) {
      const ids = events.filter(({ kind }) => kind === 'JOB_STATE').map(({ id }) => id);
      if (ids.length > 0) await mails.note(ids);
    },
    // What was missed is not told late.
    startOver: async () => {},
    async tick() {
      sending ??= send();
      if (isTime('due', DUE_EVERY_S)) await mails.noteDue(now(), parts.waitedS);
      if (isTime('prune', PRUNE_EVERY_S)) await mails.prune(now());
    },
    async leave() {
      stopping.abort();
      await Promise.race([sending, pause(env, GRACE_MS)]);
      sending = null;
      stopping = new AbortController();
    },
  };
}

const TOLD: readonly JobState[] = ['RUNNING', ...endedStates];
