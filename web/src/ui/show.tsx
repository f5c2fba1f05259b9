/** How things look: states, numbers, times, tables, and what stands where there is nothing yet. */

import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react';
import type { CombinedError } from 'urql';
import { codeOf, messageOf } from '../api/client';
import type { JobState } from '../api/states.gql';
import { Button } from './controls';
import { causeOf, count, duration, instant, lower, moment, words } from './format';
import { AlertTriangle, CircleOff, RotateCw } from './icons';
import { useNow } from './now';

export function StateBadge({ state, cause }: { state: JobState; cause?: string | null | undefined }) {
  return (
    <span className={`badge state-${state.toLowerCase()}`}>
      <i className="dot" aria-hidden />
      {words(state)}
      {cause && state === 'FAILED' && <span className="faint">· {lower(causeOf(cause))}</span>}
    </span>
  );
}

type Tone = 'good' | 'warn' | 'danger' | 'accent' | 'plain';

export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge tone-${tone}`}>{children}</span>;
}

/** What a site or machine may do, and whether it is heard. */
export function PlaceBadge({
  state,
  silent = false,
  unfit = false,
}: {
  state: string;
  silent?: boolean;
  unfit?: boolean;
}) {
  if (silent && state === 'UP') return <Badge tone="danger">Silent</Badge>;
  if (unfit && state === 'UP') return <Badge tone="warn">Unfit</Badge>;
  const tone = state === 'UP' ? 'good' : state === 'DRAINING' ? 'warn' : 'danger';
  return (
    <Badge tone={tone}>
      <i className="dot" aria-hidden />
      {words(state)}
    </Badge>
  );
}

export function Page({
  title,
  about,
  actions,
  children,
  fill = false,
}: {
  title: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** As high as the window: something inside scrolls by itself. */
  fill?: boolean;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: read from what is shown
  useEffect(() => {
    document.title = `${heading.current?.innerText.replace(/\s+/g, ' ').trim()} · Switchyard`;
    return () => {
      document.title = 'Switchyard';
    };
  }, [title]);
  return (
    <div className={`page ${fill ? 'fill' : ''}`}>
      <header className="page-head">
        <div className="grow">
          <h1 ref={heading}>{title}</h1>
          {about && <div className="page-about">{about}</div>}
        </div>
        {actions && <div className="row wrap">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Card({
  title,
  about,
  actions,
  children,
  flush = false,
  className = '',
}: {
  title?: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Its content reaches to the edge. */
  flush?: boolean;
  className?: string;
}) {
  return (
    <section className={`card ${className}`}>
      {title && (
        <header className="card-head">
          <div className="grow">
            <h2>{title}</h2>
            {about && <p className="faint tiny">{about}</p>}
          </div>
          {actions}
        </header>
      )}
      <div className={flush ? 'card-body flush' : 'card-body'}>{children}</div>
    </section>
  );
}

export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="empty">
      <span className="empty-icon" aria-hidden>
        {icon ?? <CircleOff size={20} />}
      </span>
      <p className="strong">{title}</p>
      {children && <p className="muted small">{children}</p>}
      {action}
    </div>
  );
}

export function Problem({
  error,
  retry,
}: {
  error: CombinedError | Error | string;
  retry?: (() => void) | undefined;
}) {
  const text =
    typeof error === 'string' ? error : 'graphQLErrors' in error ? messageOf(error) : error.message;
  return (
    <div className="problem" role="alert">
      <AlertTriangle size={16} aria-hidden />
      <p className="grow">{text}</p>
      {retry && !isForbidden(error) && (
        <Button className="small" icon={<RotateCw size={13} />} onPress={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Who may not see something may not a moment later either. */
const isForbidden = (error: CombinedError | Error | string): boolean =>
  typeof error !== 'string' && 'graphQLErrors' in error && codeOf(error) === 'FORBIDDEN';

/** A place that will be filled, in the size of what comes. */
export function Skeleton({ height = 120, lines }: { height?: number; lines?: number }) {
  if (lines === undefined) return <div className="skeleton" style={{ height }} />;
  return (
    <div className="stack tight" aria-hidden>
      {Array.from({ length: lines }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <div key={i} className="skeleton" style={{ height: 20, width: `${92 - ((i * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** What has come, or why nothing has. An error beside older data stands above them. */
export function Loaded<D>({
  from,
  skeleton = <Skeleton />,
  children,
}: {
  from: { data: D | undefined; error: CombinedError | undefined; loading: boolean; refresh(): void };
  skeleton?: ReactNode;
  children(data: D): ReactNode;
}) {
  const { data, error, refresh } = from;
  if (data === undefined) {
    if (error) return <Problem error={error} retry={refresh} />;
    return (
      <div aria-busy="true">
        <span className="hidden-visually" role="status">
          Loading
        </span>
        {skeleton}
      </div>
    );
  }
  return (
    <>
      {error && <Problem error={error} retry={refresh} />}
      {children(data)}
    </>
  );
}

/** An instant, in the browser's time; the tooltip has it in full. */
export function At({ at, seconds = true }: { at: string | null | undefined; seconds?: boolean }) {
  if (!at) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={instant(at)} className="num">
      {moment(at, { seconds })}
    </time>
  );
}

/** How long ago, passing. */
export function Ago({ at, suffix = ' ago' }: { at: string | null | undefined; suffix?: string }) {
  const now = useNow();
  if (!at) return <span className="faint">never</span>;
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  return (
    <time dateTime={at} title={instant(at)} className="num">
      {seconds < 2 ? 'just now' : `${duration(Math.round(seconds))}${suffix}`}
    </time>
  );
}

/** The time from one instant to another, or until now. */
export function Lasted({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) {
  const now = useNow();
  if (!from) return <span className="faint">–</span>;
  const end = to ? Date.parse(to) : now;
  return <span className="num">{duration(Math.max(0, (end - Date.parse(from)) / 1000))}</span>;
}

/** A share as a bar. Its text says the same. */
export function Bar({
  value,
  max,
  tone = 'accent',
  label,
  thin = false,
}: {
  value: number;
  max: number;
  tone?: Tone;
  label: string;
  thin?: boolean;
}) {
  const share = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0;
  return (
    <div className={`bar tone-${tone} ${thin ? 'thin' : ''}`} role="img" aria-label={label} title={label}>
      <span style={{ width: `${share * 100}%` }} />
    </div>
  );
}

/** Parts of a whole, as one bar. */
export function Parts({
  parts,
  total,
  label,
}: {
  parts: readonly { name: string; value: number; color: string }[];
  total: number;
  label: string;
}) {
  const shown = parts.filter(({ value }) => value > 0);
  const text = `${label}: ${shown.map(({ name, value }) => `${count(value)} ${name}`).join(', ') || 'none'}`;
  return (
    <div className="bar parts" role="img" aria-label={text} title={text}>
      {shown.map(({ name, value, color }) => (
        <span key={name} style={{ width: `${(100 * value) / Math.max(total, 1)}%`, background: color }} />
      ))}
    </div>
  );
}

export interface Column<R> {
  key: string;
  header: ReactNode;
  /** Numbers stand at the right. */
  right?: boolean;
  cell(row: R): ReactNode;
  width?: CSSProperties['width'];
  /** Left out on narrow screens. */
  minor?: boolean;
}

export function Table<R>({
  label,
  columns,
  rows,
  id,
  empty = 'Nothing here.',
  selected,
}: {
  label: string;
  columns: readonly Column<NoInfer<R>>[];
  rows: readonly R[];
  id(row: NoInfer<R>): string;
  empty?: ReactNode;
  selected?: ((row: R) => boolean) | undefined;
}) {
  if (rows.length === 0) return <div className="table-empty">{empty}</div>;
  return (
    <div className="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table className="table">
        <caption className="hidden-visually">{label}</caption>
        <thead>
          <tr>
            {columns.map(({ key, header, right, width, minor }) => (
              <th
                key={key}
                scope="col"
                className={`${right ? 'right' : ''} ${minor ? 'minor' : ''}`}
                style={width ? { width } : undefined}
              >
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)} className={selected?.(row) ? 'selected' : ''}>
              {columns.map(({ key, right, cell, minor }) => (
                <td key={key} className={`${right ? 'right num' : ''} ${minor ? 'minor' : ''}`}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Names and values, one below the other. */
export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode] | null | false)[] }) {
  return (
    <dl className="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A line without axes, for the run of a number. */
export function Spark({
  values,
  color = 'var(--accent)',
  label,
}: {
  values: readonly number[];
  color?: string;
  label: string;
}) {
  const max = Math.max(...values, 1e-9);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, i) => `${(i * step).toFixed(2)},${(28 - (26 * value) / max).toFixed(2)}`);
  return (
    <svg className="spark" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={label}>
      {values.length > 1 && (
        <>
          <polygon points={`0,30 ${points.join(' ')} 100,30`} fill={color} opacity="0.12" />
          <polyline
            points={points.join(' ')}
            fill="none"
            stroke={color}
            strokeWidth="1.5"
            vectorEffect="non-scaling-stroke"
          />
        </>
      )}
    </svg>
  );
}
