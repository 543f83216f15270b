/**
 * Resolves deltas: objects stored as the difference to another one (gitformat-pack(5), "Deltified representation").
 *
 * Invariants: whatever a delta contains, nothing is read outside its base and nothing written outside its result.
 * What git cannot read is an error here too.
 */

export class PackDeltaError extends Error {
  override readonly name = 'PackDeltaError';
}

/** The sizes at a delta's start, and the offset of its instructions. Needs the delta's first 20 bytes. */
export function deltaSizes(delta: Uint8Array): {
  readonly baseBytes: number;
  readonly resultBytes: number;
  readonly start: number;
} {
  const base = sizeAt(delta, 0);
  const result = sizeAt(delta, base.next);
  // git index-pack takes such a delta from four bytes on, and every other command of git calls its object corrupt. With
  // fewer bytes, of which git applies none (`DELTA_SIZE_MIN`), a delta makes nothing else.
  if (result.size === 0) throw new PackDeltaError('A delta makes nothing');
  return { baseBytes: base.size, resultBytes: result.size, start: result.next };
}

/** The number of instructions of a whole delta; more than `most` are not counted to the end. */
export function countInstructions(delta: Uint8Array, most: number): number {
  let count = 0;
  for (let at = deltaSizes(delta).start; at < delta.length && count <= most; count += 1) {
    const instruction = delta[at] ?? 0;
    at += 1;
    if (instruction < 0x80) at += instruction;
    // Each lower bit of a copy stands for a byte behind it.
    else for (let bits = instruction & 0x7f; bits > 0; bits >>= 1) at += bits & 1;
  }
  return count;
}

/** Little-endian groups of seven bits; the highest bit of a byte is set when another one follows. */
function sizeAt(bytes: Uint8Array, start: number): { readonly size: number; readonly next: number } {
  let size = 0;
  let unit = 1;
  for (let next = start; ; next += 1) {
    const byte = bytes[next];
    if (byte === undefined || unit > 2 ** 49) throw new PackDeltaError('A delta has no size');
    size += (byte & 0x7f) * unit;
    unit *= 128;
    if (byte < 0x80) return { size, next: next + 1 };
  }
}

/** Returns the object that a delta makes from its base. Throws when the delta is broken or has another base. */
export function applyDelta(base: Uint8Array, delta: Uint8Array): Buffer {
  const work = beginDelta(base, delta);
  while (!isDone(work)) apply(work, Number.POSITIVE_INFINITY);
  return work.result;
}

/** Instructions of one part: copying what they name takes a few milliseconds. */
const PART_INSTRUCTIONS = 20_000;

/**
 * As `applyDelta`, and lets others have the event loop: a delta of a large object may have millions of instructions.
 * `afterPart` is told how many were done, and returns what to wait for, or null.
 */
export async function applyDeltaInTurns(
  base: Uint8Array,
  delta: Uint8Array,
  afterPart: (instructions: number) => Promise<void> | null,
): Promise<Buffer> {
  const work = beginDelta(base, delta);
  for (;;) {
    const turn = afterPart(apply(work, PART_INSTRUCTIONS));
    if (turn !== null) await turn;
    if (isDone(work)) return work.result;
  }
}

interface DeltaWork {
  readonly base: Uint8Array;
  readonly delta: Uint8Array;
  readonly result: Buffer;
  /** The offset of the next instruction. */
  at: number;
  written: number;
}

function beginDelta(base: Uint8Array, delta: Uint8Array): DeltaWork {
  const { baseBytes, resultBytes, start } = deltaSizes(delta);
  if (baseBytes !== base.length) throw new PackDeltaError('A delta is for a base of another size');
  return { base, delta, result: Buffer.allocUnsafe(resultBytes), at: start, written: 0 };
}

/** Throws if the instructions have ended before the result is full. */
function isDone({ delta, result, at, written }: DeltaWork): boolean {
  if (at < delta.length) return false;
  if (written !== result.length) throw new PackDeltaError('A delta does not fill its result');
  return true;
}

/** Copies of up to this many bytes are done byte by byte, which takes less time than calling the copying of buffers. */
const SHORT_COPY_BYTES = 16;

/** Returns the number of instructions that were done. */
function apply(work: DeltaWork, instructionsMax: number): number {
  const { base, delta, result } = work;
  let { at, written } = work;
  let done = 0;
  for (; at < delta.length && done < instructionsMax; done += 1) {
    const instruction = delta[at] ?? 0;
    at += 1;
    if (instruction === 0) throw new PackDeltaError('A delta has a reserved instruction');
    if (instruction < 0x80) {
      if (at + instruction > delta.length || written + instruction > result.length) throw outside();
      copy(delta, at, result, written, instruction);
      at += instruction;
      written += instruction;
      continue;
    }
    let offset = 0;
    let length = 0;
    for (let byte = 0; byte < 4; byte += 1) if (instruction & (1 << byte)) offset += (delta[at++] ?? 0) * 256 ** byte;
    for (let byte = 0; byte < 3; byte += 1) {
      if (instruction & (0x10 << byte)) length += (delta[at++] ?? 0) * 256 ** byte;
    }
    if (length === 0) length = 0x10000;
    if (at > delta.length || offset + length > base.length || written + length > result.length) throw outside();
    copy(base, offset, result, written, length);
    written += length;
  }
  work.at = at;
  work.written = written;
  return done;
}

function copy(from: Uint8Array, start: number, result: Buffer, written: number, length: number): void {
  if (length > SHORT_COPY_BYTES) result.set(from.subarray(start, start + length), written);
  else for (let byte = 0; byte < length; byte += 1) result[written + byte] = from[start + byte] ?? 0;
}

function outside(): PackDeltaError {
  return new PackDeltaError('A delta reaches outside its base or its result');
}
