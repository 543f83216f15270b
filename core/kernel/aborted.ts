/** Waiting for an abort signal: code that must stop on abort races this promise against its other work. */

/** Resolves when the signal is aborted, immediately if it is already. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
