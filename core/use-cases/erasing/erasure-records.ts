/**
 * Which accounts were erased, outside the database: an object for each in the platform's layer store.
 *
 * Invariants: an object is put after `AccountErased`, and never removed or replaced. Objects outlive the database, so
 * that a backup from before an erasure does not bring the person back.
 */
import { type AccountId, parseUuid } from '../../kernel/ids.ts';
import { singleChunk } from '../../kernel/single-chunk.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import { layerKey } from '../../repository/layer.ts';

const FOLDER = 'erasures/';

/** Idempotent. */
export async function recordErasure(store: Pick<LayerStore, 'put'>, account: AccountId): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify({ account_id: account })}\n`);
  await store.put(layerKey(`${FOLDER}${account}`), singleChunk(bytes), bytes.length);
}

export async function* recordedErasures(store: Pick<LayerStore, 'list'>): AsyncGenerator<AccountId> {
  for await (const { key } of store.list(FOLDER)) {
    const account = parseUuid<AccountId>(key.slice(FOLDER.length));
    if (account !== null) yield account;
  }
}
