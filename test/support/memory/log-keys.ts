/** An in-memory version of core/ports/log-keys.ts, and checkpoints that use it, for tests. */
import { noteSigning } from '../../../adapters/node/note-signing.ts';
import type { Digest } from '../../../core/kernel/digest.ts';
import type { AccountLogReader } from '../../../core/ports/account-log.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { LogKey, LogKeys } from '../../../core/ports/log-keys.ts';
import {
  type CheckpointContext,
  type Checkpoints,
  createCheckpoints,
} from '../../../core/use-cases/auditing/checkpoints.ts';
import { createLogKeyRing } from '../../../core/use-cases/auditing/log-keys.ts';
import { createMemoryLayerStore } from './layer-store.ts';

export function createMemoryLogKeys(): LogKeys {
  const keys = new Map<number, LogKey>();
  return {
    list: async () => [...keys.values()].toSorted((a, b) => a.generation - b.generation),
    async add(key) {
      if (keys.has(key.generation)) return false;
      keys.set(key.generation, key);
      return true;
    },
  };
}

export interface MemoryCheckpointsOptions {
  readonly readModels: AccountLogReader;
  readonly digest: Digest;
  readonly clock: Clock;
  readonly logKeys?: LogKeys;
  readonly store?: LayerStore;
  readonly recordActs?: CheckpointContext['recordActs'];
  readonly endorsedKey?: CheckpointContext['endorsedKey'];
}

export function createMemoryCheckpoints(options: MemoryCheckpointsOptions): Checkpoints {
  const { readModels, digest, clock, logKeys = createMemoryLogKeys(), store = createMemoryLayerStore() } = options;
  const { recordActs = async () => null, endorsedKey = async () => null } = options;
  const keys = createLogKeyRing({ logKeys, signing: noteSigning, host: () => 'strata.example', clock });
  return createCheckpoints({ readModels, digest, signing: noteSigning, keys, store, recordActs, endorsedKey });
}
