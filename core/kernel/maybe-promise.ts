/**
 * Values that are there or will be: what most requests need is in memory, and waiting for that costs more than finding
 * it.
 *
 * Invariants: a value that is there is used in the same step, so whoever wants others to have the event loop must say
 * so (turns.ts).
 */

export type MaybePromise<Value> = Value | Promise<Value>;

/** Calls `use` with the value: immediately if it is there. What `use` throws then is thrown here. */
export function whenReady<Value, Result>(
  value: MaybePromise<Value>,
  use: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}
