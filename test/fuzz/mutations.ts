/**
 * Changes to bytes and texts that parsers handle badly.
 *
 * Invariants: the dice decide everything, so that an input can be made again from its seed and index.
 */
import type { Dice } from '../support/seeded.ts';

const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'a\udfff\ud800b',
  '\ufeff',
  '\u202e\u2066',
  '\u{1f600}\u0301',
  '..',
  '../../etc/passwd',
  '/',
  '//',
  '.git',
  '%00',
  '%',
  '%ff%fe',
  '%2e%2e%2f',
  '+',
  "';--",
  '"\\',
  '<script>',
  '${1}',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'true',
  '-1',
  '0',
  '1e309',
  'NaN',
  '0x10',
  '9007199254740993',
  '99999999999999999999',
  'HEAD',
  '@{-1}',
  'main^{tree}',
  '-rf',
  '--upload-pack=x',
  ':(glob)**',
  'refs/heads/',
  'refs/heads/a..b',
  'refs/heads/main/x',
  '0'.repeat(40),
  'f'.repeat(40),
  '00000000-0000-0000-0000-000000000000',
  '9999-12-31T23:59:59.999Z',
  '275760-09-13T00:00:00.001Z',
  '0000-00-00T00:00:00Z',
  '2026-02-30T25:61:61Z',
  '-000001-01-01T00:00:00Z',
  'http://[::1',
  'https://user:secret@127.0.0.1:9/',
  'https://127.0.0.1:9/hook',
  'file:///etc/passwd',
  '127.0.0.1',
  'a\r\nSet-Cookie: x=y',
  'é'.repeat(200),
  'a'.repeat(300),
  'a/'.repeat(3_000),
  '\u{1f600}'.repeat(2_000),
];
/** Rarely picked, for their size. */
const LARGE_TEXTS: readonly string[] = ['x'.repeat(70_000), '\0'.repeat(20_000), 'é'.repeat(600_000)];
const LARGE_SHARE = 0.005;

export function hostileText(dice: Dice): string {
  return dice.pick(dice.chance(LARGE_SHARE) ? LARGE_TEXTS : HOSTILE_TEXTS);
}

/** Changes a text a little: usually to one that is nearly right. */
export function mutateText(dice: Dice, text: string): string {
  if (dice.chance(0.3)) return hostileText(dice);
  const at = dice.below(text.length + 1);
  switch (dice.below(5)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + String.fromCharCode(dice.below(dice.chance(0.8) ? 0x100 : 0x1_0000)) + text.slice(at);
    case 2:
      return text + text;
    case 3:
      return dice.chance(0.5) ? text.toUpperCase() : text.slice(0, at);
    default:
      return text.slice(0, at) + hostileText(dice) + text.slice(at);
  }
}

const BYTES: readonly number[] = [0, 1, 9, 10, 13, 32, 0x30, 0x66, 0x7f, 0x80, 0xc0, 0xed, 0xff];

/** Changes one to a few places of the bytes; the result is a new buffer. */
export function mutateBytes(dice: Dice, bytes: Buffer): Buffer {
  let result = Buffer.from(bytes);
  for (let rounds = 1 + dice.below(4); rounds > 0; rounds -= 1) result = mutateOnce(dice, result);
  return result;
}

function mutateOnce(dice: Dice, bytes: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
  if (bytes.length === 0) return Buffer.from([dice.below(256)]);
  const at = dice.below(bytes.length);
  const length = 1 + dice.below(Math.min(dice.chance(0.8) ? 8 : 4_096, bytes.length - at));
  const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (dice.below(6)) {
    case 0:
      bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8));
      return bytes;
    case 1:
      bytes[at] = dice.pick(BYTES);
      return bytes;
    case 2:
      return Buffer.concat([head, tail.subarray(length)]);
    case 3:
      return Buffer.concat([head, tail.subarray(0, length), tail]);
    case 4:
      return Buffer.concat([head, Buffer.alloc(length, dice.pick(BYTES)), tail]);
    default:
      return Buffer.from(head);
  }
}
