/**
 * Ends a push whose client sends too slowly: it holds a connection, and the disk for what it sent.
 *
 * Invariants: only the time that the server waits for the client counts, so a slow server cuts nobody.
 */
import { GitHttpError } from './answer.ts';
import type { BodyPace } from './body.ts';
import { PUSH_BYTES_PER_SECOND_MIN, PUSH_PACE_SPAN_MS } from './limits.ts';

/**
 * The length of one silence. A client that prepares its pack may be silent for longer, within the limit for every body.
 */
export const SILENCE_COUNTED_MS_MAX = PUSH_PACE_SPAN_MS / 6;

/** `monotonicMs` may be any clock that never goes back. */
export function createPushPace(monotonicMs: () => number): BodyPace {
  let askedAt = 0;
  let waitedMs = 0;
  let receivedBytes = 0;
  let isCut = false;
  return {
    asks: () => {
      askedAt = monotonicMs();
    },
    gets: (bytes) => {
      waitedMs += Math.min(monotonicMs() - askedAt, SILENCE_COUNTED_MS_MAX);
      receivedBytes += bytes;
      if (waitedMs < PUSH_PACE_SPAN_MS) return;
      isCut ||= receivedBytes < (PUSH_BYTES_PER_SECOND_MIN * PUSH_PACE_SPAN_MS) / 1_000;
      [waitedMs, receivedBytes] = [0, 0];
      if (isCut) throw tooSlow();
    },
    isCut: () => isCut,
  };
}

/** git shows the status of a refused request, and its text with GIT_CURL_VERBOSE. */
function tooSlow(): GitHttpError {
  const kibibytes = PUSH_BYTES_PER_SECOND_MIN / 1_024;
  const seconds = PUSH_PACE_SPAN_MS / 1_000;
  const text = `The push sent less than ${kibibytes} KiB/s over ${seconds} s: nothing was changed, push again over a faster connection`;
  return new GitHttpError(408, text, { Connection: 'close' }, 'push-too-slow');
}
