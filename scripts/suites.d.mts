export const SUITES: Readonly<Record<string, { files?: readonly string[] }>>;
/** The path of a suite's file, or of its folder with a slash. */
export function pathOf(name: string): string;
