/**
 * Updates that several subscribers ask for in the same words: the operation is executed and its answer encoded once for all of them.
 *
 * The same words are the same document, operation and variables, from viewers who do not differ in anything: same key, same user, same role.
 * So nobody can get what another may see, and the work goes on the same account, whoever of them does it.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import { LRUCache } from 'lru-cache';
import { turns } from '../../platform/turns.js';
import { accountOf } from '../admission/shares.js';
import type { Context } from '../context.js';
import { pulled } from './streams.js';

/** Subscriptions whose updates are the same objects for all who hear of them (services/subscriptions.ts). */
const FIELDS: ReadonlySet<string> = new Set(['jobUpdated', 'siteUpdated']);
/** Subscribers take an update one shortly after another; who comes later has it executed again. */
const KEPT_MS = 1_000;
/** Characters of all answers that are kept, and of one. */
const KEPT_CHARS = 4_000_000;
const ANSWER_CHARS = 200_000;
/** Longer variables are hardly ever those of another. */
const VARIABLES_CHARS = 4_000;

/** What subscribers ask who get the same answers. */
interface Question {
  /** All that an answer depends on beside the update. */
  readonly words: string;
  readonly number: number;
  /** How many ask it now. */
  askers: number;
}

/** An answer that somebody makes, or has made. */
interface Answer {
  /** As JSON; null: it is not there yet, or cannot be shared. */
  text: string | null;
  /** Resolves when it is decided; null: it is. */
  made: Promise<void> | null;
}

/** How the answers go to one client. */
export interface Recipient {
  /** What of a result goes over the wire: errors in the form that clients are shown. */
  outward(result: ExecutionResult): object;
  /** Sends the JSON of an answer. */
  send(payload: string): Promise<void>;
}

/** Numbers for objects that are the same or not. */
class Numbers {
  private readonly known = new WeakMap<object, number>();
  private latest = 0;

  of(one: object): number {
    let number = this.known.get(one);
    if (number === undefined) {
      number = ++this.latest;
      this.known.set(one, number);
    }
    return number;
  }
}

/** The answers that the subscribers of one API share. */
export class SharedAnswers {
  private readonly questions = new Map<string, Question>();
  private readonly answers = new LRUCache<string, Answer>({
    maxSize: KEPT_CHARS,
    maxEntrySize: ANSWER_CHARS,
    ttl: KEPT_MS,
  });
  private readonly documents = new Numbers();
  private readonly updates = new Numbers();
  private asked = 0;

  /**
   * Follows a subscription and sends what it tells; as for graphql-ws, it is a stream without results, which ends as the subscription does.
   * Null: answers to this one are not shared, it has to be asked by `subscribe`.
   */
  async follow(
    field: string,
    args: ExecutionArgs,
    recipient: Recipient,
  ): Promise<AsyncGenerator<never, void, void> | ExecutionResult | null> {
    const words = FIELDS.has(field) ? this.wordsOf(args) : null;
    if (words === null) return null;
    const events = await createSourceEventStream(args);
    if (!(Symbol.asyncIterator in events)) return events;
    const updates = events[Symbol.asyncIterator]() as AsyncIterator<object>;
    const question = this.join(words);
    let isOpen = true;
    return pulled<never>(
      async () => {
        for (;;) {
          const { value: update, done } = await updates.next();
          if (done) return null;
          const payload = await this.payload(question, update, args, recipient);
          // The client may have gone meanwhile.
          if (isOpen) await recipient.send(payload);
        }
      },
      () => {
        isOpen = false;
        this.leave(question);
        void updates.return?.(undefined);
      },
    );
  }

  /** Null: the variables are long. */
  private wordsOf({ document, operationName, variableValues, contextValue }: ExecutionArgs): string | null {
    const variables = JSON.stringify(variableValues ?? {});
    if (variables.length > VARIABLES_CHARS) return null;
    const { viewer } = contextValue as Context;
    // Documents of the same text are one object (operations.ts). Of the viewer everything counts, also what may be added to it.
    return JSON.stringify([this.documents.of(document), operationName ?? null, variables, viewer]);
  }

  private join(words: string): Question {
    let question = this.questions.get(words);
    if (!question) {
      question = { words, number: ++this.asked, askers: 0 };
      this.questions.set(words, question);
    }
    question.askers++;
    return question;
  }

  private leave(question: Question): void {
    if (--question.askers === 0) this.questions.delete(question.words);
  }

  /** The answer to a question about an update: one that is known, or the subscriber's own. */
  private async payload(
    question: Question,
    update: object,
    args: ExecutionArgs,
    { outward }: Recipient,
  ): Promise<string> {
    const own = async () => execute({ ...args, rootValue: update });
    // Nothing is kept for somebody who asks alone.
    if (question.askers === 1) return JSON.stringify(outward(await own()));
    const name = `${question.number}/${this.updates.of(update)}`;
    const known = this.answers.get(name);
    if (known) {
      if (known.made) {
        await known.made;
        // All who waited go on now: each in a turn.
        await turns.turn(accountOf((args.contextValue as Context).viewer));
      }
      return known.text ?? JSON.stringify(outward(await own()));
    }
    const answer: Answer = { text: null, made: null };
    const result = own();
    answer.made = result
      .then((done) => {
        // Errors name the request in which they were met: they are each subscriber's own.
        if (!done.errors) answer.text = JSON.stringify(outward(done));
      })
      .catch(() => {})
      .finally(() => {
        answer.made = null;
        this.answers.set(name, answer, { size: 1 + (answer.text?.length ?? 0) });
      });
    this.answers.set(name, answer, { size: 1 });
    await answer.made;
    return answer.text ?? JSON.stringify(outward(await result));
  }
}
