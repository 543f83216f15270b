/** Waiting for a read model that is being built. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import { ReadModelError } from '../../../core/ports/read-models.ts';
import { untilShown } from '../../../core/use-cases/until-shown.ts';

const POSITION = 7n as LogPosition;

describe('Who works by a read model', () => {
  test('waits as long as it takes, and tells of it once', async () => {
    const asked: LogPosition[] = [];
    const told: unknown[] = [];
    const behind = new ReadModelError('read-model-behind', 'Not yet');
    const caughtUp = async (position: LogPosition): Promise<void> => {
      asked.push(position);
      if (asked.length < 4) throw behind;
    };
    const shown = await untilShown({ caughtUp, onBehind: (cause) => told.push(cause) }, POSITION, never());
    assert.equal(shown, true);
    assert.deepEqual([asked, told], [Array(4).fill(POSITION), [behind]]);
  });

  test('gives up when it ends before', async () => {
    const ending = new AbortController();
    const caughtUp = async (): Promise<void> => {
      ending.abort();
      throw new ReadModelError('read-model-behind', 'Not yet');
    };
    assert.equal(await untilShown({ caughtUp, onBehind: () => undefined }, POSITION, ending.signal), false);
  });
});

function never(): AbortSignal {
  return new AbortController().signal;
}
