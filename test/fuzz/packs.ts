/**
 * Packs (gitformat-pack(5)) taken apart, changed and put together again.
 *
 * Invariants: half of the changed packs have the checksum of what they hold, so that changes get past it.
 */
import { createHash } from 'node:crypto';
import { deflateSync, inflateSync } from 'node:zlib';
import type { Dice } from '../support/seeded.ts';
import { mutateBytes } from './mutations.ts';

interface Entry {
  /** 1 to 7. */
  readonly type: number;
  readonly sizeBytes: number;
  /** The bytes between the header and the data: a delta's base. */
  readonly base: Buffer;
  readonly inflated: Buffer;
  readonly deflated: Buffer;
}

export interface PackParts {
  readonly whole: Buffer;
  readonly entries: readonly Entry[];
}

const [OFS_DELTA, REF_DELTA] = [6, 7];
const HEADER_BYTES = 12;
const ID_BYTES = 20;

/** Takes apart a pack that git made. */
export function partsOf(whole: Buffer): PackParts {
  const entries: Entry[] = [];
  const count = whole.readUInt32BE(8);
  for (let at = HEADER_BYTES; entries.length < count; ) {
    let byte = whole[at++] ?? 0;
    const type = (byte >> 4) & 7;
    let sizeBytes = byte & 15;
    for (let shift = 4; byte >= 0x80; shift += 7) {
      byte = whole[at++] ?? 0;
      sizeBytes += (byte & 0x7f) * 2 ** shift;
    }
    const baseAt = at;
    if (type === REF_DELTA) at += ID_BYTES;
    if (type === OFS_DELTA) while ((whole[at++] ?? 0) >= 0x80);
    const base = whole.subarray(baseAt, at);
    const { buffer, engine } = inflateSync(whole.subarray(at), { info: true }) as unknown as Inflated;
    const deflated = whole.subarray(at, at + engine.bytesWritten);
    entries.push({ type, sizeBytes, base, inflated: buffer, deflated });
    at += engine.bytesWritten;
  }
  return { whole, entries };
}

/** What `inflateSync` returns with `info`; Node's types leave it out. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

export function mutatePack(dice: Dice, { whole, entries }: PackParts): Buffer {
  if (dice.chance(0.15)) return mutateBytes(dice, whole);
  const changed = [...entries];
  for (let rounds = 1 + dice.below(3); rounds > 0; rounds -= 1) mutateEntries(dice, changed);
  const head = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
  head.writeUInt32BE(dice.chance(0.9) ? changed.length : dice.pick([0, 1, changed.length + 1, 0xffff_ffff]), 8);
  if (dice.chance(0.05)) head[7] = dice.below(256);
  const body = Buffer.concat([head, ...changed.map(entryBytes)]);
  const sum = createHash('sha1').update(body).digest();
  const result = Buffer.concat([body, dice.chance(0.5) ? sum : mutateBytes(dice, sum)]);
  return dice.chance(0.1) ? Buffer.concat([result, Buffer.alloc(1 + dice.below(40), dice.below(256))]) : result;
}

function mutateEntries(dice: Dice, entries: Entry[]): void {
  const at = dice.below(entries.length);
  const entry = entries[at];
  if (entry === undefined) return;
  const inflatedTo = (inflated: Buffer, sizeBytes = inflated.length): Entry => ({
    ...entry,
    inflated,
    sizeBytes,
    deflated: deflateSync(inflated),
  });
  switch (dice.below(9)) {
    case 0:
      entries[at] = { ...entry, type: dice.below(8) };
      return;
    case 1:
      entries[at] = { ...entry, sizeBytes: dice.pick([0, entry.sizeBytes + 1, 2 ** 31, 2 ** 40, 2 ** 53]) };
      return;
    case 2:
      entries[at] = { ...entry, base: mutateBytes(dice, entry.base) };
      return;
    case 3:
      entries[at] = { ...entry, deflated: mutateBytes(dice, entry.deflated) };
      return;
    case 4:
      entries.splice(at, 1);
      return;
    case 5:
      entries.push(entry);
      return;
    case 6:
      entries[at] = dice.pick([
        { ...inflatedTo(entry.inflated), type: REF_DELTA, base: Buffer.alloc(ID_BYTES, dice.below(256)) },
        { ...inflatedTo(entry.inflated), type: OFS_DELTA, base: Buffer.from([dice.below(128)]) },
      ]);
      return;
    default:
      // Commits, trees and instructions of deltas that parsers meet after the checksum.
      entries[at] = inflatedTo(mutateBytes(dice, entry.inflated));
  }
}

function entryBytes({ type, sizeBytes, base, deflated }: Entry): Buffer {
  let rest = Math.floor(sizeBytes / 16);
  const header = [(type << 4) | (sizeBytes % 16) | (rest > 0 ? 0x80 : 0)];
  while (rest > 0) {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    header.push(low | (rest > 0 ? 0x80 : 0));
  }
  return Buffer.concat([Buffer.from(header), base, deflated]);
}
