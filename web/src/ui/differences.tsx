import type { Difference } from './document';

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** What was changed to what, a line for each. */
export function Differences({ of, none = 'No difference.' }: { of: readonly Difference[]; none?: string }) {
  if (of.length === 0) return <p className="faint small">{none}</p>;
  return (
    <ul className="differences">
      {of.map(({ path, before, after }) => (
        <li key={path}>
          <code className="path">{path || 'document'}</code>
          <span>
            {before !== undefined && (
              <del>
                <span className="hidden-visually">was </span>
                {text(before)}
              </del>
            )}{' '}
            {after !== undefined && (
              <ins>
                <span className="hidden-visually">is </span>
                {text(after)}
              </ins>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
