/**
 * Reads manifests and their refs from a store, for a repository that is made from the store alone.
 *
 * Invariants: whoever owns the store may have written anything there. Nothing is believed but what the newest
 * manifest says, and its refs only with their SHA-256. No more is read than a manifest may hold.
 */
import type { RefName } from '../../git/ref-name.ts';
import { decodeUtf8 } from '../../git/utf8.ts';
import { MIB } from '../../kernel/byte-units.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { ObjectId, RepositoryId } from '../../kernel/ids.ts';
import type { JsonValue } from '../../kernel/json.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerKey } from '../../repository/layer.ts';
import {
  type Manifest,
  manifestPrefix,
  manifestRefsKey,
  parseManifest,
  parseManifestKey,
  parseManifestRefLine,
} from '../../repository/manifest.ts';

/** The size of a manifest without its refs, which is read whole: one of 300,000 layers. */
export const MANIFEST_BYTES_MAX = 64 * MIB;

type ManifestSource = Pick<LayerStore, 'get' | 'list'>;

export interface FoundManifest {
  readonly repository: RepositoryId;
  readonly revision: number;
  readonly key: LayerKey;
  readonly sizeBytes: number;
}

/** Returns the newest manifest of each repository in the store, or those of one revision. */
export async function findManifests(
  store: ManifestSource,
  only: { readonly repository: RepositoryId | null; readonly revision: number | null },
): Promise<ReadonlyMap<RepositoryId, FoundManifest>> {
  const found = new Map<RepositoryId, FoundManifest>();
  const prefix = only.repository === null ? 'repositories/' : manifestPrefix(only.repository);
  for await (const { key, sizeBytes } of store.list(prefix)) {
    const file = parseManifestKey(key);
    if (file === null || file.kind !== 'manifest') continue;
    const { repository, revision } = file;
    if (only.revision !== null && revision !== only.revision) continue;
    if ((found.get(repository)?.revision ?? -1) < revision)
      found.set(repository, { repository, revision, key, sizeBytes });
  }
  return found;
}

export interface Invalid {
  /** What is wrong, in words that follow the object's key. */
  readonly invalid: string;
}

/** Rejects with a LayerStoreError if the store cannot be read. */
export async function readManifest(store: ManifestSource, found: FoundManifest): Promise<Manifest | Invalid> {
  if (found.sizeBytes > MANIFEST_BYTES_MAX) return { invalid: 'is larger than a manifest may be' };
  const bytes = new Uint8Array(found.sizeBytes);
  let length = 0;
  for await (const chunk of await store.get(found.key)) {
    if (length + chunk.length > bytes.length) return { invalid: 'grew while it was read' };
    bytes.set(chunk, length);
    length += chunk.length;
  }
  const json = parseJson(bytes.subarray(0, length));
  if (json === null) return { invalid: 'is no JSON' };
  const manifest = parseManifest(json, found.repository);
  if ('invalid' in manifest) return { invalid: `is no manifest: ${manifest.invalid}` };
  return manifest.revision === found.revision ? manifest : { invalid: 'is of another revision than its name says' };
}

/** Whatever `JSON.parse` returns is a JSON value. */
function parseJson(bytes: Uint8Array): JsonValue | null {
  const text = decodeUtf8(bytes);
  try {
    return text === null ? null : (JSON.parse(text) as JsonValue);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export interface ManifestRef {
  readonly name: RefName;
  readonly id: ObjectId;
  readonly peeled: ObjectId | null;
}

/** Returns the refs of a manifest, after their SHA-256 was checked. */
export async function readManifestRefs(
  store: ManifestSource,
  { repository, refs: { file, sizeBytes, sha256, count } }: Pick<Manifest, 'repository' | 'refs'>,
  digest: Pick<Digest, 'startSha256'>,
): Promise<readonly ManifestRef[] | Invalid> {
  const running = digest.startSha256();
  const lines = createRefLines();
  let length = 0;
  try {
    for await (const chunk of await store.get(manifestRefsKey(repository, { file }))) {
      length += chunk.length;
      if (length > sizeBytes) return { invalid: 'is larger than the manifest says' };
      running.add(chunk);
      if (!lines.add(chunk)) return { invalid: 'holds a line that is no ref' };
    }
  } catch (error) {
    if (!(error instanceof LayerStoreError) || error.code !== 'layer-not-found') throw error;
    return { invalid: 'is not there' };
  }
  const refs = lines.end();
  if (running.hex() !== sha256) return { invalid: 'has another SHA-256 than the manifest says' };
  return refs === null || refs.length !== count ? { invalid: `does not hold ${count} refs` } : refs;
}

/** Collects refs from bytes that are cut anywhere. */
function createRefLines() {
  const refs: ManifestRef[] = [];
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let rest = '';
  const addLine = (text: string): boolean => {
    const line = parseManifestRefLine(text);
    if (line === null) return false;
    if (line.kind === 'ref') refs.push({ name: line.name, id: line.id, peeled: null });
    if (line.kind !== 'peeled') return true;
    const tag = refs.pop();
    if (tag === undefined || tag.peeled !== null) return false;
    refs.push({ ...tag, peeled: line.id });
    return true;
  };
  return {
    add(chunk: Uint8Array): boolean {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      return lines.every(addLine);
    },
    /** Returns null if the last line is cut off. */
    end: (): readonly ManifestRef[] | null => (rest === '' ? refs : null),
  };
}
