/** The platform's layers as files below one folder: the setting `STRATA_LAYERS_DIR`. */
import path from 'node:path';
import { createFilesystemLayerStore } from '../../../adapters/filesystem/layer-store.ts';
import { createProcessMarks } from '../../../adapters/node/process-mark.ts';
import type { LayerStoreKind } from './store-kind.ts';

interface FilesystemSettings {
  /** Nodes that share a database share this folder too. */
  readonly directory: string;
}

export const FILESYSTEM: LayerStoreKind<'filesystem', FilesystemSettings> = {
  kind: 'filesystem',
  read: ({ filePath }, { dataDir }) => ({ directory: filePath('STRATA_LAYERS_DIR') ?? path.join(dataDir, 'layers') }),
  placeOutside: ({ directory }, dataDir) => (directory.startsWith(`${dataDir}/`) ? null : directory),
  open: async ({ directory }) => ({
    store: await createFilesystemLayerStore({ directory, writers: await createProcessMarks() }),
    // Opening has tried all.
    check: async () => 'whole',
  }),
};
