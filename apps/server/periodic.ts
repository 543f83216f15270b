/** Periodic work. */

/**
 * Calls `run` every `intervalMs`, never twice at a time, and first after `firstMs`: work that is rare must also come
 * where the server is often started again. Reports a failed run; the next interval calls `run` again.
 * The returned function stops the work: it aborts the signal of a run under way, and resolves when that run has ended.
 */
export function every(
  intervalMs: number,
  run: (signal: AbortSignal) => Promise<void>,
  onFault: (cause: unknown) => void,
  firstMs = intervalMs,
): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const ending = new AbortController();
  const call = (): void => {
    if (busy) return;
    busy = true;
    running = run(ending.signal)
      .catch(onFault)
      .finally(() => {
        busy = false;
      });
  };
  let timer = setTimeout(() => {
    timer = setInterval(call, intervalMs);
    call();
  }, firstMs);
  return async () => {
    // Either kind of timer.
    clearTimeout(timer);
    ending.abort();
    await running;
  };
}
