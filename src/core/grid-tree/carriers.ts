/**
 * How messages of a tree travel. In one process, `Pump` hands them over until all is quiet. Where they may be lost, repeated or
 * overtake one another, each end of a connection has a `Link`, and any carrier of its packets will do.
 */
import type { Address, Message } from './messages.js';

/** A state machine. */
export interface Node {
  receive(from: Address, message: Message): void;
  /** Answers what has come since; an owner answers at once and has none. */
  settle?(): void;
}

/** Hands messages over in the order in which they were sent, a node's all at once. */
export class Pump {
  private readonly nodes = new Map<Address, Node>();
  private readonly inboxes = new Map<Address, { from: Address; message: Message }[]>();
  /** Messages handed over. */
  delivered = 0;

  add(address: Address, node: Node): void {
    this.nodes.set(address, node);
    this.touch(address);
  }

  /** What is under way between the two is lost, with the connection. */
  cut(a: Address, b: Address): void {
    for (const [to, from] of [
      [a, b],
      [b, a],
    ] as const) {
      const inbox = this.inboxes.get(to);
      if (inbox !== undefined)
        this.inboxes.set(
          to,
          inbox.filter((letter) => letter.from !== from),
        );
    }
  }

  remove(address: Address): void {
    this.nodes.delete(address);
    this.inboxes.delete(address);
  }

  /** For `Effects.send` of the node at `from`. What goes to nobody is lost. */
  send(from: Address, to: Address, message: Message): void {
    if (!this.nodes.has(to)) return;
    const inbox = this.inboxes.get(to);
    if (inbox === undefined) this.inboxes.set(to, [{ from, message }]);
    else inbox.push({ from, message });
  }

  /** It is to settle although no message came: something about it was changed. */
  touch(address: Address): void {
    if (!this.inboxes.has(address)) this.inboxes.set(address, []);
  }

  /** Until all is quiet. */
  run(): void {
    for (;;) {
      const next = this.inboxes.entries().next();
      if (next.done) return;
      const [address, letters] = next.value;
      this.inboxes.delete(address);
      const node = this.nodes.get(address);
      if (node === undefined) continue;
      for (const { from, message } of letters) node.receive(from, message);
      this.delivered += letters.length;
      node.settle?.();
    }
  }
}

/** Messages and what acknowledges those of the other side. */
export interface Packet {
  /** Of the connection; packets of another one are not for this one. */
  session: string;
  /** Number of the first message; they count from 1. */
  first: number;
  messages: readonly Message[];
  /** All messages up to this number have come. */
  received: number;
}

/** A packet has no more messages than this. */
export const PACKET_MAX = 1000;

/**
 * One end of a connection: each message once and in order, as long as packets come through at times. Both ends must send a packet
 * whenever one is `due`, and again after a while as long as messages are `pending`.
 */
export class Link {
  private readonly outbox: Message[] = [];
  /** Number of the first message of the outbox. */
  private first = 1;
  private received = 0;
  due = false;

  constructor(private readonly session: string) {}

  /** Messages that the other side has not acknowledged. */
  get pending(): readonly Message[] {
    return this.outbox;
  }

  send(message: Message): void {
    this.outbox.push(message);
    this.due = true;
  }

  /** To be sent now. */
  packet(): Packet {
    this.due = false;
    const { session, first, received } = this;
    return { session, first, messages: this.outbox.slice(0, PACKET_MAX), received };
  }

  /** What is new in a packet, in order. */
  accept(packet: Packet): readonly Message[] {
    if (packet.session !== this.session) return [];
    const done = Math.max(0, Math.min(packet.received - this.first + 1, this.outbox.length));
    this.outbox.splice(0, done);
    this.first += done;
    // More than fits a packet is left.
    if (done > 0 && this.outbox.length > 0) this.due = true;
    if (packet.messages.length === 0) return [];
    this.due = true;
    const known = this.received - packet.first + 1;
    // Something before it is missing; it will come again.
    if (known < 0) return [];
    const news = packet.messages.slice(known);
    this.received += news.length;
    return news;
  }
}
