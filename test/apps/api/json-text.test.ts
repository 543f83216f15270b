/** JSON that is made as text, in parts. */
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test, vi } from 'vitest';
import { jsonText, TEXT_SENDING_SPAN_MS } from '../../../apps/api/http/json-text.ts';
import { MIB } from '../../../core/kernel/byte-units.ts';

const GET = { method: 'GET' };
const LIMITS = { lengthHeldMax: 10, sendingSpanMs: 60_000 };

/** A text in parts, and how often it was closed. */
function made(parts: readonly string[], fault: Error | null = null) {
  const counts = { closed: 0, made: 0 };
  async function* chunks(): AsyncGenerator<string> {
    for (const part of parts) {
      counts.made += 1;
      yield part;
    }
    if (fault !== null) throw fault;
  }
  const close = (): void => {
    counts.closed += 1;
  };
  return { counts, answer: { chunks: chunks(), close } };
}

describe('A text of JSON', () => {
  // The attack: a client reads one byte a minute, of a text that is made of much memory.
  test('is made whole before it is sent, up to the limit, and lets go what it is made of', async () => {
    const { counts, answer } = made(['12345', '67890']);
    const { body, headers } = await jsonText(GET, answer, LIMITS);
    assert.ok(body.kind === 'bytes');
    assert.deepEqual([String(body.bytes), headers['content-length'], counts.closed], ['1234567890', '10', 1]);
  });

  test('is sent while it is made if it is longer', async () => {
    const { counts, answer } = made(['12345', '678901', 'é', '2']);
    const { body } = await jsonText(GET, answer, LIMITS);
    assert.ok(body.kind === 'stream');
    assert.deepEqual(counts, { closed: 0, made: 2 });
    assert.equal(await text(body.stream), '12345678901é2');
    await sleep(1);
    assert.equal(counts.closed, 1);
  });

  test('is let go when its time to be sent is over, although the client reads nothing', async () => {
    const { counts, answer } = made(['12345678901', '2', '3']);
    const { body } = await jsonText(GET, answer, { ...LIMITS, sendingSpanMs: 20 });
    assert.ok(body.kind === 'stream');
    while (counts.closed === 0) await sleep(5);
    assert.ok(body.stream.destroyed);
    assert.equal(counts.closed, 1);
  });

  test('may be sent to the last moment of its time, and no longer', async (context) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    context.onTestFinished(() => void vi.useRealTimers());
    const { answer } = made(['x'.repeat(9 * MIB), 'y']);
    const { body } = await jsonText(GET, answer);
    assert.ok(body.kind === 'stream');
    await vi.advanceTimersByTimeAsync(TEXT_SENDING_SPAN_MS - 1);
    assert.equal(body.stream.destroyed, false);
    await vi.advanceTimersByTimeAsync(1);
    assert.ok(body.stream.destroyed);
  });

  test('is let go if it cannot be made, before and while it is sent', async () => {
    const short = made(['1'], new Error('no more'));
    await assert.rejects(jsonText(GET, short.answer, LIMITS), /no more/);
    assert.equal(short.counts.closed, 1);
    const long = made(['12345678901'], new Error('no more'));
    const { body } = await jsonText(GET, long.answer, LIMITS);
    assert.ok(body.kind === 'stream');
    await assert.rejects(text(body.stream), /no more/);
    await sleep(1);
    assert.equal(long.counts.closed, 1);
  });

  test('is not made for HEAD', async () => {
    const { counts, answer } = made(['1']);
    const { body } = await jsonText({ method: 'HEAD' }, answer, LIMITS);
    assert.deepEqual([body.kind, counts], ['none', { closed: 1, made: 0 }]);
  });
});
