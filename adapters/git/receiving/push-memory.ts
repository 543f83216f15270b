/**
 * Admits the processes that check packs by the memory that they may take, all together on a node.
 *
 * Must stay true: what runs may take no more than the budget, but for packs whose objects alone take more, of which one
 * runs at a time; no account has all of it. A process that takes more than it was admitted with is ended, and its pack
 * is checked again with all that one pack may have: what a pack inflates to cannot be known before.
 */
import { createFairShares } from '../../../core/kernel/fair-shares.ts';
import { createFairSlots, type FairSlots } from '../../../core/kernel/fair-slots.ts';

const MIB = 1024 * 1024;
/** git keeps some 170 bytes for each object of a pack, and some more for those that it checks. */
const OBJECT_BYTES = 300;
/** A push of source code takes 3 to 10 MiB, and one that changes a large file twice the file's size. */
const SMALL_BYTES = 24 * MIB;
const LARGE_BYTES = 48 * MIB;
/** Of the budget: small packs have a part of their own, so that they never wait for large ones. */
const SMALL_SHARE = 0.3;
const SMALL_OF_ACCOUNT_SHARE = 0.75;
const LARGE_OF_ACCOUNT_SHARE = 0.5;

/** What a process that checks a pack is started with. */
export interface PackAdmission {
  readonly slots: FairSlots;
  /** It is ended when it takes more. */
  readonly memoryBytesMax: number;
}

export interface PushMemory {
  /** For a pack that is small, and whole in memory. */
  small(objectCount: number): PackAdmission;
  large(objectCount: number): PackAdmission;
  /** For a pack that took more than one of these admissions: all that a pack may have. */
  largest(objectCount: number): PackAdmission;
}

export function createPushMemory(bytesMax: number): PushMemory {
  const smallMax = Math.max(2, Math.floor((bytesMax * SMALL_SHARE) / SMALL_BYTES));
  const slotsPerKey = Math.ceil(smallMax * SMALL_OF_ACCOUNT_SHARE);
  const small = createFairSlots({ slots: smallMax, slotsPerKey: Math.min(slotsPerKey, smallMax - 1) });
  const largeBytesMax = bytesMax - smallMax * SMALL_BYTES;
  const large = createFairShares({ total: largeBytesMax, perKey: largeBytesMax * LARGE_OF_ACCOUNT_SHARE });
  const ofLarge = (memoryBytesMax: number) => ({ slots: large.ofWeight(memoryBytesMax), memoryBytesMax });
  return {
    small: (objectCount) => ({ slots: small, memoryBytesMax: SMALL_BYTES + objectCount * OBJECT_BYTES }),
    large: (objectCount) => ofLarge(LARGE_BYTES + objectCount * OBJECT_BYTES),
    largest: (objectCount) => ofLarge(largeBytesMax + objectCount * OBJECT_BYTES),
  };
}
