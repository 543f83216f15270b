/** Which bytes are text, in chunks of any size. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { encodeUtf8, isUtf8Text, sortUtf8 } from '../../../core/git/utf8.ts';

/** Returns every way to split the bytes in two. */
function cuts(bytes: Uint8Array): readonly (readonly Uint8Array[])[] {
  return Array.from({ length: bytes.length + 1 }, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
}

describe('Bytes are text', () => {
  test('if they are UTF-8, even when their chunks split a character', async () => {
    for (const text of ['', 'plain', 'ä€😀\n', '\uFEFFwith a byte order mark', '\u0001']) {
      for (const pieces of cuts(encodeUtf8(text))) assert.equal(await isUtf8Text(pieces), true, text);
    }
  });

  test('unless they hold NUL, a broken sequence, or end within a character', async () => {
    for (const bytes of [[0x61, 0], [0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0x61, 0xe2, 0x82]]) {
      for (const pieces of cuts(Uint8Array.from(bytes))) assert.equal(await isUtf8Text(pieces), false, `${bytes}`);
    }
  });

  test('unless reading them fails, and are read only up to the first chunk that is not text', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield encodeUtf8('so far');
      throw new TypeError('The disk is gone');
    }
    await assert.rejects(isUtf8Text(failing()), { message: 'The disk is gone' });
    async function* binary(): AsyncGenerator<Uint8Array> {
      yield Uint8Array.of(0);
      throw new Error('Read on');
    }
    assert.equal(await isUtf8Text(binary()), false);
  });
});

test('texts are sorted by the bytes of their UTF-8, whether any of them has a surrogate or not', () => {
  const unit = fc.constantFrom('a', '-', '/', 'é', '\ud7ff', '\ue000', '\uffee', '\u{1f600}');
  fc.assert(
    fc.property(
      fc.array(
        fc.array(unit, { maxLength: 4 }).map((units) => units.join('')),
        { maxLength: 20 },
      ),
      (texts) => {
        const byBytes = texts.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        assert.deepEqual(sortUtf8(texts), byBytes);
      },
    ),
  );
});
