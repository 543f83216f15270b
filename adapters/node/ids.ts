/** UUIDs (RFC 9562): v7 for new ids, v5 for derived ids. */
import { hash, randomFillSync } from 'node:crypto';
import type { Uuid } from '../../core/kernel/ids.ts';
import type { Ids } from '../../core/ports/clock.ts';

/** Random bytes are drawn for many ids together: a system call for each id would dominate its cost. */
const POOL = Buffer.allocUnsafe(16 * 256);
let used = POOL.length;

let lastMs = 0;
let counter = 0;

/** RFC 9562, section 6.2, method 1: a 12-bit counter in `rand_a` keeps ids of one millisecond in order. */
function nextUuid(): string {
  if (used >= POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const bytes = POOL.subarray(used, used + 16);
  used += 16;
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    // The top bit of the counter starts at zero, which leaves room to count up.
    counter = bytes.readUInt16BE(6) & 0x7ff;
  } else {
    counter += 1;
    if (counter > 0xfff) {
      lastMs += 1;
      counter = 0;
    }
  }
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return dashed(bytes.toString('hex'));
}

const NAMESPACE_BYTES = 16;
/** Holds the bytes to hash, for names that fit: a token's id is derived at each request. */
const scratch = Buffer.allocUnsafe(512);

/** RFC 9562, section 5.5: the SHA-1 of namespace and name, cut to 128 bits, with version and variant set. */
function derivedUuid(namespace: string, name: string): string {
  // UTF-8 takes three bytes at most for a UTF-16 unit.
  const length = NAMESPACE_BYTES + name.length * 3;
  const bytes = length <= scratch.length ? scratch : Buffer.allocUnsafe(length);
  bytes.write(namespace.replaceAll('-', ''), 'hex');
  const end = NAMESPACE_BYTES + bytes.write(name, NAMESPACE_BYTES, 'utf8');
  const hex = hash('sha1', bytes.subarray(0, end), 'hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return dashed(`${hex.slice(0, 12)}5${hex.slice(13, 16)}${variant}${hex.slice(17, 32)}`);
}

function dashed(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export const uuids: Ids = {
  next: <Id extends Uuid>() => nextUuid() as Id,
  derive: <Id extends Uuid>(namespace: Uuid, name: string) => derivedUuid(namespace, name) as Id,
};
