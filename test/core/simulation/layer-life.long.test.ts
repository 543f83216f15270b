/**
 * The same as layer-life.test.ts for ten minutes, or for `STRATA_LAYER_LIFE_MS`.
 */
import { test } from 'vitest';
import { liveFor } from './layer-life.ts';

const SPAN_MS = Number(process.env['STRATA_LAYER_LIFE_MS'] ?? 600_000);

test('Layers keep all that they must, for minutes', { timeout: SPAN_MS + 60_000 }, async (context) => {
  await context.annotate(await liveFor(SPAN_MS));
});
