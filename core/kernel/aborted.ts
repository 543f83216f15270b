/** Waiting for a signal: what runs until it is told to end races this against what may end by itself. */

/** Resolves once the signal is aborted, at once if it is already. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
