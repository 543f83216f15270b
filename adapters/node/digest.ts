/** Hashes by node:crypto and node:zlib. */
import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Digest } from '../../core/kernel/digest.ts';

export const digest: Digest = {
  sha256: (text) => hash('sha256', text, 'hex'),
  sha256OfBytes: (bytes) => hash('sha256', bytes, 'hex'),
  startSha256: () => {
    const running = createHash('sha256');
    return { add: (bytes) => void running.update(bytes), hex: () => running.digest('hex') };
  },
  hmacSha256: (key, text) => createHmac('sha256', key).update(text, 'utf8').digest('hex'),
  crc32: (text) => crc32(text),
  equal(a, b) {
    const left = Buffer.from(a, 'utf8');
    const right = Buffer.from(b, 'utf8');
    return left.length === right.length && timingSafeEqual(left, right);
  },
};
