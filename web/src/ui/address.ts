/** The part of an address behind `?`: names and plain texts. */
export type Search = Record<string, string | undefined>;
