/**
 * Reads committed objects for a check in process, as long as that takes less than starting git.
 *
 * Invariants: what is read for one check is bounded in sum, however long the chains of deltas are that the pusher
 * committed before; beyond the bounds it throws, and starts no git.
 */
import { whenReady } from '../../../core/kernel/maybe-promise.ts';
import { createObjectSource, type GitObjects, type ObjectSource, type OpenPack } from '../packs/object-source.ts';
import type { FoundType, PackFile } from '../packs/pack-file.ts';

/** git's own default (git-pack-objects(1), --depth). Internal: git looks for what is farther. */
const CHAIN_DELTAS_MAX = 50;
/**
 * In sum: deltas of objects that are looked up, at a microsecond or less each. Internal: git looks for what is farther.
 */
const LOOKED_UP_DELTAS_MAX = 2_000;
/**
 * In sum: deltas of objects that are read, at some 50 us each, their instructions, and what all of them make. Internal:
 * git looks for what is farther.
 */
const READ_DELTAS_MAX = 200;
const READ_DELTAS_BYTES_MAX = 128 * 1024;
const READ_BYTES_MAX = 1024 * 1024;

class BeyondBoundsError extends Error {
  override readonly name = 'BeyondBoundsError';
}

/** For one check. Its methods throw where git has to decide. */
export function createNearbyObjects(packs: readonly OpenPack[]): ObjectSource {
  const spent: Spent = { lookedUp: 0, deltas: 0, deltaBytes: 0, bytes: 0 };
  const files = new Map<OpenPack, NearbyFile>();
  return createObjectSource(packs, BEYOND, (pack) => {
    const file = files.get(pack) ?? nearby(pack.file, spent);
    files.set(pack, file);
    return file;
  });
}

const BEYOND: GitObjects = { info: async () => beyond(), read: async () => beyond() };

function beyond(): never {
  throw new BeyondBoundsError('A committed object takes too long to read');
}

interface Spent {
  lookedUp: number;
  deltas: number;
  deltaBytes: number;
  bytes: number;
}

type NearbyFile = Pick<PackFile, 'type' | 'info' | 'read'>;

function nearby(file: PackFile, spent: Spent): NearbyFile {
  const bounded = <Found extends FoundType>(found: Found | null): Found | null => {
    spent.lookedUp += found?.deltas ?? 0;
    return spent.lookedUp > LOOKED_UP_DELTAS_MAX ? null : found;
  };
  return {
    type: (offset) => whenReady(file.type(offset, CHAIN_DELTAS_MAX), bounded),
    info: async (offset) => bounded(await file.info(offset, CHAIN_DELTAS_MAX)),
    read: async (offset, bounds, beforeLarge) => {
      const cost = await file.cost(offset, CHAIN_DELTAS_MAX);
      if (cost === null) return null;
      spent.deltas += cost.deltas;
      spent.deltaBytes += cost.deltaBytes;
      spent.bytes += cost.madeBytes;
      const isFar = spent.deltas > READ_DELTAS_MAX || spent.deltaBytes > READ_DELTAS_BYTES_MAX;
      return isFar || spent.bytes > READ_BYTES_MAX ? null : file.read(offset, bounds, beforeLarge);
    },
  };
}
