/** The list itself: a grid of which only the rows in sight exist. */
import { useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { titleOf } from '../../parts/job-column';
import { Check } from '../../ui/controls';
import { count, numberOf } from '../../ui/format';
import { useNarrow } from '../../ui/media';
import { Lasted, StateBadge } from '../../ui/show';
import type { JobColumn } from './columns';
import type { JobList, Row } from './job-list';

const ROW_PX = 34;
const NARROW_ROW_PX = 58;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one widget: rows, keys and scrolling share its state
export const JobGrid = memo(function JobGrid({
  list,
  total,
  columns,
  selected,
  onSelect,
  onTop,
}: {
  list: JobList;
  total: number;
  columns: readonly JobColumn[];
  selected: ReadonlyMap<string, Row>;
  onSelect(row: Row, on: boolean): void;
  /** Whether the reader is at the top of the list. */
  onTop(is: boolean): void;
}) {
  useSyncExternalStore(list.subscribe, list.getArrivals);
  const frame = useRef<HTMLDivElement>(null);
  const narrow = useNarrow();
  const navigate = useNavigate();
  const [active, setActive] = useState(0);
  const height = narrow ? NARROW_ROW_PX : ROW_PX;
  const virtual = useVirtualizer({
    count: total,
    getScrollElement: () => frame.current,
    estimateSize: () => height,
    overscan: 12,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new height is measured anew
  useEffect(() => virtual.measure(), [height]);
  const items = virtual.getVirtualItems();
  const from = items[0]?.index ?? 0;
  const to = items.at(-1)?.index ?? 0;
  useEffect(() => list.show(from, to), [list, from, to]);
  const top = (virtual.scrollOffset ?? 0) < ROW_PX;
  useEffect(() => onTop(top), [onTop, top]);

  const template = `38px ${columns.map(({ width, grow }) => (grow ? `minmax(${width}px, ${grow}fr)` : `${width}px`)).join(' ')}`;
  const minWidth = 38 + columns.reduce((sum, { width }) => sum + width, 0);

  function move(index: number): void {
    const next = Math.max(0, Math.min(total - 1, index));
    setActive(next);
    virtual.scrollToIndex(next);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor((frame.current?.clientHeight ?? 400) / height) - 2);
    const to: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: total - 1,
    };
    const row = rowAt(active);
    if (event.key in to) move(to[event.key]!);
    else if (event.key === 'Enter' && row) void navigate({ to: '/jobs/$id', params: { id: row.id } });
    else if (event.key === ' ' && row) onSelect(row, !selected.has(row.id));
    else return;
    event.preventDefault();
  }

  function rowAt(index: number): Row | undefined {
    const id = list.idAt(index);
    return id ? list.row(id) : undefined;
  }

  return (
    <div
      ref={frame}
      className={`grid-frame ${narrow ? 'narrow' : ''}`}
      role="grid"
      aria-label="Jobs"
      aria-rowcount={total + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable
      aria-activedescendant={total > 0 ? `job-row-${active}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      {!narrow && (
        <div
          className="grid-head"
          role="row"
          aria-rowindex={1}
          style={{ gridTemplateColumns: template, minWidth }}
        >
          <span role="columnheader">
            <span className="hidden-visually">Selected</span>
          </span>
          {columns.map(({ key, header, right }) => (
            <span key={key} role="columnheader" className={right ? 'right' : ''}>
              {header}
            </span>
          ))}
        </div>
      )}
      <div
        className="grid-body"
        role="rowgroup"
        style={{ height: virtual.getTotalSize(), minWidth: narrow ? undefined : minWidth }}
      >
        {items.map(({ index, start }) => {
          const id = list.idAt(index);
          return (
            <GridRow
              key={index}
              index={index}
              id={id}
              list={list}
              start={start}
              height={height}
              columns={columns}
              template={template}
              narrow={narrow}
              active={index === active}
              selected={id !== undefined && selected.has(id)}
              onSelect={onSelect}
              onActive={setActive}
            />
          );
        })}
      </div>
    </div>
  );
});

interface RowProps {
  index: number;
  id: string | undefined;
  list: JobList;
  start: number;
  height: number;
  columns: readonly JobColumn[];
  template: string;
  narrow: boolean;
  active: boolean;
  selected: boolean;
  onSelect(row: Row, on: boolean): void;
  onActive(index: number): void;
}

const GridRow = memo(function GridRow({
  index,
  id,
  list,
  start,
  height,
  columns,
  template,
  narrow,
  active,
  selected,
  onSelect,
  onActive,
}: RowProps) {
  const navigate = useNavigate();
  const subscribe = useCallback(
    (listener: () => void) => (id ? list.subscribeRow(id, listener) : () => {}),
    [list, id],
  );
  const row = useSyncExternalStore(subscribe, () => (id ? list.row(id) : undefined));
  const style: CSSProperties = {
    transform: `translateY(${start}px)`,
    height,
    ...(narrow ? {} : { gridTemplateColumns: template }),
  };
  const shared = {
    id: `job-row-${index}`,
    role: 'row',
    'aria-rowindex': index + 2,
    'aria-selected': selected,
    style,
  };
  if (!row) {
    return (
      <div {...shared} className={`grid-row waiting ${active ? 'active' : ''}`} aria-busy>
        <span role="gridcell" />
        <span role="gridcell">
          <span className="skeleton" />
        </span>
      </div>
    );
  }
  const name = `Job ${numberOf(row.id)}`;
  const className = `grid-row ${active ? 'active' : ''} ${selected ? 'selected' : ''} ${
    list.stillMatches(row.state) ? '' : 'left'
  }`;
  return (
    <div
      {...shared}
      className={className}
      onClick={(event) => {
        onActive(index);
        if ((event.target as HTMLElement).closest('a, label, button')) return;
        if (event.shiftKey || event.ctrlKey || event.metaKey) onSelect(row, !selected);
        else void navigate({ to: '/jobs/$id', params: { id: row.id } });
      }}
    >
      <span role="gridcell" className="grid-check">
        <Check label={`Select ${name}`} checked={selected} onChange={(on) => onSelect(row, on)} />
      </span>
      {narrow ? (
        <span role="gridcell" className="grid-narrow">
          <span className="row spread">
            <span className="job-cell">
              <span className="num accent">{numberOf(row.id)}</span>
              <span className="cut">{titleOf(row)}</span>
            </span>
            <StateBadge state={row.state} />
          </span>
          <span className="row faint tiny">
            <span className="cut">
              {row.user.name} · {row.site?.name ?? 'root'} · {count(row.cpus)} CPUs
            </span>
            <span className="grow right">
              {row.startedAt ? (
                <>
                  ran <Lasted from={row.startedAt} to={row.endedAt} />
                </>
              ) : (
                <>
                  waited <Lasted from={row.submittedAt} to={row.endedAt} />
                </>
              )}
            </span>
          </span>
        </span>
      ) : (
        columns.map(({ key, right, cell }) => (
          <span key={key} role="gridcell" className={right ? 'right num' : ''}>
            {cell(row)}
          </span>
        ))
      )}
    </div>
  );
});
