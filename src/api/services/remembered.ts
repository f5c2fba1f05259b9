/**
 * Asks at most once in a while; calls that come together share the answer. One that failed is not kept.
 *
 * @param now epoch seconds; should the clock be set back, it is asked again
 */
export function remembered<T>(forS: number, now: () => number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    const age = now() - askedAt;
    if (answer === null || age >= forS || age < 0) {
      askedAt = now();
      answer = ask();
      answer.catch(() => {
        answer = null;
      });
    }
    return answer;
  };
}
