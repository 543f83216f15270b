/**
 * Commits a push as a program version without bounds on objects did: writes straight to the layer store and the log.
 */
import { randomUUID } from 'node:crypto';
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, type ObjectId, timestamp, uuid, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import { recordedLayer } from '../../core/repository/layers.ts';
import { newEvent } from './events.ts';
import { keepLog } from './log.ts';
import type { SharedParts } from './strata-on-postgres.ts';
import { putUncheckedLayer } from './unchecked-layer.ts';

export interface UncheckedPush {
  readonly account: string;
  readonly repository: string;
  readonly ref: string;
  readonly tip: ObjectId;
  readonly pack: Buffer;
}

/** Makes the first push of a repository that nobody else pushes to at the time. The log must be on PostgreSQL. */
export async function pushUnchecked(shared: SharedParts, push: UncheckedPush): Promise<void> {
  const layers = await createFilesystemLayerStore({ directory: shared.layersDir });
  const layer = await putUncheckedLayer(layers, push.repository, push.pack);
  const update = {
    ref: push.ref,
    before: ZERO_OBJECT_ID,
    after: push.tip,
    type: 'commit',
    peeled: null,
    kind: 'create',
  };
  const data = {
    ...{ push_id: randomUUID(), updates: [update], parts: null, push_options: [], refused: 0, received_bytes: 1_000 },
    layer: recordedLayer(layer),
  };
  const events = createPostgresEventStore({
    connectionString: shared.env['STRATA_DATABASE_URL'] ?? '',
    log: keepLog(),
  });
  try {
    const occurredAt = timestamp(new Date().toISOString());
    const event = newEvent({ type: 'RefsUpdated', accountId: uuid<AccountId>(push.account), occurredAt, data });
    const stream = streamName('repository', push.repository);
    const result = await events.append({ stream, expected: 'none', events: [event] });
    if (result.outcome === 'conflict') throw new Error(`${stream} exists already`);
  } finally {
    await events.close();
  }
}
