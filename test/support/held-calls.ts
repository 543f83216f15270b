/**
 * Wraps ports so that a test can hold back single calls: the n-th call from now on waits until the test releases it.
 *
 * Invariants: a call that is not held behaves exactly as the port's own. A held call either does its work first and
 * returns the result on release, or does no work and fails on release.
 */
import { EventStoreError } from '../../core/ports/event-store.ts';

/** How a held call ends: with the result of its work, or with an outage and no work done. */
export type HeldOutcome = 'result' | 'outage';

export interface HeldCall {
  /** Resolves with the call's name when the held call has been made. */
  readonly reached: Promise<string>;
  /** Releases the held call. If it has not been made yet, no call is held any more. */
  release(): void;
}

export interface HeldCalls {
  /** Returns the port to hand to its users; `name` prefixes the names of its methods. */
  watch<Port extends object>(name: string, port: Port): Port;
  /** Holds the n-th call from now on, counted from 1. */
  hold(nth: number, outcome: HeldOutcome): HeldCall;
  /** The number of calls that have begun and not ended. */
  pending(): number;
  /** The calls that returned a reader, a quarantine or an answer that is not closed or released yet, by name. */
  unclosed(): readonly string[];
}

/** These methods return synchronously and are never held. */
const IMMEDIATE = new Set(['subscribe', 'pull', 'close', 'heldAnswer', 'release']);
/** These methods return an iterator; each of its first steps counts as a call. */
const STREAMING = new Set(['blob', 'walk', 'uploadPack', 'commitText', 'archive']);
const STEPS_COUNTED = 4;
const ENDING = new Set(['close', 'discard', 'install', 'release']);

interface Armed {
  left: number;
  readonly outcome: HeldOutcome;
  readonly reach: (name: string) => void;
  readonly released: Promise<void>;
}

export function createHeldCalls(): HeldCalls {
  let armed: Armed | null = null;
  let pending = 0;
  const open = new Map<object, string>();

  /** Counts this call; returns the hold if this is the call to hold. */
  function holdOf(): Armed | null {
    if (armed === null) return null;
    armed.left -= 1;
    return armed.left === 0 ? armed : null;
  }

  async function outage(name: string): Promise<never> {
    throw new EventStoreError('log-unavailable', `${name} was held, and failed`);
  }

  async function pass<Result>(name: string, call: () => Promise<Result>): Promise<Result> {
    pending += 1;
    try {
      const hold = holdOf();
      if (hold === null) return await call();
      const working = hold.outcome === 'result' ? call() : outage(name);
      const [outcome] = await Promise.allSettled([working]);
      hold.reach(name);
      await hold.released;
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    } finally {
      pending -= 1;
    }
  }

  async function* stepwise(name: string, source: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    const iterator = source[Symbol.asyncIterator]();
    try {
      for (let steps = 1; ; steps += 1) {
        const next = async (): Promise<IteratorResult<unknown>> => iterator.next();
        const step = await (steps > STEPS_COUNTED ? next() : pass(name, next));
        if (step.done === true) return;
        yield step.value;
      }
    } finally {
      await iterator.return?.();
    }
  }

  /** Wraps the readers, quarantines and iterators that calls return, so that their own calls can be held too. */
  function watchResult(name: string, result: unknown): unknown {
    if (typeof result !== 'object' || result === null) return result;
    if (name === 'objects.open' || (name === 'objects.receive' && 'discard' in result)) {
      open.set(result, name);
      return watch(name === 'objects.open' ? 'reader' : 'quarantine', result);
    }
    if (name === 'objects.heldAnswer') {
      open.set(result, name);
      return watch('held answer', result);
    }
    return Symbol.asyncIterator in result ? stepwise(name, result as AsyncIterable<unknown>) : result;
  }

  function watch<Port extends object>(name: string, port: Port): Port {
    return new Proxy(port, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== 'function' || typeof key !== 'string') return member;
        const call = (given: unknown[]): unknown => Reflect.apply(member, target, given);
        if (IMMEDIATE.has(key) || STREAMING.has(key)) {
          return (...given: unknown[]) => {
            if (ENDING.has(key)) open.delete(target);
            return watchResult(`${name}.${key}`, call(given));
          };
        }
        return async (...given: unknown[]) => {
          if (ENDING.has(key)) open.delete(target);
          return watchResult(`${name}.${key}`, await pass(`${name}.${key}`, async () => call(given)));
        };
      },
    });
  }

  return {
    watch,
    hold: (nth, outcome) => {
      const reached = Promise.withResolvers<string>();
      const released = Promise.withResolvers<void>();
      const mine: Armed = { left: nth, outcome, reach: reached.resolve, released: released.promise };
      armed = mine;
      const release = (): void => {
        if (armed === mine) armed = null;
        released.resolve();
      };
      return { reached: reached.promise, release };
    },
    pending: () => pending,
    unclosed: () => [...open.values()],
  };
}
