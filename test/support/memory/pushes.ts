/** Pushes to objects in memory: only the event, since the objects in memory accept no packs. */
import { refName } from '../../../core/git/ref-name.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import {
  type AccountId,
  type EventId,
  type ObjectId,
  type RepositoryId,
  ZERO_OBJECT_ID,
} from '../../../core/kernel/ids.ts';
import type { StoredRefUpdate } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import type { Context } from '../../../core/runtime/execute.ts';
import type { MemoryObjects } from './object-database.ts';

/** Moves refs as a push does, to objects that exist already; null deletes a ref. */
export async function appendPush(
  context: Context,
  objects: MemoryObjects,
  { id, accountId }: { readonly id: RepositoryId; readonly accountId: AccountId },
  changes: Readonly<Record<string, ObjectId | null>>,
  layerSizeBytes: number | null = null,
): Promise<void> {
  const entity = await context.entities.reload(repositories, id);
  if (entity.state.status === 'closed') throw new Error('The test pushed to a closed repository');
  const { refs } = entity.state;
  const updates = Object.entries(changes).map(([ref, after]): StoredRefUpdate => {
    const before = refs.get(refName(ref))?.id ?? null;
    const peeled = after === null ? null : objects.peel(after);
    return {
      ref,
      before: before ?? ZERO_OBJECT_ID,
      after: after ?? ZERO_OBJECT_ID,
      type: after === null ? null : (objects.typeOf(after) ?? 'commit'),
      peeled: peeled === after ? null : peeled,
      kind: after === null ? 'delete' : before === null ? 'create' : 'force-push',
    };
  });
  const data = {
    push_id: context.ids.next(),
    updates,
    parts: null,
    layer: layerSizeBytes === null ? null : layerNamed(context.ids.next(), layerSizeBytes),
    push_options: [],
    refused: 0,
    received_bytes: 1_000,
  };
  const result = await context.events.append({
    stream: streamName('repository', id),
    expected: entity.revision,
    events: [
      {
        actor: { kind: 'admin', id: 'test' },
        requestId: 'test',
        sourceAddressRef: null,
        causationId: null,
        id: context.ids.next<EventId>(),
        type: 'RefsUpdated',
        version: 1,
        isRecord: true,
        accountId,
        occurredAt: context.clock.now(),
        data,
      },
    ],
  });
  if (result.outcome !== 'appended') throw new Error('The test lost a race');
}

/** A layer that is in no store. */
function layerNamed(id: string, size_bytes: number) {
  return { id, key: `layers/${id}.tar`, size_bytes, sha256: '0'.repeat(64), pack: ZERO_OBJECT_ID };
}
