/** Work that recurs: one run at a time, a failure reported and tried again at the next turn. */

/** Starts it; the function returned ends it and waits for a run under way. */
export function every(
  intervalMs: number,
  run: () => Promise<void>,
  onFault: (cause: unknown) => void,
): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    running = run()
      .catch(onFault)
      .finally(() => {
        busy = false;
      });
  }, intervalMs);
  return async () => {
    clearInterval(timer);
    await running;
  };
}
