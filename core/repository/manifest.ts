/**
 * Manifests: what the store of a repository's layers says about its state at a revision, in two objects of plain lines
 * (docs/bucket-layout.md). The store alone is a Git repository by them.
 *
 * Invariants:
 * - the forms never change: scripts that are not ours read the lines;
 * - both objects follow from the state at the revision alone, so all writers of a revision write the same bytes;
 * - names have the revision in digits of equal number, so the last name in the order of bytes is the newest.
 */
import { parseRefName, type RefName } from '../git/ref-name.ts';
import {
  type EventId,
  type LayerId,
  OBJECT_ID_DIGITS,
  type ObjectId,
  PACK_CHECKSUM_PATTERN,
  parseObjectId,
  parseTimestamp,
  parseUuid,
  plusMs,
  type RepositoryId,
  type Timestamp,
} from '../kernel/ids.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../kernel/json.ts';
import type { Layer } from './layer.ts';
import { type LayerKey, layerKey, type StoredLayer } from './layer.ts';
import { layerKeyOf } from './layers.ts';
import type { Ref } from './state.ts';

export interface Manifest {
  readonly repository: RepositoryId;
  /** `<username>/<name>` when it was written. */
  readonly name: string;
  /** The revision of the repository's stream. */
  readonly revision: number;
  /** The event at this revision, and its time. */
  readonly eventId: EventId;
  readonly asOf: Timestamp;
  /** The full name of the branch that HEAD names, even if there is no such branch. */
  readonly head: string;
  readonly refs: ManifestRefs;
  readonly layers: readonly Layer[];
}

/** The object that holds the refs. */
export interface ManifestRefs {
  /** The name of its file, beside the manifest. */
  readonly file: string;
  readonly count: number;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** `Number.MAX_SAFE_INTEGER` has as many. */
const REVISION_DIGITS = 16;
const FILE = /^repositories\/([^/]+)\/manifest\/([0-9]{16})(?:\.json|-[0-9a-f]{16}\.refs)$/;

function folderOf(repository: RepositoryId): string {
  return `repositories/${repository}/manifest/`;
}

/** Returns the prefix of all keys of a repository's manifests. */
export const manifestPrefix = folderOf;

export function manifestKey(repository: RepositoryId, revision: number): LayerKey {
  return layerKey(`${folderOf(repository)}${digitsOf(revision)}.json`);
}

export function manifestRefsKey(repository: RepositoryId, { file }: Pick<ManifestRefs, 'file'>): LayerKey {
  return layerKey(`${folderOf(repository)}${file}`);
}

/** A log that was restored to an earlier state reaches a revision again with other refs, so the name holds a digest. */
export function manifestRefsFile(revision: number, sha256: string): string {
  return `${digitsOf(revision)}-${sha256.slice(0, 16)}.refs`;
}

function digitsOf(revision: number): string {
  return String(revision).padStart(REVISION_DIGITS, '0');
}

/** What the key of an object says, if it is of a manifest: the manifest itself, or its refs. */
export interface ManifestFile {
  readonly repository: RepositoryId;
  readonly revision: number;
  readonly kind: 'manifest' | 'refs';
}

/** Returns null for any other object. */
export function parseManifestKey(key: string): ManifestFile | null {
  const [, idText = '', digits = ''] = FILE.exec(key) ?? [];
  const repository = parseUuid<RepositoryId>(idText);
  if (repository === null || repository !== idText) return null;
  return { repository, revision: Number(digits), kind: key.endsWith('.json') ? 'manifest' : 'refs' };
}

/** Returns the manifest's text: JSON, with a line for each member and for each layer. */
export function manifestText(manifest: Manifest): string {
  const { refs } = manifest;
  const layers = manifest.layers.map(({ id, sizeBytes, sha256, pack }) =>
    lineOf({ id, size_bytes: sizeBytes, sha256, pack }),
  );
  return [
    '{',
    '"format": 1,',
    `"repository_id": ${JSON.stringify(manifest.repository)},`,
    manifestNameLine(manifest.name),
    `"revision": ${manifest.revision},`,
    manifestEventLine(manifest.eventId),
    `"as_of": ${JSON.stringify(manifest.asOf)},`,
    `"head": ${JSON.stringify(manifest.head)},`,
    `"refs": ${lineOf({ file: refs.file, count: refs.count, size_bytes: refs.sizeBytes, sha256: refs.sha256 })},`,
    '"layers": [',
    ...layers.map((line, index) => (index === layers.length - 1 ? line : `${line},`)),
    ']',
    '}',
    '',
  ].join('\n');
}

/** A rename leaves the repository's own revision as it is. */
export function manifestNameLine(name: string): string {
  return `"repository": ${JSON.stringify(name)},`;
}

/** Tells apart equal revisions of two logs, of which one was restored to an earlier state. */
export function manifestEventLine(event: EventId): string {
  return `"event_id": ${JSON.stringify(event)},`;
}

function lineOf(members: Readonly<Record<string, string | number>>): string {
  const texts = Object.entries(members).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  return `{${texts.join(', ')}}`;
}

const SHA256 = /^[0-9a-f]{64}$/;
const PACK = new RegExp(`^${PACK_CHECKSUM_PATTERN}$`);
const REFS_FILE = /^[0-9]{16}-[0-9a-f]{16}\.refs$/;

/** Returns what is wrong if the JSON is not a manifest of this repository. Its text may come from anybody. */
export function parseManifest(json: JsonValue, repository: RepositoryId): Manifest | { readonly invalid: string } {
  if (!isJsonObject(json) || json['format'] !== 1) return { invalid: 'it is not of format 1' };
  if (json['repository_id'] !== repository) return { invalid: 'it names another repository' };
  const refs = parseRefs(json['refs']);
  const eventId = parseUuid<EventId>(textOf(json, 'event_id'));
  const asOf = parseTimestamp(textOf(json, 'as_of'));
  const head = textOf(json, 'head');
  const branch = parseRefName(head);
  const revision = countOf(json, 'revision');
  const listed = json['layers'];
  const isWhole =
    refs !== null &&
    eventId !== null &&
    asOf !== null &&
    revision !== null &&
    listed !== undefined &&
    isJsonArray(listed);
  if (!isWhole || typeof branch !== 'string') return { invalid: 'a member is missing or malformed' };
  const layers: Layer[] = [];
  for (const item of listed) {
    const layer = parseLayer(item, repository);
    if (layer === null) return { invalid: `its layer ${layers.length + 1} is malformed` };
    layers.push(layer);
  }
  return { repository, name: textOf(json, 'repository'), revision, eventId, asOf, head, refs, layers };
}

function parseRefs(json: JsonValue | undefined): ManifestRefs | null {
  if (json === undefined || !isJsonObject(json)) return null;
  const [file, sha256] = [textOf(json, 'file'), textOf(json, 'sha256')];
  const [count, sizeBytes] = [countOf(json, 'count'), countOf(json, 'size_bytes')];
  if (!REFS_FILE.test(file) || !SHA256.test(sha256) || count === null || sizeBytes === null) return null;
  return { file, count, sizeBytes, sha256 };
}

function parseLayer(json: JsonValue, repository: RepositoryId): Layer | null {
  if (!isJsonObject(json)) return null;
  const id = parseUuid<LayerId>(textOf(json, 'id'));
  const [sha256, pack] = [textOf(json, 'sha256'), textOf(json, 'pack')];
  const sizeBytes = countOf(json, 'size_bytes');
  if (id === null || !SHA256.test(sha256) || !PACK.test(pack) || sizeBytes === null) return null;
  return { id, key: layerKeyOf(repository, id), sizeBytes, sha256, pack };
}

function textOf(json: JsonObject, member: string): string {
  const value = json[member];
  return typeof value === 'string' ? value : '';
}

function countOf(json: JsonObject, member: string): number | null {
  const value = json[member];
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** The first line of the refs, which are a file `packed-refs` of Git. All tags that can be peeled are. */
export const MANIFEST_REFS_HEADER = '# pack-refs with: peeled fully-peeled sorted \n';

/** Returns the lines of a ref. */
export function manifestRefLines(name: RefName, { id, peeled }: Ref): string {
  return peeled === null ? `${id} ${name}\n` : `${id} ${name}\n^${peeled}\n`;
}

export type ManifestRefLine =
  | { readonly kind: 'header' }
  | { readonly kind: 'ref'; readonly name: RefName; readonly id: ObjectId }
  /** What the tag of the line before peels to. */
  | { readonly kind: 'peeled'; readonly id: ObjectId };

/** Returns null for a line that no refs of a manifest have. */
export function parseManifestRefLine(line: string): ManifestRefLine | null {
  if (line.startsWith('#')) return { kind: 'header' };
  if (line.startsWith('^')) {
    const id = parseObjectId(line.slice(1));
    return id === null ? null : { kind: 'peeled', id };
  }
  const id = parseObjectId(line.slice(0, OBJECT_ID_DIGITS));
  const name = parseRefName(line.slice(OBJECT_ID_DIGITS + 1));
  if (id === null || line[OBJECT_ID_DIGITS] !== ' ' || typeof name !== 'string') return null;
  return { kind: 'ref', name, id };
}

/** A stored manifest, without its refs. */
export interface StoredManifest {
  readonly revision: number;
  readonly storedAt: Timestamp;
}

/**
 * Returns when each manifest may leave the store; null for those that only a newer one replaces. These are the newest,
 * and the one before it, which somebody may be reading. The last one of each day stays for the retention: by it, what a
 * deletion or a forced push removed from the refs is found without the log.
 */
export function manifestsLeaveAt(
  manifests: readonly StoredManifest[],
  retentionMs: number,
): ReadonlyMap<number, Timestamp | null> {
  const ordered = manifests.toSorted((a, b) => a.revision - b.revision);
  const leave = new Map<number, Timestamp | null>();
  for (const [index, { revision, storedAt }] of ordered.entries()) {
    const next = ordered[index + 1];
    if (index >= ordered.length - 2) leave.set(revision, null);
    else if (next !== undefined && dayOf(next.storedAt) === dayOf(storedAt)) leave.set(revision, storedAt);
    else leave.set(revision, plusMs(storedAt, retentionMs));
  }
  return leave;
}

function dayOf(at: Timestamp): string {
  return at.slice(0, 10);
}

/** Returns the manifests and refs among the objects of a repository's store. */
export function manifestFilesIn(stored: readonly StoredLayer[]): readonly (ManifestFile & StoredLayer)[] {
  return stored.flatMap((object) => {
    const file = parseManifestKey(object.key);
    return file === null ? [] : [{ ...object, ...file }];
  });
}
