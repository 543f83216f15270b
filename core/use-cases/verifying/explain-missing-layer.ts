/**
 * Tells why the store lacks a layer that the log names: after a restore, the store may be newer than the log.
 *
 * Invariants: what is explained has an object in the store that was written before the layer went: the erasure of its
 * account, or a manifest of a later revision than the log's. Such a manifest explains only while every layer that it
 * names is there. In any doubt the layer counts as lost.
 */
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { Manifest } from '../../repository/manifest.ts';
import { recordedErasures } from '../erasing/erasure-records.ts';
import { findManifests, readManifest } from '../manifests/read-manifest.ts';

export interface MissingLayer {
  readonly id: string;
  readonly account: AccountId | null;
  readonly repository: RepositoryId;
  /** Where the repository's layers are. */
  readonly store: LayerStore;
  /** The last revision of the repository's stream in the log. */
  readonly revision: number;
}

export interface Explanation {
  readonly text: string;
  readonly by: 'manifest' | 'erasure';
}

/** Returns what explains missing layers. Each manifest and the list of erasures are read once. */
export function createExplanations(platform: LayerStore): {
  of(missing: MissingLayer): Promise<Explanation | null>;
} {
  let erased: ReadonlySet<AccountId> | null = null;
  const newest = new Map<RepositoryId, Manifest | null>();
  return {
    async of({ id, account, repository, store, revision }) {
      erased ??= new Set(await Array.fromAsync(recordedErasures(platform)));
      if (account !== null && erased.has(account)) {
        return { by: 'erasure', text: `account ${account} was erased after this log was saved` };
      }
      const known = newest.get(repository);
      const manifest = known === undefined ? await newerManifest(store, repository, revision) : known;
      newest.set(repository, manifest);
      if (manifest === null || manifest.layers.some((layer) => layer.id === id)) return null;
      const text = `the newest manifest, of revision ${manifest.revision} (the log ends at ${revision}), names it no longer`;
      return { by: 'manifest', text };
    },
  };
}

/**
 * Returns the newest manifest of a repository if it is of a later revision and all its layers are in the store; else
 * null.
 */
export async function newerManifest(
  store: LayerStore,
  repository: RepositoryId,
  revision: number,
): Promise<Manifest | null> {
  try {
    const found = (await findManifests(store, { repository, revision: null })).get(repository);
    if (found === undefined || found.revision <= revision) return null;
    const manifest = await readManifest(store, found);
    if ('invalid' in manifest) return null;
    for (const { key, sizeBytes } of manifest.layers) {
      if ((await store.head(key))?.sizeBytes !== sizeBytes) return null;
    }
    return manifest;
  } catch (error) {
    if (error instanceof LayerStoreError) return null;
    throw error;
  }
}
