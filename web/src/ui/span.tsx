/** A stretch of the past to look at, in intervals that begin at round times. */
import { useMemo, useState } from 'react';
import { Segments } from './controls';
import { useNow } from './now';

const SPANS = {
  hour: { label: '1 hour', points: 60, stepS: 60 },
  day: { label: '24 hours', points: 96, stepS: 900 },
  week: { label: '7 days', points: 84, stepS: 7_200 },
  month: { label: '30 days', points: 90, stepS: 28_800 },
} as const;
type SpanName = keyof typeof SPANS;

export interface Span {
  from: string;
  /** The end of the interval that it is now. */
  to: string;
  points: number;
}

/** The span that is chosen, what chooses it, and how often to ask again: a longer one changes less, and costs the service more. */
export function useSpan(): { span: Span; chooser: React.ReactNode; everyMs: number } {
  const [name, setName] = useState<SpanName>('day');
  const { points, stepS } = SPANS[name];
  const end = Math.ceil(useNow(60_000) / 1000 / stepS) * stepS;
  const span = useMemo(
    () => ({
      from: new Date((end - points * stepS) * 1000).toISOString(),
      to: new Date(end * 1000).toISOString(),
      points,
    }),
    [end, points, stepS],
  );
  const chooser = (
    <Segments
      label="Time"
      value={name}
      onChange={setName}
      options={Object.entries(SPANS).map(([value, { label }]) => ({ value: value as SpanName, label }))}
    />
  );
  return { span, chooser, everyMs: Math.max(10_000, (stepS * 1000) / 15) };
}
