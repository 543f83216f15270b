/** Which layers a compaction merges. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { COMPACTION_IDLE_MS, LAYERS_MAX } from '../../../core/kernel/limits.ts';
import {
  COMPACTED_LAYER_BYTES_MAX,
  compactionWantedInMs,
  LAYERS_AT_REST_MAX,
  layersToMerge,
} from '../../../core/repository/compaction.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import { layerOf } from '../../../core/repository/layers.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from '../../../core/repository/limits.ts';
import { layer } from '../../support/repository-history.ts';

function layersOf(...sizes: readonly number[]): Layer[] {
  return sizes.map((size, n) => layerOf(layer(n, size)));
}

const sizesOf = (layers: readonly Layer[]) => layers.map(({ sizeBytes }) => sizeBytes);

describe('The layers that a compaction merges', () => {
  test('are the small ones beside a large one that outweighs them', () => {
    assert.deepEqual(sizesOf(layersToMerge(layersOf(1_000, 1, 2, 3))), [1, 2, 3]);
    assert.deepEqual(sizesOf(layersToMerge(layersOf(12, 1, 2, 3))), [1, 2, 3, 12], 'twice as large is not enough');
  });

  test('are not made if there is nothing to win', () => {
    assert.deepEqual(layersToMerge([]), []);
    assert.deepEqual(layersToMerge(layersOf(5)), []);
    assert.deepEqual(layersToMerge(layersOf(100, 10, 1)), []);
  });

  test('hold together no more than a merged layer may, and are no more than one event may remove', () => {
    const half = COMPACTED_LAYER_BYTES_MAX / 2;
    assert.equal(layersToMerge(layersOf(half, half)).length, 2);
    assert.deepEqual(layersToMerge(layersOf(half, half + 1)), []);
    assert.deepEqual(layersToMerge(layersOf(COMPACTED_LAYER_BYTES_MAX + 1, COMPACTED_LAYER_BYTES_MAX + 1)), []);
    const many = Array.from({ length: LAYERS_REMOVED_AT_ONCE_MAX + 1 }, () => 10);
    assert.equal(layersToMerge(layersOf(...many)).length, LAYERS_REMOVED_AT_ONCE_MAX);
  });

  test('leave few, however many pushes there were, and each byte is rewritten a logarithmic number of times', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 100, maxLength: 600 }), (pushed) => {
        let layers: number[] = [];
        let rewritten = 0;
        for (const size of pushed) {
          layers.push(size);
          if (layers.length < 16) continue;
          const chosen = sizesOf(layersToMerge(layersOf(...layers)));
          const sum = chosen.reduce((a, b) => a + b, 0);
          for (const one of chosen) layers.splice(layers.indexOf(one), 1);
          if (sum > 0) layers = [sum, ...layers];
          rewritten += sum;
        }
        const total = pushed.reduce((a, b) => a + b, 0);
        assert.ok(layers.length < 32, `${layers.length} layers`);
        assert.ok(rewritten < 12 * total, `${rewritten / total} times`);
      }),
      { numRuns: 30 },
    );
  });

  test('are merged immediately when they are many, later when they are some, and never when they are few', () => {
    assert.equal(compactionWantedInMs(LAYERS_MAX), 0);
    assert.equal(compactionWantedInMs(LAYERS_MAX - 1), COMPACTION_IDLE_MS);
    assert.equal(compactionWantedInMs(LAYERS_AT_REST_MAX + 1), COMPACTION_IDLE_MS);
    assert.equal(compactionWantedInMs(LAYERS_AT_REST_MAX), null);
  });
});
