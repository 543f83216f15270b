/** What is rendered, what is kept, and what is too long. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  createRenderer,
  RENDERED_CACHE_BYTES_MAX,
  RENDERED_CODE_LENGTH_MAX,
  RENDERED_MARKDOWN_LENGTH_MAX,
} from '../../../../apps/website/rendering/renderer.ts';
import type { RenderingJob } from '../../../../apps/website/rendering/rendering-job.ts';
import type { RenderingOutcome, RenderingPool } from '../../../../apps/website/rendering/rendering-pool.ts';
import { objectId } from '../../../../core/kernel/ids.ts';

const PLACE = { blobs: '/ada/r/blob/main', raw: '/ada/r/raw/main', folder: '' };
const RUNS = Uint32Array.of(32);
const idOf = (number: number) => objectId(number.toString(16).padStart(40, '0'));

function rendererWith(outcome: (job: RenderingJob) => RenderingOutcome) {
  const jobs: RenderingJob[] = [];
  const pool: RenderingPool = {
    run: async (_person, job) => {
      jobs.push(job);
      return outcome(job);
    },
    close: async () => undefined,
  };
  return { renderer: createRenderer(pool), jobs };
}

test('a text at the limit of length is rendered, and one past it is not tried', async () => {
  const { renderer, jobs } = rendererWith(({ kind }) => ({ rendered: kind === 'colours' ? RUNS : 'x' }));
  for (const [index, more] of [0, 1].entries()) {
    const code = { id: idOf(index), text: 'c'.repeat(RENDERED_CODE_LENGTH_MAX + more), language: 'c' };
    assert.equal(await renderer.colours('ada', code), more === 0 ? RUNS : null);
    const markdown = { id: idOf(index), text: 'm'.repeat(RENDERED_MARKDOWN_LENGTH_MAX + more), place: PLACE };
    assert.equal(await renderer.markdown('ada', markdown), more === 0 ? 'x' : null);
  }
  assert.equal(jobs.length, 2);
});

test('a text is rendered once for each place, also when it is asked for at the same time', async () => {
  const { renderer, jobs } = rendererWith(() => ({ rendered: 'x' }));
  const source = { id: idOf(1), text: 'text', place: PLACE };
  await Promise.all([renderer.markdown('ada', source), renderer.markdown('ada', source)]);
  await renderer.markdown('bob', source);
  assert.equal(jobs.length, 1);
  await renderer.markdown('ada', { ...source, place: { ...PLACE, blobs: '/bob/r/blob/main' } });
  await renderer.markdown('ada', { ...source, place: { ...PLACE, folder: 'docs' } });
  assert.equal(jobs.length, 3);
});

test('a text that failed is not tried again for a while, but one that met a full queue is', async () => {
  let failed: 'busy' | 'took-too-long' = 'busy';
  const { renderer, jobs } = rendererWith(() => ({ failed }));
  const source = { id: idOf(1), text: 'text', place: PLACE };
  assert.equal(await renderer.markdown('ada', source), null);
  failed = 'took-too-long';
  assert.equal(await renderer.markdown('ada', source), null);
  assert.equal(await renderer.markdown('ada', source), null);
  assert.equal(jobs.length, 2);
});

test('what is kept stays below the limit of memory: the oldest text gives way', async () => {
  const length = RENDERED_CACHE_BYTES_MAX / 8;
  const { renderer, jobs } = rendererWith(() => ({ rendered: 'x'.repeat(length) }));
  const ask = (number: number) => renderer.markdown('ada', { id: idOf(number), text: 'text', place: PLACE });
  for (const number of [1, 2, 3, 3]) await ask(number);
  assert.equal(jobs.length, 3);
  for (const number of [4, 1]) await ask(number);
  assert.equal(jobs.length, 5, 'the first was not kept beside four others');
});
