/** Waiting for a read model that is being rebuilt. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import { ReadModelError } from '../../../core/ports/read-models.ts';
import { waitUntilProjected } from '../../../core/runtime/wait-until-projected.ts';

const POSITION = 7n as LogPosition;

describe('A wait for a read model', () => {
  test('lasts as long as the rebuild, and reports it once', async () => {
    const requested: LogPosition[] = [];
    const reported: unknown[] = [];
    const behind = new ReadModelError('read-model-behind', 'Not yet');
    const caughtUp = async (position: LogPosition): Promise<void> => {
      requested.push(position);
      if (requested.length < 4) throw behind;
    };
    const wait = { caughtUp, onBehind: (cause: unknown) => reported.push(cause) };
    assert.equal(await waitUntilProjected(wait, POSITION, never()), true);
    assert.deepEqual([requested, reported], [Array(4).fill(POSITION), [behind]]);
  });

  test('returns false when the signal is aborted first', async () => {
    const ending = new AbortController();
    const caughtUp = async (): Promise<void> => {
      ending.abort();
      throw new ReadModelError('read-model-behind', 'Not yet');
    };
    assert.equal(await waitUntilProjected({ caughtUp, onBehind: () => undefined }, POSITION, ending.signal), false);
  });
});

function never(): AbortSignal {
  return new AbortController().signal;
}
