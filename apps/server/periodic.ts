/** Work that recurs: one run at a time, a failure reported and tried again at the next turn. */

/** Starts it; the function returned ends it: it aborts the signal of a run under way, and waits for it. */
export function every(
  intervalMs: number,
  run: (signal: AbortSignal) => Promise<void>,
  onFault: (cause: unknown) => void,
): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const ending = new AbortController();
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    running = run(ending.signal)
      .catch(onFault)
      .finally(() => {
        busy = false;
      });
  }, intervalMs);
  return async () => {
    clearInterval(timer);
    ending.abort();
    await running;
  };
}
