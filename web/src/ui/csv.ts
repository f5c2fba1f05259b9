/** Tables for spreadsheets. */
import { csvCell } from '../../../src/words/index';

/** What a spreadsheet would take for a formula is kept from being one. */
function field(value: string | number | null): string {
  const text = value === null ? '' : String(value);
  return csvCell(typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
}

export const csvLine = (values: readonly (string | number | null)[]): string =>
  `${values.map(field).join(',')}\r\n`;
