/** Waiting for an abort signal: code that must stop on abort races it against its other work. */

/**
 * Resolves when the signal is aborted, immediately if it is already. The listener stays on the signal until then: for
 * a signal that lives longer than the work that is raced, use `untilAborted`.
 */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Resolves with the work's value, or null as soon as the signal is aborted. Leaves no listener on the signal. */
export async function untilAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value | null> {
  let onAbort: () => void = () => undefined;
  const abort = new Promise<null>((resolve) => {
    onAbort = () => resolve(null);
    if (signal.aborted) resolve(null);
  });
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([abort, work]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
