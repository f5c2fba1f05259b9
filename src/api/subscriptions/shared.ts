/**
 * Updates that several subscribers ask for in the same words: the operation is executed and its answer encoded once for all of them, and for
 * those who have got as far it is told at once (parties.ts).
 *
 * The same words are the same document, operation and variables, from viewers who do not differ in anything: same key, same user, same role.
 * So nobody can get what another may see, and the work goes on the same account, whoever of them does it.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import { LRUCache } from 'lru-cache';
import { turns } from '../../platform/turns.js';
import { accountOf } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import type { Context } from '../context.js';
import type { Walk } from './loop.js';
import { type Answer, type Asking, Member, Party, type Recipient, type Update } from './parties.js';
import { pulled } from './streams.js';

export type { Recipient };

/** Subscriptions that tell of events (services/subscriptions.ts): whoever is at the same cursor is told the same. */
const FIELDS: ReadonlySet<string> = new Set(['jobUpdated', 'siteUpdated', 'simulationUpdated']);
/** Who catch up with the same events do so one shortly after another; who comes later has them executed again. */
const KEPT_MS = 1_000;
/** Characters of all answers that are kept, and of one. */
const KEPT_CHARS = 4_000_000;
const ANSWER_CHARS = 200_000;
/** Longer variables are hardly ever those of another. */
const VARIABLES_CHARS = 4_000;

/** What subscribers ask who get the same answers. */
interface Question extends Asking {
  /** All that an answer depends on beside the update. */
  readonly words: string;
  readonly number: number;
  /** How many ask it now. */
  askers: number;
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
  private readonly answers = new LRUCache<string, Promise<Answer>>({
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
    const question = this.join(words, (args.contextValue as Context).viewer);
    const party = new Party(events as Walk<Update>, question);
    const member = new Member(args, recipient, party);
    return pulled<never>(
      () => {
        void party.go();
        return member.end;
      },
      () => {
        member.leave();
        this.leave(question);
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

  private join(words: string, viewer: Viewer): Question {
    let question = this.questions.get(words);
    if (!question) {
      const asked: Question = {
        ...{ words, number: ++this.asked, askers: 0, account: accountOf(viewer), waiting: new Map() },
        answer: (update, member) => this.answer(asked, update, member),
      };
      question = asked;
      this.questions.set(words, question);
    }
    question.askers++;
    return question;
  }

  private leave(question: Question): void {
    if (--question.askers === 0) this.questions.delete(question.words);
  }

  /** One that is known, or the member's own. */
  private async answer(question: Question, update: Update, member: Member): Promise<Answer> {
    // Nothing is kept for somebody who asks alone.
    if (question.askers === 1) return ownAnswer(update, member);
    const name = `${question.number}/${this.updates.of(update)}`;
    const known = this.answers.get(name);
    if (known) {
      const answer = await known;
      // All who waited go on now: each in a turn.
      await turns.turn(question.account);
      return answer.isForAll ? answer : ownAnswer(update, member);
    }
    const making = ownAnswer(update, member);
    this.answers.set(name, making, { size: 1 });
    const answer = await making;
    this.answers.set(name, making, { size: 1 + answer.payload.length });
    return answer;
  }
}

async function ownAnswer(update: Update, { args, recipient }: Member): Promise<Answer> {
  const result = await execute({ ...args, rootValue: update });
  // Errors name the request in which they were met: they are each subscriber's own.
  return { payload: JSON.stringify(recipient.outward(result)), isForAll: !result.errors };
}
