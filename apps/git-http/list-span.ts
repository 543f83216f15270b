/**
 * Ends a push whose commands take too long to arrive, since they are held in memory until then.
 *
 * Invariants: all time counts, also that between bytes, so no drop of them holds the list longer than its size
 * allows. A client that sends at the least speed of a push is never too late. The pack is not bounded here.
 */
import { PUSH_COMMANDS_BYTES_MAX } from '../../core/kernel/limits.ts';
import { LATE_BODY_TEXT } from '../front-door/body-span.ts';
import { type Body, BodyError } from './body.ts';
import { PUSH_BYTES_PER_SECOND_MIN } from './limits.ts';

/**
 * The time from the end of a push's head to the end of its commands; what arrives of them at the least speed of a push
 * earns as much again.
 */
export const COMMAND_LIST_SPAN_MS = 60_000;

export interface ListSpan {
  /** The bytes of the body; throws the `BodyError` `body-too-slow` while the list is late. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** To be called when the list has ended, or is given up. Later calls do nothing. */
  readonly end: () => void;
}

/** `monotonicMs` may be any clock that never goes back. */
export function limitListSpan(
  body: Pick<Body, 'bytes' | 'receivedBytes'>,
  monotonicMs: () => number,
  spanMs = COMMAND_LIST_SPAN_MS,
): ListSpan {
  const chunks = body.bytes[Symbol.asyncIterator]();
  const begunAt = monotonicMs();
  let timer: NodeJS.Timeout | null = null;
  let late: BodyError | null = null;
  let onLate: (error: BodyError) => void = () => undefined;
  const look = (): void => {
    const earnedMs = (Math.min(body.receivedBytes(), PUSH_COMMANDS_BYTES_MAX) * 1_000) / PUSH_BYTES_PER_SECOND_MIN;
    const leftMs = begunAt + spanMs + earnedMs - monotonicMs();
    if (leftMs > 0) {
      timer = setTimeout(look, leftMs);
      return;
    }
    late = new BodyError('body-too-slow', LATE_BODY_TEXT);
    onLate(late);
  };
  look();
  const next = (): Promise<IteratorResult<Uint8Array>> =>
    new Promise((resolve, reject) => {
      // Set for each wait: reactions to one promise for all waits would add up.
      onLate = reject;
      if (late === null) chunks.next().then(resolve, reject);
      else reject(late);
    });
  return {
    bytes: {
      [Symbol.asyncIterator]: () => ({
        next,
        return: async (value: unknown) => chunks.return?.(value) ?? { done: true, value },
      }),
    },
    end: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
}
