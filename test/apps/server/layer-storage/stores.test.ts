/** The table of stores for the platform's layers: which one the settings choose, and how it opens. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import pino from 'pino';
import { describe, test } from 'vitest';
import { openLayerStorage } from '../../../../apps/server/layer-storage/stores.ts';
import { readSettings } from '../../../../apps/server/settings.ts';
import { tempDir } from '../../../support/temp-dir.ts';

type Environment = Readonly<Record<string, string>>;

describe("the store of the platform's layers", () => {
  const read = (environment: Environment) => readSettings(environment, '/srv').layerStore;

  test('is a folder of the data directory unless another folder is named', () => {
    assert.deepEqual(read({}), { kind: 'filesystem', directory: '/srv/data/layers' });
    assert.deepEqual(read({ STRATA_DATA_DIR: '/data' }), { kind: 'filesystem', directory: '/data/layers' });
    assert.deepEqual(read({ STRATA_LAYERS_DIR: '../layers' }), { kind: 'filesystem', directory: '/layers' });
  });

  test('has its settings judged even if another kind is chosen', () => {
    assert.throws(() => read({ STRATA_S3_BUCKET: 'a/b' }), /STRATA_S3_BUCKET is "a\/b": expected the name/);
  });

  test('opens as files below the folder', async (context) => {
    const directory = path.join(await tempDir(context), 'layers');
    const store = await openLayerStorage({ kind: 'filesystem', directory }, pino({ level: 'silent' }));
    const incoming = await Array.fromAsync(store.incoming?.list() ?? assert.fail());
    assert.deepEqual(incoming, []);
    assert.ok((await stat(directory)).isDirectory());
  });
});
