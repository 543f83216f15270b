/**
 * Admits the processes that check packs by the memory that they may take, all together on a node, and bounds the
 * processor time of each.
 *
 * Invariants: what runs may take no more than the budget, but for packs whose objects alone take more, of which one
 * runs at a time; no account has all of it, and no pack keeps ordinary ones of others waiting. A process that takes
 * more memory than it was admitted with is ended, and its pack is checked again with all that one pack may have: what a
 * pack inflates to cannot be known before.
 */
import { MIB } from '../../../core/kernel/byte-units.ts';
import { createFairShares, createFairSlots, type FairSlots } from '../../../core/kernel/fair-slots.ts';

/**
 * The processor time for checking one pack: that of a pack which arrived whole, and of others; and what each MiB that
 * was received adds. Of honest packs git checks a MiB in a tenth of a second, on slow machines in one.
 */
export const PUSH_CPU_SMALL_MS_MAX = 20_000;
export const PUSH_CPU_MS_MAX = 60_000;
export const PUSH_CPU_MS_PER_MIB = 3_000;

/** git keeps some 170 bytes for each object of a pack, and some more for those that it checks. */
const OBJECT_BYTES = 300;
/** A push of source code takes 3 to 10 MiB, and one that changes a large file twice the file's size. */
const SMALL_BYTES = 24 * MIB;
const LARGE_BYTES = 48 * MIB;
/**
 * A pack that is admitted with more, for its many objects, counts as heavy: as one that has all it may have. Internal:
 * a further pack waits.
 */
const ORDINARY_BYTES_MAX = 64 * MIB;
/** The part of the budget that small packs have to themselves, so that they never wait for large ones. */
const SMALL_SHARE = 0.3;
const SMALL_OF_ACCOUNT_SHARE = 0.75;
/** The part of the rest in which ordinary packs never wait for heavy ones, enough for two packs at least. */
const ORDINARY_SHARE = 1 / 3;
/** What that part has at least. Internal: a further pack waits. */
const ORDINARY_BYTES_MIN = 100 * MIB;

const OF_ACCOUNT_SHARE = 0.5;

/** What a process that checks a pack is started with. */
export interface PackAdmission {
  readonly slots: FairSlots;
  /** It is ended when it takes more. */
  readonly memoryBytesMax: number;
  /** Returns the processor time after which it is ended, by the bytes of the pack that were received. */
  cpuMsMax(receivedBytes: number): number;
}

export interface PushMemory {
  /** For a pack that is small, and whole in memory. */
  small(objectCount: number): PackAdmission;
  large(objectCount: number): PackAdmission;
  /** For a pack that took more than one of these admissions: all that a pack may have. */
  largest(objectCount: number): PackAdmission;
}

/** Processor time: of a small pack, of others, and what each MiB adds. */
export interface PushCpu {
  readonly smallMsMax: number;
  readonly msMax: number;
  readonly msPerMib: number;
}

const CPU: PushCpu = { smallMsMax: PUSH_CPU_SMALL_MS_MAX, msMax: PUSH_CPU_MS_MAX, msPerMib: PUSH_CPU_MS_PER_MIB };

export function createPushMemory(bytesMax: number, cpu: PushCpu = CPU): PushMemory {
  const smallMax = Math.max(2, Math.floor((bytesMax * SMALL_SHARE) / SMALL_BYTES));
  const slotsPerKey = Math.ceil(smallMax * SMALL_OF_ACCOUNT_SHARE);
  const small = createFairSlots({ slots: smallMax, slotsPerKey: Math.min(slotsPerKey, smallMax - 1) });
  const restBytes = bytesMax - smallMax * SMALL_BYTES;
  const ordinaryBytes = Math.max(ORDINARY_BYTES_MIN, Math.floor(restBytes * ORDINARY_SHARE));
  const heavyBytes = restBytes - ordinaryBytes;
  const ordinary = createFairShares({ total: ordinaryBytes, perKey: ordinaryBytes * OF_ACCOUNT_SHARE });
  const heavy = createFairShares({ total: heavyBytes, perKey: heavyBytes * OF_ACCOUNT_SHARE });
  const within = (msMax: number) => (receivedBytes: number) => msMax + (receivedBytes / MIB) * cpu.msPerMib;
  return {
    small: (objectCount) => ({
      slots: small,
      memoryBytesMax: SMALL_BYTES + objectCount * OBJECT_BYTES,
      cpuMsMax: within(cpu.smallMsMax),
    }),
    large: (objectCount) => {
      const memoryBytesMax = LARGE_BYTES + objectCount * OBJECT_BYTES;
      const slots =
        memoryBytesMax > ORDINARY_BYTES_MAX
          ? heavy.ofWeight(memoryBytesMax)
          : orElse(ordinary.ofWeight(memoryBytesMax), heavy.ofWeight(memoryBytesMax));
      return { slots, memoryBytesMax, cpuMsMax: within(cpu.msMax) };
    },
    largest: (objectCount) => {
      const memoryBytesMax = heavyBytes + objectCount * OBJECT_BYTES;
      return { slots: heavy.ofWeight(memoryBytesMax), memoryBytesMax, cpuMsMax: within(cpu.msMax) };
    },
  };
}

/** Takes one of the second slots where none of the first is free; who waits, waits for the first. */
function orElse(first: FairSlots, second: FairSlots): FairSlots {
  const take = (key: string) => first.take(key) ?? second.take(key);
  return {
    take,
    acquire: async (key, signal) => {
      signal?.throwIfAborted();
      return take(key) ?? first.acquire(key, signal);
    },
  };
}
