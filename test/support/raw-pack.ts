/** Packs made byte by byte (gitformat-pack(5)), including packs that git would never write. */
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';

const TYPES = { commit: 1, tree: 2, blob: 3, tag: 4, 'ofs-delta': 6, 'ref-delta': 7 } as const;

export interface RawEntry {
  readonly type: keyof typeof TYPES;
  /** The object's bytes, or a delta's instructions. */
  readonly bytes: Uint8Array;
  /** The id of a ref-delta's base, in hex. */
  readonly base?: string;
  /** The distance in bytes from an ofs-delta's base to this entry. */
  readonly distance?: number;
}

/** Encodes one entry: its header, its base's id or distance, its deflated bytes. */
export function rawEntry(entry: RawEntry): Buffer {
  const base = entry.base === undefined ? Buffer.alloc(0) : Buffer.from(entry.base, 'hex');
  const distance = entry.distance === undefined ? Buffer.alloc(0) : ofsDistance(entry.distance);
  return Buffer.concat([header(TYPES[entry.type], entry.bytes.length), base, distance, deflateSync(entry.bytes)]);
}

/** A pack of these entries with a correct trailer; `count` may differ from the real number. */
export function rawPack(entries: readonly Buffer[], count = entries.length): Buffer {
  const head = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
  head.writeUInt32BE(count, 8);
  const body = Buffer.concat([head, ...entries]);
  return Buffer.concat([body, createHash('sha1').update(body).digest()]);
}

/** A delta whose result repeats its base `times` times. */
export function repeatingDelta(baseBytes: number, times: number): Buffer {
  const copy = Buffer.from([0xff, 0, 0, 0, 0, baseBytes & 0xff, (baseBytes >> 8) & 0xff, (baseBytes >> 16) & 0xff]);
  return Buffer.concat([deltaSize(baseBytes), deltaSize(baseBytes * times), ...Array(times).fill(copy)]);
}

/** Returns the id of an object, in hex. */
export function rawId(type: 'commit' | 'tree' | 'blob' | 'tag', bytes: Uint8Array): string {
  return createHash('sha1').update(`${type} ${bytes.length}\0`).update(bytes).digest('hex');
}

function header(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let rest = Math.floor(size / 16);
  bytes.push((type << 4) | (size % 16) | (rest > 0 ? 0x80 : 0));
  while (rest > 0) {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(low | (rest > 0 ? 0x80 : 0));
  }
  return Buffer.from(bytes);
}

export function deltaSize(size: number): Buffer {
  const bytes: number[] = [];
  for (let rest = size; ; ) {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(low | (rest > 0 ? 0x80 : 0));
    if (rest === 0) return Buffer.from(bytes);
  }
}

function ofsDistance(distance: number): Buffer {
  const bytes = [distance % 128];
  for (let rest = Math.floor(distance / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest -= 1;
    bytes.unshift((rest % 128) | 0x80);
  }
  return Buffer.from(bytes);
}
