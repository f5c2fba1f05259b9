/** How long a transaction may take that reads 100 000s of jobs, or writes 10 000, on a busy small machine. */
export const LONG_MS = 120_000;
