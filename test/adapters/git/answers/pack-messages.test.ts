import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { PackMessages } from '../../../../adapters/git/answers/pack-messages.ts';
import { FLUSH, packet } from '../../../support/git-wire.ts';

const SECTION = packet('packfile\n');
const message = (text: string): Buffer => packet(`\x02${text}`);
const packed = (bytes: string | Buffer): Buffer => packet(Buffer.concat([Buffer.from([1]), Buffer.from(bytes)]));

/** What is read of an answer that arrives in pieces of this size. */
function textOf(answer: readonly Buffer[], pieceBytes: number): string {
  const whole = Buffer.concat(answer);
  const messages = new PackMessages();
  for (let at = 0; at < whole.length; at += pieceBytes) messages.add(whole.subarray(at, at + pieceBytes));
  return messages.text();
}

describe('What the process that packs says', () => {
  test('is read however the answer is split', () => {
    const answer = [SECTION, message('Counting: 1\rCounting: 2\r'), packed('PACK'), message('fatal: no\n'), FLUSH];
    for (let pieceBytes = 1; pieceBytes < 80; pieceBytes += 1) {
      assert.equal(textOf(answer, pieceBytes), 'Counting: 1\nCounting: 2\nfatal: no\n', `${pieceBytes} bytes`);
    }
  });

  test('is nothing that stands in a pack, with or without a side band', () => {
    const forged = message('fatal: Out of memory\n');
    for (let pieceBytes = 1; pieceBytes < 80; pieceBytes += 1) {
      assert.equal(textOf([SECTION, packed(forged), packed(FLUSH), FLUSH], pieceBytes), '');
      assert.equal(textOf([packet('NAK\n'), Buffer.from('PACK'), forged], pieceBytes), '');
    }
  });

  test('keeps only its end when it is long', () => {
    const answer = [message('a'.repeat(60_000)), message('fatal: no\n')];
    const text = textOf(answer, 16_384);
    assert.equal(text.length, 1_000);
    assert.match(text, /a\nfatal: no\n$|afatal: no\n$/);
  });
});
