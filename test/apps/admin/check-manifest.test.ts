/** What `strata-admin storage verify` says about the newest manifest of a repository. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, test } from 'vitest';
import { checkManifest, type NamedLayer } from '../../../apps/admin/check-manifest.ts';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { LayerKey, StoredLayer } from '../../../core/repository/layer.ts';
import { recordedLayer } from '../../../core/repository/layers.ts';
import { writeManifest } from '../../../core/use-cases/manifests/write-manifest.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { keepLog } from '../../support/log.ts';
import { testPastEntities } from '../../support/past-repositories.ts';

describe('The newest manifest', () => {
  const ending = suiteEnding();
  let store: LayerStore;
  let id: RepositoryId;
  let named: ReadonlyMap<string, NamedLayer>;

  beforeAll(async () => {
    const reading = await startGitReading();
    cleanUp(ending, () => reading.close());
    await reading.push({ 'refs/heads/main': reading.git.commit({ first: randomBytes(300) }) });
    const { entity, ...found } = await reading.current();
    const layers = layersIn(reading.database.layers);
    const past = testPastEntities(reading.node);
    const context = { ...reading.node, layers, past, retentionMs: 0, log: keepLog() };
    await writeManifest(context, { account: reading.account, repository: found.id });
    ({ id } = found);
    store = reading.database.layers;
    const layersNamed = [...entity.state.layers].map(recordedLayer);
    named = new Map(layersNamed.map((layer) => [layer.id, { layer, expiredAt: null }]));
  });

  async function listed(): Promise<Map<string, StoredLayer>> {
    const stored = await Array.fromAsync(store.list(`repositories/${id}/`));
    return new Map(stored.map((one) => [one.key, one]));
  }

  function saying(which: (key: LayerKey) => boolean, change: (text: string) => string): LayerStore {
    return {
      ...store,
      get: async (key, range) => {
        const text = Buffer.concat(await Array.fromAsync(await store.get(key, range))).toString();
        return (async function* () {
          yield Buffer.from(which(key) ? change(text) : text);
        })();
      },
    };
  }

  test('is no fault if it is whole, and no manifest is an unnamed layer', async () => {
    const objects = await listed();
    assert.equal(objects.size, 3);
    assert.equal(await checkManifest(store, id, objects, named), null);
    assert.deepEqual(
      [...objects.keys()],
      [...named.values()].map(({ layer }) => layer.key),
    );
    assert.equal(await checkManifest(store, id, new Map(), named), null, 'none was written yet');
  });

  test('is damaged if it or its refs were altered, or if it names a layer that the log does not have', async () => {
    const isManifest = (key: string): boolean => key.endsWith('.json');
    const isRefs = (key: string): boolean => key.endsWith('.refs');
    for (const [faulty, says] of [
      [saying(isManifest, (text) => text.replace('"head"', '"HEAD"')), /^is no manifest: a member is missing/],
      [saying(isManifest, (text) => text.replace('{', '[')), /^is no JSON/],
      [saying(isRefs, (text) => text.replace('heads/main', 'heads/evil')), /^has another SHA-256/],
    ] as const) {
      const fault = await checkManifest(faulty, id, await listed(), named);
      assert.match(fault?.detail ?? '', says);
    }
    const fault = await checkManifest(store, id, await listed(), new Map());
    assert.match(fault?.detail ?? '', /^names the layer .*, which no event names like this$/);
  });

  test('may name a layer that a later event let go, but none that was gone when it was written', async () => {
    const expired = (revision: number) =>
      new Map([...named].map(([layerId, one]) => [layerId, { ...one, expiredAt: revision }]));
    assert.equal(await checkManifest(store, id, await listed(), expired(1_000)), null);
    const fault = await checkManifest(store, id, await listed(), expired(0));
    assert.match(fault?.detail ?? '', /^names the layer .*, which no event names like this$/);
  });

  test('is no fault if a newer one replaced it while it was read', async () => {
    const objects = await listed();
    const gone: LayerStore = { ...store, get: (key) => store.get(`${key}.gone` as LayerKey) };
    assert.equal(await checkManifest(gone, id, objects, named), null);
  });
});
