/**
 * Joins small packs into one by copying their entries as they are stored: nothing is inflated, and no process started.
 *
 * Invariants: the joined pack holds every object of its parts once. A delta stands behind its base, which is in the
 * pack too, so no delta needs itself. Whoever keeps the pack has git index it first, which computes each id again.
 */
import { createHash } from 'node:crypto';
import { PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import { deltaHeader, type EntryHeader, entryHeader } from './entry-header.ts';
import type { Turns } from './event-loop-turns.ts';
import { objectsIn, packIndexRows } from './pack-index-file.ts';

export interface PackBytes {
  readonly pack: Buffer;
  /** Its .idx, version 2. */
  readonly idx: Buffer;
}

export interface JoinedPack {
  readonly bytes: Buffer;
  /** The pack's checksum, hex. */
  readonly name: string;
  /** The ids of its objects, hex. */
  readonly ids: ReadonlySet<string>;
}

/**
 * This many packs, of this many bytes and objects in sum, are joined: git looks through its packs again for each object
 * that these ones refer to and do not hold, so hundreds of small ones take it seconds. Of larger ones it makes a
 * smaller pack than this does, since it looks for deltas. Internal: the objects are the same, joined or not.
 */
const PACKS_MAX = 1_024;
const BYTES_MAX = 1024 * 1024;
const OBJECTS_MAX = 10_000;

export interface PackSizes {
  readonly packBytes: number;
  readonly idxBytes: number;
}

/** Returns the smallest of these packs, as many as are joined. */
export function joinable<Pack extends PackSizes>(packs: readonly Pack[]): readonly Pack[] {
  const chosen: Pack[] = [];
  let bytes = 0;
  let objects = 0;
  for (const pack of packs.toSorted((a, b) => a.packBytes - b.packBytes)) {
    bytes += pack.packBytes;
    objects += objectsIn(pack.idxBytes);
    if (bytes > BYTES_MAX || objects > OBJECTS_MAX || chosen.length === PACKS_MAX) break;
    chosen.push(pack);
  }
  return chosen;
}

const HEADER_BYTES = 12;
/**
 * What git allows its own chains (git-pack-objects(1), --depth). Behind it an object is stored whole where a part has
 * it whole. Internal: both forms hold the same object.
 */
const DEPTH_WANTED_MAX = 50;

/** An object as one part stores it. */
interface Stored {
  readonly header: EntryHeader;
  /** Header and compressed bytes. */
  readonly bytes: Buffer;
  /** The id of its base, hex; null of a whole object. */
  readonly base: string | null;
}

interface Written {
  readonly offset: number;
  /** How many deltas it is made from. */
  readonly depth: number;
}

/** An object that is written when its base is. */
interface Step {
  readonly id: string;
  readonly stored: Stored;
}

/**
 * Returns null where objects of different parts are made from each other, so that copying them makes no pack. Throws if
 * a part is broken.
 */
export async function joinPacks(parts: readonly PackBytes[], turns: Turns): Promise<JoinedPack | null> {
  const wholes = new Map<string, Stored>();
  const deltas = new Map<string, Stored>();
  for (const part of parts) {
    for (const [id, stored] of storedIn(part)) {
      if (turns.isOver()) await turns.next();
      const known = stored.base === null ? wholes : deltas;
      if (!known.has(id)) known.set(id, stored);
    }
  }
  const joining = new Joining(wholes, deltas);
  for (const id of new Set([...wholes.keys(), ...deltas.keys()])) {
    if (turns.isOver()) await turns.next();
    if (!joining.write(id)) return null;
  }
  return joining.end();
}

/** The objects of a part by their ids, hex. */
function* storedIn({ pack, idx }: PackBytes): Generator<readonly [string, Stored]> {
  const rows = packIndexRows(idx)
    .map(({ id, offset }) => ({ id: id.toString('hex'), offset }))
    .toSorted((a, b) => a.offset - b.offset);
  const idAt = new Map(rows.map(({ id, offset }) => [offset, id]));
  for (const [index, { id, offset }] of rows.entries()) {
    const bytes = pack.subarray(offset, rows[index + 1]?.offset ?? pack.length - PACK_CHECKSUM_BYTES);
    const header = entryHeader(bytes);
    if (header === null) throw new RangeError(`A pack is broken at byte ${offset}`);
    if (header.type !== null) {
      yield [id, { header, bytes, base: null }];
      continue;
    }
    const base = typeof header.base === 'number' ? idAt.get(offset - header.base) : header.base.toString('hex');
    if (base === undefined) throw new RangeError(`The delta at byte ${offset} of a pack has no base in it`);
    yield [id, { header, bytes, base }];
  }
}

class Joining {
  readonly #wholes: ReadonlyMap<string, Stored>;
  readonly #deltas: ReadonlyMap<string, Stored>;
  readonly #written = new Map<string, Written>();
  readonly #chunks: Buffer[] = [Buffer.alloc(HEADER_BYTES)];
  #sizeBytes = HEADER_BYTES;

  constructor(wholes: ReadonlyMap<string, Stored>, deltas: ReadonlyMap<string, Stored>) {
    this.#wholes = wholes;
    this.#deltas = deltas;
  }

  /** Writes an object, and before it what it is made from. False where that is made from the object itself. */
  write(wanted: string): boolean {
    const chain: Step[] = [];
    const inChain = new Set<string>();
    for (let id: string | null = wanted; id !== null && !this.#written.has(id); ) {
      inChain.add(id);
      const stored = this.#choose(id, inChain);
      if (stored === null && !this.#endWhole(chain)) return false;
      if (stored !== null) chain.push({ id, stored });
      id = stored?.base ?? null;
    }
    for (const step of chain.toReversed()) this.#add(step);
    return true;
  }

  /** A delta if it can be one, which takes less room. */
  #choose(id: string, inChain: ReadonlySet<string>): Stored | null {
    const delta = this.#deltas.get(id);
    const isPossible = delta !== undefined && delta.base !== null && !inChain.has(delta.base);
    return isPossible ? delta : (this.#wholes.get(id) ?? null);
  }

  /**
   * Ends a chain that leads back to itself with the last of its objects that a part has whole. False if there is none.
   */
  #endWhole(chain: Step[]): boolean {
    for (let step = chain.pop(); step !== undefined; step = chain.pop()) {
      const whole = this.#wholes.get(step.id);
      if (whole === undefined) continue;
      chain.push({ id: step.id, stored: whole });
      return true;
    }
    return false;
  }

  #add({ id, stored }: Step): void {
    const offset = this.#sizeBytes;
    const { base, header, bytes } = stored;
    const on = base === null ? null : this.#written.get(base);
    if (on === undefined) throw new TypeError('A delta is written before its base');
    const whole = on === null ? stored : on.depth < DEPTH_WANTED_MAX ? undefined : this.#wholes.get(id);
    if (on === null || whole !== undefined) {
      this.#append((whole ?? stored).bytes);
      this.#written.set(id, { offset, depth: 0 });
      return;
    }
    this.#append(deltaHeader(header.sizeBytes, offset - on.offset));
    this.#append(bytes.subarray(header.length));
    this.#written.set(id, { offset, depth: on.depth + 1 });
  }

  #append(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#sizeBytes += bytes.length;
  }

  end(): JoinedPack {
    const body = Buffer.concat(this.#chunks);
    body.write('PACK', 'latin1');
    body.writeUInt32BE(2, 4);
    body.writeUInt32BE(this.#written.size, 8);
    const checksum = createHash('sha1').update(body).digest();
    const ids = new Set(this.#written.keys());
    return { bytes: Buffer.concat([body, checksum]), name: checksum.toString('hex'), ids };
  }
}
