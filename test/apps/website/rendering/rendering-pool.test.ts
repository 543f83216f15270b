/** Threads that render texts: what a hostile text costs, and whom it holds up. */
import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import { markupOf } from '../../../../apps/website/rendering/line-markup.ts';
import type { RenderingJob } from '../../../../apps/website/rendering/rendering-job.ts';
import {
  createRenderingPool,
  RENDERING_SPAN_MS,
  RENDERING_WAIT_MS,
  RENDERINGS_OF_PERSON_MAX,
  RENDERINGS_WAITING_MAX,
} from '../../../../apps/website/rendering/rendering-pool.ts';
import { cleanUp, type Ending } from '../../../support/cleanup.ts';

const PROGRAM = new URL('../../../support/rendering-threads/endless.ts', import.meta.url);

function poolFor(context: Ending, spans: { readonly spanMs?: number; readonly waitMs?: number } = {}) {
  const pool = createRenderingPool({ program: PROGRAM, threads: 2, spanMs: 300, waitMs: 5_000, ...spans });
  cleanUp(context, () => pool.close());
  return pool;
}

const code = (text: string): RenderingJob => ({ kind: 'colours', text, language: 'c' });

describe('A rendering pool', () => {
  test('renders a text with the real program', async (context) => {
    const pool = createRenderingPool();
    cleanUp(context, () => pool.close());
    const outcome = await pool.run('ada', code('int x;'));
    assert.ok('rendered' in outcome && typeof outcome.rendered === 'object');
    const shown = markupOf('int x;', outcome.rendered)({ start: 0, end: 6 });
    assert.equal(shown, '<span class=typ>int</span> x;');
  });

  test('ends the thread of a text that never ends, and renders the next one', async (context) => {
    const pool = poolFor(context);
    const since = performance.now();
    assert.deepEqual(await pool.run('mallory', code('endless')), { failed: 'took-too-long' });
    assert.ok(performance.now() - since < 5_000);
    assert.deepEqual(await pool.run('mallory', code('next')), { rendered: '<p>next</p>' });
  });

  test('lets a text wait for as long as it may, renders it to the last moment of its time, and ends it then', async (context) => {
    const waits = vi.spyOn(AbortSignal, 'timeout');
    cleanUp(context, () => waits.mockRestore());
    const pool = createRenderingPool({ program: PROGRAM });
    cleanUp(context, () => pool.close());
    const since = performance.now();
    const ended = pool.run('mallory', code('endless'));
    assert.deepEqual(waits.mock.calls, [[RENDERING_WAIT_MS]]);
    assert.deepEqual(await ended, { failed: 'took-too-long' });
    assert.ok(performance.now() - since >= RENDERING_SPAN_MS - 5);
  });

  test('survives a text that takes all memory of its thread, one that ends it, and one that throws', async (context) => {
    const pool = poolFor(context, { spanMs: 20_000 });
    for (const text of ['huge', 'exit', 'throw']) {
      assert.deepEqual(await pool.run('mallory', code(text)), { failed: 'broke' }, text);
      assert.deepEqual(await pool.run('mallory', code('next')), { rendered: '<p>next</p>' }, text);
    }
  });

  test('gives Markdown its time again for each further quarter of a MiB, and code once', async (context) => {
    const pool = poolFor(context, { spanMs: 500 });
    const place = { blobs: '', raw: '', folder: '' };
    const markdown = (quarters: number) => {
      const text = `slow ${'x'.repeat(quarters * 256 * 1_024 - 5)}`;
      return pool.run('ada', { kind: 'markdown', text, place });
    };
    assert.ok('rendered' in (await markdown(4)));
    assert.deepEqual(await markdown(1), { failed: 'took-too-long' });
    assert.deepEqual(await pool.run('ada', code(`slow${'x'.repeat(1_024 * 1_024)}`)), { failed: 'took-too-long' });
  });

  test('renders the texts of others while one person sends texts that never end', async (context) => {
    const pool = poolFor(context, { spanMs: 1_000 });
    const hostile = Array.from({ length: 5 }, () => pool.run('mallory', code('endless')));
    const ended: string[] = [];
    const first = hostile[0]?.then(() => ended.push('hostile'));
    await pool.run('ada', code('mine')).then(() => ended.push('mine'));
    await first;
    assert.deepEqual(ended, ['mine', 'hostile']);
  });

  test('lets a person wait with a bounded number of texts, and refuses one more', async (context) => {
    const pool = poolFor(context, { spanMs: 400, waitMs: 100 });
    const running = pool.run('mallory', code('endless'));
    await new Promise(setImmediate);
    const waiting = Array.from({ length: RENDERINGS_OF_PERSON_MAX }, () => pool.run('mallory', code('endless')));
    const settled: string[] = [];
    const first = waiting[0]?.then(() => settled.push('first waiting'));
    await pool.run('mallory', code('endless')).then((outcome) => {
      assert.deepEqual(outcome, { failed: 'busy' });
      settled.push('one more');
    });
    await first;
    assert.deepEqual(settled, ['one more', 'first waiting'], 'it is refused immediately');
    assert.deepEqual(await running, { failed: 'took-too-long' });
  });

  test('lets a bounded number of texts wait in all, and refuses one more', async (context) => {
    const pool = poolFor(context, { spanMs: 400, waitMs: 100 });
    const running = ['x', 'y'].map((person) => pool.run(person, code('endless')));
    await new Promise(setImmediate);
    const waiting = Array.from({ length: RENDERINGS_WAITING_MAX }, (_, n) => pool.run(`p${n}`, code('a text')));
    let isSettled = false;
    const last = waiting.at(-1)?.then(() => {
      isSettled = true;
    });
    assert.deepEqual(await pool.run('late', code('a text')), { failed: 'busy' });
    assert.equal(isSettled, false, 'it is refused immediately, while the others wait');
    await Promise.all([...running, ...waiting, last]);
  });

  test('gives up on a text whose turn does not come in time', async (context) => {
    const pool = poolFor(context, { spanMs: 1_000, waitMs: 50 });
    const running = ['x', 'y'].map((person) => pool.run(person, code('endless')));
    assert.deepEqual(await pool.run('ada', code('mine')), { failed: 'busy' });
    await Promise.all(running);
  });

  test('gives its threads no environment, which may hold the master key', async (context) => {
    const program = new URL('data:text/javascript,' + encodeURIComponent(ENVIRONMENT_PROGRAM));
    const pool = createRenderingPool({ program });
    cleanUp(context, () => pool.close());
    assert.deepEqual(await pool.run('ada', code('')), { rendered: '{}' });
  });
});

const ENVIRONMENT_PROGRAM = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', () => parentPort.postMessage({ rendered: JSON.stringify(process.env) }));
  parentPort.postMessage({ ready: true });
`;
