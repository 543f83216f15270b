/**
 * Checks the newest manifest of a repository: that it can be read, with its refs, and names only layers of the log.
 *
 * Invariants: a manifest that a newer one replaced while it was read is no fault. Nor is one that names layers which
 * an event after it let go: the next manifest is written within a minute, and their bytes leave after that.
 */
import { digest } from '../../adapters/node/digest.ts';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import type { RecordedLayer } from '../../core/repository/events.ts';
import type { StoredLayer } from '../../core/repository/layer.ts';
import { manifestFilesIn, manifestRefsKey } from '../../core/repository/manifest.ts';
import { readManifest, readManifestRefs } from '../../core/use-cases/manifests/read-manifest.ts';

export interface ManifestFault {
  readonly kind: 'damaged';
  /** The key of the object. */
  readonly what: string;
  readonly detail: string;
}

/** A layer that an event stored, and the revision at which another one let it go; null while it stays. */
export interface NamedLayer {
  readonly layer: RecordedLayer;
  readonly expiredAt: number | null;
}

/** Takes the manifests out of the listed objects. Returns what is wrong with the newest; null if nothing. */
export async function checkManifest(
  layers: LayerStore,
  repository: RepositoryId,
  listed: Map<string, StoredLayer>,
  named: ReadonlyMap<string, NamedLayer>,
): Promise<ManifestFault | null> {
  const files = manifestFilesIn([...listed.values()]);
  for (const { key } of files) listed.delete(key);
  const newest = files
    .filter(({ kind }) => kind === 'manifest')
    .toSorted((a, b) => a.revision - b.revision)
    .at(-1);
  if (newest === undefined) return null;
  const { key } = newest;
  try {
    const manifest = await readManifest(layers, { ...newest, repository });
    if ('invalid' in manifest) return { kind: 'damaged', what: key, detail: manifest.invalid };
    const unknown = manifest.layers.find(({ id, sha256 }) => {
      const { layer, expiredAt = null } = named.get(id) ?? {};
      return layer?.sha256 !== sha256 || (expiredAt !== null && expiredAt <= newest.revision);
    });
    if (unknown !== undefined) {
      return { kind: 'damaged', what: key, detail: `names the layer ${unknown.id}, which no event names like this` };
    }
    const refs = await readManifestRefs(layers, manifest, digest);
    if (!('invalid' in refs)) return null;
    return { kind: 'damaged', what: manifestRefsKey(repository, manifest.refs), detail: refs.invalid };
  } catch (error) {
    if (error instanceof LayerStoreError && error.code === 'layer-not-found') return null;
    throw error;
  }
}
