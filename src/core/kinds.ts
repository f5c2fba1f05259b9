/** Policies by the kind that a document names: those of the product, and those that were added from outside of it. */
import { z } from 'zod';

/** A policy document's schema, which tells its kind. */
interface KindSchema {
  readonly shape: { readonly kind: { readonly value: string } };
}

export class Kinds<K extends { readonly schema: KindSchema }> {
  private readonly byName = new Map<string, K>();
  private readonly fromOutside: K[] = [];

  /** `what`: what they are policies for, as messages name it. */
  constructor(
    private readonly what: string,
    kinds: readonly K[],
  ) {
    for (const kind of kinds) this.byName.set(kind.schema.shape.kind.value, kind);
  }

  /** Those from outside of the product. */
  get added(): readonly K[] {
    return this.fromOutside;
  }

  /** Lets documents that are read from now on name a kind that the product does not have. Throws if there is one of its name. */
  add(kind: K): void {
    const name = kind.schema.shape.kind.value;
    if (this.byName.has(name)) throw new Error(`there is a ${this.what} policy "${name}" already`);
    this.byName.set(name, kind);
    this.fromOutside.push(kind);
  }

  /** What a document names that has been read. */
  of({ kind }: { readonly kind: string }): K {
    return this.byName.get(kind) as K;
  }

  /** The schema of documents that may name what was added, given that of the product's. */
  schema<S extends z.ZodType>(own: S): S {
    if (this.fromOutside.length === 0) return own;
    const all = [...this.byName.values()].map(({ schema }) => schema);
    // What came from outside is known only now: to the types the product's own are all there are.
    return z.discriminatedUnion('kind', all as never) as unknown as S;
  }
}
