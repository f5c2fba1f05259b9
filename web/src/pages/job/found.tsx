/** A text in which words are looked for. */
import { type RefObject, useMemo } from 'react';

/** Marks of one text at most: more slow a browser down, and help nobody. */
export const FOUND_MAX = 1_000;

/** Where a text stands in another, upper and lower case alike; up to FOUND_MAX places. */
export function placesOf(text: string, wanted: string): number[] {
  if (wanted === '') return [];
  const places: number[] = [];
  const escaped = wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  for (const { index } of text.matchAll(new RegExp(escaped, 'giu'))) {
    places.push(index);
    if (places.length === FOUND_MAX) break;
  }
  return places;
}

/** The text with what was found marked; `at` is the one that is looked at. */
export function Found({
  text,
  length,
  places,
  at,
  here,
}: {
  text: string;
  length: number;
  places: readonly number[];
  at: number;
  here: RefObject<HTMLElement | null>;
}) {
  return useMemo(() => {
    if (places.length === 0) return text;
    return (
      <>
        {places.map((place, i) => {
          const end = place + length;
          return (
            <span key={place}>
              {i === 0 && text.slice(0, place)}
              <mark {...(i === at && { ref: here, 'aria-current': true })}>{text.slice(place, end)}</mark>
              {text.slice(end, places[i + 1])}
            </span>
          );
        })}
      </>
    );
  }, [text, length, places, at, here]);
}
