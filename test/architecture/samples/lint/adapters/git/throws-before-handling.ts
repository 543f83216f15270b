// refused: strata(promises-handled-at-once)
/** The work was started by the caller: when the signal was aborted, its rejection has no handler. */
export async function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  return Promise.race([work, aborted]);
}
