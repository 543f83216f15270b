/** Hashes by node:crypto. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Digest } from '../../core/ports/digest.ts';

export const digest: Digest = {
  sha256: (text) => hash('sha256', text, 'hex'),
  equal(a, b) {
    const left = Buffer.from(a, 'utf8');
    const right = Buffer.from(b, 'utf8');
    return left.length === right.length && timingSafeEqual(left, right);
  },
};
