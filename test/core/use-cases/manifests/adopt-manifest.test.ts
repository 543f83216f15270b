/** Which manifests are not adopted by a repository of a restored log, before a byte of their layers is read. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { type EventId, plusMs, type RepositoryId, type Uuid, uuid } from '../../../../core/kernel/ids.ts';
import type { RepositoryEvent } from '../../../../core/repository/events.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
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

/** Returns why a manifest with this many layers is not adopted; null if it is. */
async function refusalOf(
  history: readonly RepositoryEvent[],
  { layers, bucket = null }: { readonly layers: number; readonly bucket?: Uuid | null },
): Promise<string | null> {
  const node = await startNode(createMemoryEventStore());
  try {
    const unread = async (): Promise<never> => assert.fail('A layer was read');
    const id = uuid<RepositoryId>(randomUUID());
    const planned = await planAdoption(
      { ...node, objects: { open: unread } },
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
          layers: Array.from({ length: layers }, (_, n) => layerOf(layer(n + 2))),
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
  assert.equal(await refusalOf([push], { layers: 1, bucket: uuid(randomUUID()) }), 'in-bucket');
});

test('a manifest with layers is not adopted by a repository that the log knows as deleted', async () => {
  assert.equal(await refusalOf([push, closed], { layers: 1 }), 'undeleted-since');
  assert.equal(await refusalOf([push, closed], { layers: 0 }), null);
});

test('a manifest is not adopted whose layers one append cannot name', async () => {
  assert.equal(await refusalOf([push], { layers: LAYERS_REMOVED_AT_ONCE_MAX / 4 }), 'too-many-layers');
  assert.equal(await refusalOf([push], { layers: 0 }), null);
});
