/**
 * Tests of the bench's reader of HTTP answers: a wrong length here would make every figure wrong.
 *
 * Invariants: the answer is the same however its bytes are split.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Answer, createAnswerReader } from './wire.ts';

const SIZED = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX: y\r\n\r\nhello0000';
const CHUNKED =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello0\r\n3;x=1\r\n000\r\n0\r\nTrailer: t\r\n\r\n';
const EMPTY = 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n';

function readCut(text: string, pieceBytes: number): Answer | null {
  const reader = createAnswerReader();
  reader.begin(true);
  const bytes = Buffer.from(text, 'latin1');
  let answer: Answer | null = null;
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    assert.equal(answer, null, 'the answer was complete before its last byte');
    answer = reader.take(bytes.subarray(from, from + pieceBytes));
  }
  return answer;
}

describe('the reader of HTTP answers', () => {
  for (const [form, text] of [
    ['with a length', SIZED],
    ['in chunks', CHUNKED],
  ] as const) {
    test(`reads an answer ${form}, however the network splits it`, () => {
      for (let pieceBytes = 1; pieceBytes <= text.length; pieceBytes += 1) {
        const answer = readCut(text, pieceBytes);
        assert.equal(answer?.status, 200);
        assert.equal(answer.bodyBytes, 9);
        assert.equal(answer.tail, '0000');
        assert.equal(answer.body?.toString('latin1'), 'hello0000');
        assert.equal(answer.closes, false);
      }
    });
  }

  test('reads an answer without a body, and reports that the connection closes', () => {
    const answer = readCut(EMPTY, EMPTY.length);
    assert.equal(answer?.status, 204);
    assert.equal(answer.bodyBytes, 0);
    assert.equal(answer.closes, true);
  });

  test('reads an answer that ends with the connection', () => {
    const reader = createAnswerReader();
    reader.begin(true);
    assert.equal(reader.take(Buffer.from('HTTP/1.1 200 OK\r\n\r\nall there is')), null);
    assert.equal(reader.takeEnd()?.body?.toString('latin1'), 'all there is');
  });

  test('refuses bytes after the end of an answer', () => {
    const reader = createAnswerReader();
    reader.begin(false);
    assert.throws(() => reader.take(Buffer.from(`${SIZED}HTTP/1.1 200 OK\r\n`)), /no request asked for/);
  });
});
