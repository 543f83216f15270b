/** How much of a core and how many bytes the verification takes. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createPace } from '../../../../core/use-cases/verifying/pace.ts';
import { createTestClock } from '../../../support/test-clock.ts';

function start(signal = new AbortController().signal) {
  const clock = createTestClock();
  const computed = { ms: 0 };
  const paused: number[] = [];
  const pause = async (ms: number) => void paused.push(ms);
  return { clock, computed, paused, pace: createPace({ clock, pause, computedMs: () => computed.ms }, signal) };
}

describe('The pace of the verification', () => {
  test('is one hundredth of a core: what was waited for counts as rest', async () => {
    const { clock, computed, paused, pace } = start();
    await pace.run(async () => {
      computed.ms += 20;
      clock.advance(300);
      return { sizeBytes: 0 };
    });
    assert.deepEqual(paused, [1_700]);
  });

  test('counts what was computed between two pieces, and not what was computed while it waited', async () => {
    const {
      clock,
      computed,
      pace: { run },
      paused,
    } = start();
    const piece = async () => {
      clock.advance(1);
      return { sizeBytes: 0 };
    };
    computed.ms += 3;
    await run(piece);
    computed.ms += 2;
    await run(piece);
    assert.deepEqual(paused, [299, 199]);
  });

  test('waits at most a minute for what a busy process computed beside it, and for bytes as long as they take', async () => {
    const { computed, paused, pace } = start();
    for (const sizeBytes of [0, 100_000_000]) {
      await pace.run(async () => {
        computed.ms += 30_000;
        return { sizeBytes };
      });
    }
    assert.deepEqual(paused, [60_000, 100_000]);
  });

  test('is a megabyte a second', async () => {
    const { clock, paused, pace } = start();
    await pace.run(async () => {
      clock.advance(1_000);
      return { sizeBytes: 4_000_000 };
    });
    await pace.run(async () => {
      clock.advance(1_000);
      return { sizeBytes: 1_000 };
    });
    assert.deepEqual(paused, [3_000]);
  });

  test('ends when it is told to, before the next piece and behind a pause', async () => {
    const ending = new AbortController();
    const { computed, pace } = start(ending.signal);
    const piece = async () => {
      computed.ms += 1;
      ending.abort(new Error('stopped'));
      return { sizeBytes: 0 };
    };
    await assert.rejects(pace.run(piece), /stopped/);
    await assert.rejects(pace.run(piece), /stopped/);
    assert.equal(computed.ms, 1);
  });
});
