/**
 * Ends a push whose client sends too slowly, or slowly beside too many others: it holds a connection, and the disk for
 * what it sent.
 *
 * Invariants: only the time that the server waits for the client counts, so a slow server cuts nobody.
 */

import type { CutCode } from '../../core/git/wire/command-list.ts';
import { KIB } from '../../core/kernel/byte-units.ts';
import type { Crowd, SlowPush } from '../front-door/slow-pushes.ts';
import { GitHttpError } from './answer.ts';
import type { BodyPace } from './body.ts';
import { PUSH_BYTES_PER_SECOND_MIN, PUSH_PACE_SPAN_MS } from './limits.ts';

/** A push that sends less than this over the span is slow: an account and a network may have few of those. */
export const SLOW_PUSH_BYTES_PER_SECOND_MAX = 16 * KIB;
/**
 * The length of one silence. A client that prepares its pack may be silent for longer, within the limit for every body.
 */
export const SILENCE_COUNTED_MS_MAX = PUSH_PACE_SPAN_MS / 6;

/** `monotonicMs` may be any clock that never goes back. The push is counted as a slow one until `place` is left. */
export function createPushPace(monotonicMs: () => number, place: SlowPush): BodyPace {
  let askedAt = 0;
  let waitedMs = 0;
  let receivedBytes = 0;
  let cut: PushCut | null = null;
  const judge = (bytesPerSecond: number): void => {
    if (bytesPerSecond >= SLOW_PUSH_BYTES_PER_SECOND_MAX) place.leave();
    else if (bytesPerSecond >= PUSH_BYTES_PER_SECOND_MIN) place.slow(bytesPerSecond);
    else cut = tooSlow();
  };
  return {
    asks: () => {
      askedAt = monotonicMs();
    },
    gets: (bytes) => {
      waitedMs += Math.min(monotonicMs() - askedAt, SILENCE_COUNTED_MS_MAX);
      receivedBytes += bytes;
      if (waitedMs >= PUSH_PACE_SPAN_MS) {
        judge((receivedBytes * 1_000) / waitedMs);
        [waitedMs, receivedBytes] = [0, 0];
      }
      const crowd = place.cutFor();
      if (crowd !== null) cut ??= tooMany(crowd);
      if (cut === null) return;
      place.leave();
      throw cut;
    },
    isCut: () => cut !== null,
  };
}

/** The client is not read on. The message is a line for its user. */
export class PushCut extends GitHttpError {
  override readonly code: CutCode;
  /** For each ref. */
  readonly reason: string;
  constructor(code: CutCode, line: string, reason: string) {
    super(408, line, { Connection: 'close' }, code);
    this.code = code;
    this.reason = reason;
  }
}

function tooSlow(): PushCut {
  const [rate, seconds] = [PUSH_BYTES_PER_SECOND_MIN / KIB, PUSH_PACE_SPAN_MS / 1_000];
  const line = `The push sent less than ${rate} KiB/s over ${seconds} s: nothing was changed, push again over a faster connection`;
  return new PushCut('push-too-slow', line, 'nothing was changed: push again over a faster connection');
}

function tooMany({ of, pushesMax }: Crowd): PushCut {
  const whose = of === 'account' ? 'of your account' : 'from your network';
  const pushes = `more than ${pushesMax} pushes ${whose} that send less than ${SLOW_PUSH_BYTES_PER_SECOND_MAX / KIB} KiB/s`;
  const line = `This push was the slowest of ${pushes}: nothing was changed, push again when another has ended`;
  return new PushCut('too-many-slow-pushes', line, 'nothing was changed: push again later');
}
