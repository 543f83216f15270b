/** How slowly a client may send its push. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createSlowPushes } from '../../../apps/front-door/slow-pushes.ts';
import type { BodyPace } from '../../../apps/git-http/body.ts';
import { PUSH_BYTES_PER_SECOND_MIN, PUSH_PACE_SPAN_MS } from '../../../apps/git-http/limits.ts';
import {
  createPushPace,
  SILENCE_COUNTED_MS_MAX,
  SLOW_PUSH_BYTES_PER_SECOND_MAX,
} from '../../../apps/git-http/push-pace.ts';

const SECONDS = PUSH_PACE_SPAN_MS / 1_000;

/** The pace of the only push. */
function paceAt(monotonicMs: () => number): BodyPace {
  return createPushPace(monotonicMs, createSlowPushes().open({ account: 'ada', address: '192.0.2.1' }));
}

/** A client that sends `bytes` after each second of waiting, for two spans; returns the second of the cut, or null. */
function cutAfter(bytes: number, workMs = 0): number | null {
  let nowMs = 0;
  const pace = paceAt(() => nowMs);
  for (let second = 1; second <= 2 * SECONDS; second += 1) {
    pace.asks();
    nowMs += 1_000;
    try {
      pace.gets(bytes);
    } catch (error) {
      assert.match(String(error), /less than 4 KiB\/s over 60 s: nothing was changed/);
      assert.ok(pace.isCut());
      return second;
    }
    nowMs += workMs;
  }
  assert.ok(!pace.isCut());
  return null;
}

describe('the pace of a push', () => {
  test('is enough at the least rate, and cuts a client that sends a byte a second less', () => {
    assert.equal(cutAfter(PUSH_BYTES_PER_SECOND_MIN), null);
    assert.equal(cutAfter(PUSH_BYTES_PER_SECOND_MIN - 1), SECONDS);
  });

  test('counts as slow below its rate, and no longer when it is faster again', () => {
    let nowMs = 0;
    const calls: string[] = [];
    const pace = createPushPace(() => nowMs, {
      slow: (bytesPerSecond) => calls.push(`slow ${bytesPerSecond}`),
      leave: () => calls.push('leave'),
      cutFor: () => null,
    });
    for (const bytes of [SLOW_PUSH_BYTES_PER_SECOND_MAX - 1, SLOW_PUSH_BYTES_PER_SECOND_MAX]) {
      for (let second = 0; second < SECONDS; second += 1) {
        pace.asks();
        nowMs += 1_000;
        pace.gets(bytes);
      }
    }
    assert.deepEqual(calls, [`slow ${SLOW_PUSH_BYTES_PER_SECOND_MAX - 1}`, 'leave']);
  });

  test('counts no time in which the server works', () => {
    assert.equal(cutAfter(PUSH_BYTES_PER_SECOND_MIN, 60_000), null);
  });

  test('is judged again in each span, so that nobody sends much at first and then almost nothing', () => {
    let nowMs = 0;
    const pace = paceAt(() => nowMs);
    pace.asks();
    pace.gets(2 ** 30);
    const trickle = () => {
      for (let second = 0; second < 2 * SECONDS; second += 1) {
        pace.asks();
        nowMs += 1_000;
        pace.gets(1);
      }
    };
    assert.throws(trickle, /less than/);
  });

  test('lets a client be silent before it sends its pack', () => {
    let nowMs = 0;
    const pace = paceAt(() => nowMs);
    pace.asks();
    nowMs += 110_000;
    for (let second = 0; second < SECONDS; second += 1) {
      pace.gets(64 * 1024);
      pace.asks();
      nowMs += 1_000;
    }
    assert.ok(!pace.isCut());
  });

  test('counts a silence whole up to the limit, and no more of a longer one', () => {
    const silencesUntilCut = (silenceMs: number): number => {
      let nowMs = 0;
      const pace = paceAt(() => nowMs);
      for (let silences = 1; ; silences += 1) {
        pace.asks();
        nowMs += silenceMs;
        try {
          pace.gets(1);
        } catch {
          return silences;
        }
      }
    };
    const whole = PUSH_PACE_SPAN_MS / SILENCE_COUNTED_MS_MAX;
    assert.equal(silencesUntilCut(SILENCE_COUNTED_MS_MAX - 1), whole + 1);
    assert.equal(silencesUntilCut(SILENCE_COUNTED_MS_MAX), whole);
    assert.equal(silencesUntilCut(10 * SILENCE_COUNTED_MS_MAX), whole);
  });
});
