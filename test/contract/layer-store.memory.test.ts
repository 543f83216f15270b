/** The layer store's contract on the in-memory implementation. */
import { createMemoryLayerStore } from '../support/memory/layer-store.ts';
import { layerStoreContract } from './layer-store.ts';

layerStoreContract('memory', async () => ({ store: createMemoryLayerStore(), close: async () => {} }));
