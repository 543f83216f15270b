/** Periodic work. */

/**
 * Calls `run` every `intervalMs`, never twice at a time. Reports a failed run; the next interval calls `run` again.
 * The returned function stops the work: it aborts the signal of a run under way, and resolves when that run has ended.
 */
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
