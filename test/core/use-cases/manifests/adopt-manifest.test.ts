/** Which manifests a repository of a restored log adopts, and by which words their layers are read. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { type EventId, plusMs, type RepositoryId, type Uuid, uuid } from '../../../../core/kernel/ids.ts';
import {
  type CommittedObjects,
  type ObjectDatabase,
  ObjectDatabaseError,
} from '../../../../core/ports/object-database.ts';
import type { RepositoryEvent } from '../../../../core/repository/events.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import type { Layer } from '../../../../core/repository/layer.ts';
import { layerOf } from '../../../../core/repository/layers.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from '../../../../core/repository/limits.ts';
import { planAdoption } from '../../../../core/use-cases/manifests/adopt-manifest.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';
import { onPlatform } from '../../../support/layers-in.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { startNode } from '../../../support/node.ts';
import { branch, layer, moved, oid, pushed } from '../../../support/repository-history.ts';

const push = pushed([moved(branch('main'), null, oid('1'))], { layer: layer(1) });
const closed: RepositoryEvent = { type: 'RepositoryClosed', data: {} };

interface Given {
  /** The layers of the manifest. */
  readonly layers: readonly Layer[];
  readonly bucket?: Uuid | null;
  readonly open?: ObjectDatabase['open'];
}

const unread = async (): Promise<never> => assert.fail('A layer was read');
const unknown = (count: number) => Array.from({ length: count }, (_, n) => layerOf(layer(n + 2)));

/** Returns why the manifest is not adopted; null if it is. */
async function refusalOf(
  history: readonly RepositoryEvent[],
  { layers, bucket = null, open = unread }: Given,
): Promise<string | null> {
  const node = await startNode(createMemoryEventStore());
  try {
    const id = uuid<RepositoryId>(randomUUID());
    const planned = await planAdoption(
      { ...node, objects: { open } },
      {
        id,
        place: { ...onPlatform(), storageBucketId: bucket },
        entity: {
          stream: streamName('repository', id),
          state: given(repositories, ...history),
          revision: history.length - 1,
          position: await node.events.head(),
          lastAt: FIRST_AT,
          lastEventId: null,
        },
        manifest: {
          repository: id,
          name: 'ada/r',
          revision: history.length,
          eventId: uuid<EventId>(randomUUID()),
          asOf: plusMs(FIRST_AT, 60_000),
          head: 'refs/heads/main',
          refs: { file: '', count: 0, sizeBytes: 0, sha256: '' },
          layers,
        },
        stored: new Set(),
      },
    );
    return 'refused' in planned ? planned.refused : null;
  } finally {
    await node.entities.close();
  }
}

test('a manifest in a bucket of a user is not adopted, since anybody may have written it', async () => {
  assert.equal(await refusalOf([push], { layers: unknown(1), bucket: uuid(randomUUID()) }), 'in-bucket');
});

test('a manifest with layers is not adopted by a repository that the log knows as deleted', async () => {
  assert.equal(await refusalOf([push, closed], { layers: unknown(1) }), 'undeleted-since');
  assert.equal(await refusalOf([push, closed], { layers: [] }), null);
});

test('a manifest is not adopted whose layers one append cannot name', async () => {
  assert.equal(await refusalOf([push], { layers: unknown(LAYERS_REMOVED_AT_ONCE_MAX / 4) }), 'too-many-layers');
  assert.equal(await refusalOf([push], { layers: [] }), null);
});

test('a layer that the log knows is checked by what the log says of it, whatever the manifest says', async () => {
  const known = layerOf(layer(1));
  const open = async ({ layers }: CommittedObjects): Promise<never> => {
    assert.deepEqual([...layers], [known, ...unknown(1)]);
    throw new ObjectDatabaseError('layer-corrupt', 'it has other bytes');
  };
  const layers = [{ ...known, sha256: 'f'.repeat(64) }, ...unknown(1)];
  await assert.rejects(refusalOf([push], { layers, open }), /it has other bytes/);
});
