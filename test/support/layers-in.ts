/** The stores of layers where every repository is in one store. */
import { randomUUID } from 'node:crypto';
import { type AccountId, uuid } from '../../core/kernel/ids.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../core/ports/layer-stores.ts';

export function layersIn(store: LayerStore): LayerStores {
  return { platform: store, of: () => store, altered: () => undefined };
}

/** A place on platform storage, of an account that no other test has. */
export function onPlatform(): LayerPlace {
  return { account: uuid<AccountId>(randomUUID()), storageBucketId: null };
}
