/** An authenticator app: the code of a key at a time (RFC 6238), made without the library that the service uses. */
import { createHmac } from 'node:crypto';
import type { Timestamp } from '../../core/kernel/ids.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const STEP_MS = 30_000;

export function stepAt(at: Timestamp): number {
  return Math.floor(Date.parse(at) / STEP_MS);
}

/** Returns the code that the app shows at a time; `later` steps after it, or before it if negative. */
export function codeAt(seed: string, at: Timestamp, later = 0): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(stepAt(at) + later));
  const mac = createHmac('sha1', base32(seed)).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0x0f;
  return String((mac.readUInt32BE(offset) & 0x7f_ff_ff_ff) % 1_000_000).padStart(6, '0');
}

function base32(text: string): Buffer {
  const bits = [...text].map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
