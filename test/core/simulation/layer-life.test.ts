/**
 * A repository's layers in any order of pushes, compactions, expiry and kills (layer-life.ts), for some seconds.
 * `STRATA_LAYER_LIFE_SEED=<n>` repeats one run.
 */
import { test } from 'vitest';
import { liveFor } from './layer-life.ts';

const SPAN_MS = 5_000;

test('Layers keep every ref and all that is inside the retention, in any order of events', async (context) => {
  await context.annotate(await liveFor(SPAN_MS));
});
