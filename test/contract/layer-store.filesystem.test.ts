/** The layer store's contract on the file system. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import { layerStoreContract } from './layer-store.ts';

layerStoreContract('the file system', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'strata-layers-'));
  return {
    store: await createFilesystemLayerStore({ directory }),
    close: () => rm(directory, { recursive: true }),
  };
});
