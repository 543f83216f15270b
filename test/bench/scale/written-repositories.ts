/**
 * Repositories of an account as events, for numbers of them that would take an hour over HTTP.
 *
 * Invariants: no server runs on the log in between. Each repository has a push of a ref whose commits nobody lists,
 * with a layer that counts as storage and whose bytes are nowhere: nothing may read such a repository but the read
 * models.
 */
import { randomUUID } from 'node:crypto';
import { createPostgresEventStore } from '../../../adapters/postgres/event-store.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { type AppendRequest, appendInOrder } from '../../../core/ports/event-store.ts';
import { newEvent } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import type { Scene } from '../scene.ts';

const REPOSITORIES_OF_APPEND = 100;
const LAYER_BYTES = 10_000;
const ID_CHARACTERS = 40;

export async function writeRepositories({ env }: Scene, account: AccountId, count: number): Promise<void> {
  const store = createPostgresEventStore({
    connectionString: env['STRATA_DATABASE_OWNER_URL'] ?? '',
    log: keepLog(),
  });
  try {
    const stream = streamName('account', account);
    const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
    if (last === undefined) throw new Error('There is no account');
    let expected = last.revision;
    for (let made = 0; made < count; made += REPOSITORIES_OF_APPEND) {
      const ids = Array.from({ length: Math.min(REPOSITORIES_OF_APPEND, count - made) }, () => randomUUID());
      const events = ids.map((id, index) => created(account, id, `written-${made + index}`));
      const appends: readonly AppendRequest[] = [{ stream, expected, events }, ...ids.map((id) => pushOf(account, id))];
      const results = await appendInOrder(store, appends);
      if (results.some(({ outcome }) => outcome === 'conflict')) throw new Error(`Somebody else writes ${stream}`);
      expected += ids.length;
    }
  } finally {
    await store.close();
  }
}

function created(accountId: AccountId, id: string, name: string) {
  const data = { repository_id: id, name, description: null, default_branch: null, storage_bucket_id: null };
  return newEvent({ type: 'RepositoryCreated', accountId, data });
}

function pushOf(accountId: AccountId, id: string): AppendRequest {
  const after = randomUUID().replaceAll('-', '').padEnd(ID_CHARACTERS, '0');
  const before = '0'.repeat(ID_CHARACTERS);
  const update = { ref: 'refs/notes/written', before, after, type: 'commit', peeled: null, kind: 'create' };
  const layer: JsonObject = {
    ...{ id: randomUUID(), key: `written/${id}.tar`, size_bytes: LAYER_BYTES },
    ...{ sha256: '0'.repeat(64), pack: '0'.repeat(ID_CHARACTERS) },
  };
  const data: JsonObject = {
    ...{ push_id: randomUUID(), updates: [update], parts: null, layer, push_options: [] },
    ...{ refused: 0, received_bytes: LAYER_BYTES, restored: null },
  };
  const pushed = newEvent({ type: 'RefsUpdated', version: 2, accountId, data });
  return { stream: streamName('repository', id), expected: 'none', events: [pushed] };
}
