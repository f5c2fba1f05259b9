/** What canvases share: their size, and how they are drawn on, dragged and scrolled. */
import { type PointerEvent, type RefObject, useEffect, useRef, useState } from 'react';

/** From here on a click is a drag. */
export const DRAG_PX = 4;

export function prepare(
  canvas: HTMLCanvasElement | null,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  if (!canvas || width === 0) return null;
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px "Inter Variable", system-ui, sans-serif';
  context.textBaseline = 'middle';
  return context;
}

export function useWidth(frame: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const node = frame.current!;
    const watch = new ResizeObserver(() => setWidth(node.clientWidth));
    watch.observe(node);
    return () => watch.disconnect();
  }, [frame]);
  return width;
}

/** Not by React: it listens passively, and the page would zoom too. */
export function useWheel(
  canvas: RefObject<HTMLCanvasElement | null>,
  onWheel: (event: WheelEvent) => void,
): void {
  const latest = useRef(onWheel);
  latest.current = onWheel;
  useEffect(() => {
    const node = canvas.current!;
    const listen = (event: WheelEvent): void => latest.current(event);
    node.addEventListener('wheel', listen, { passive: false });
    return () => node.removeEventListener('wheel', listen);
  }, [canvas]);
}

export type Point = { offsetX: number; offsetY: number };

/** Tells a drag from a press, and from a pointer that passes. `drag` is told how far it is, and what `hold` answered when it began. */
export function useDrag<T>(does: {
  hold(): T;
  drag(dx: number, dy: number, held: T): void;
  press(at: Point): void;
  pass(at: Point): void;
}) {
  const held = useRef<{ x: number; y: number; moved: boolean; began: T } | null>(null);
  return {
    onPointerDown(event: PointerEvent): void {
      held.current = { x: event.clientX, y: event.clientY, moved: false, began: does.hold() };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove(event: PointerEvent): void {
      if (!held.current) {
        does.pass(event.nativeEvent);
        return;
      }
      const dx = event.clientX - held.current.x;
      const dy = event.clientY - held.current.y;
      held.current.moved ||= Math.abs(dx) + Math.abs(dy) > DRAG_PX;
      if (held.current.moved) does.drag(dx, dy, held.current.began);
    },
    onPointerUp(event: PointerEvent): void {
      if (!held.current?.moved) does.press(event.nativeEvent);
      held.current = null;
    },
    /** The browser scrolls the page with it. */
    onPointerCancel(): void {
      held.current = null;
    },
  };
}
