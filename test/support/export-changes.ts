/** Changes to exports of an account's log, as somebody makes them who wants another past. */
import { canonicalText, type JsonObject } from '../../apps/verifier/canonical.ts';
import { base64Of, leafHash } from '../../apps/verifier/tree.ts';
import type { Dice } from './seeded.ts';

/** A line of an export that is an entry. */
export interface ExportLine {
  entry: Record<string, unknown> & { data: Record<string, unknown>; stream: string; type: string; sequence: number };
  leaf: string;
  openings: Record<string, { nonce: string; value: string }>;
}

/** Writes the leaf that an entry has, as a forger would. */
export function forged(line: ExportLine): ExportLine {
  const { sequence: _sequence, ...hashed } = line.entry;
  return { ...line, leaf: base64Of(leafHash(canonicalText(hashed as JsonObject))) };
}

/** Changes one byte, or takes one out, puts one in, or puts white space at a place where JSON allows it. */
export function changedBytes(dice: Dice, line: Buffer): Buffer {
  const at = dice.below(line.length);
  const [before, after] = [line.subarray(0, at), line.subarray(at + 1)];
  const byte = (): number => {
    const value = dice.below(256);
    return value === 10 ? 11 : value;
  };
  switch (dice.below(5)) {
    case 0:
      return Buffer.concat([before, Buffer.from([byte()]), after]);
    case 1:
      return Buffer.concat([before, after]);
    case 2:
      return Buffer.concat([before, Buffer.from([byte()]), line.subarray(at)]);
    case 3:
      return Buffer.concat([before, Buffer.from([(line[at] ?? 0) ^ (1 << dice.below(3))]), after].filter(isNoLineFeed));
    default: {
      const places = [...line.toString('latin1').matchAll(/[{},:[\]]/g)].map(({ index }) => index);
      const place = dice.pick(places);
      return Buffer.concat([line.subarray(0, place), Buffer.from(dice.pick([' ', '\t', '\r'])), line.subarray(place)]);
    }
  }
}

function isNoLineFeed(part: Buffer): boolean {
  return part.length !== 1 || part[0] !== 10;
}

/** Returns a value of about the same form that is another one. */
export function otherValue(dice: Dice, value: unknown): unknown {
  if (typeof value === 'number') return value + 1 + dice.below(3);
  if (typeof value === 'string') return dice.chance(0.5) ? `${value}x` : value.slice(0, -1);
  if (value === null) return 'x';
  if (Array.isArray(value)) return value.length === 0 ? ['x'] : value.slice(1);
  const members = { ...(value as Record<string, unknown>) };
  const names = Object.keys(members);
  if (names.length === 0) return { added: true };
  const name = dice.pick(names);
  if (dice.chance(0.3)) delete members[name];
  else members[name] = otherValue(dice, members[name]);
  return members;
}
