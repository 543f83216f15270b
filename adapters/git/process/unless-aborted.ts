/**
 * Waits for work on behalf of a client that may leave: a source that hangs must not keep a push going after its client
 * left.
 *
 * Invariants: work starts only here, and its promise has a handler before anything else can throw. Node ends the
 * process for a rejection without a handler, and a client can break its request's body at any time.
 */

/** Resolves with the work's result, or rejects with the signal's reason as soon as it aborts; then no work starts. */
export async function unlessAborted<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    // race() handles both rejections, including the one that arrives later.
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
