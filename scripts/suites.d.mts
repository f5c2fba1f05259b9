export const SUITES: Readonly<Record<string, { files?: readonly string[] }>>;
