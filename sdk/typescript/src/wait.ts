/** sleep waits, and throws the signal's reason as soon as it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    }
  });
}

/**
 * backoff is how long to wait before try number attempt (from 0), in ms: between
 * half of first × 2^attempt and all of it, so that clients which were cut off
 * together do not come back together; never more than most.
 */
export function backoff(attempt: number, first: number, most: number): number {
  const ceiling = Math.min(most, first * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + Math.random() * (ceiling / 2);
}
