/** A value of a line of comma-separated values (RFC 4180). */
export const csvCell = (value: string): string =>
  /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
