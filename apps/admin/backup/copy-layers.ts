/**
 * Copies the objects of a layers' store into a backup and out of it.
 *
 * Invariants: no object that is there is replaced, since the bytes of a key never change. In a copy of a store that is
 * in use the newest manifest of each repository names only layers of the copy, unless the store has lost some: then the
 * rest is copied, and the repository is named. The objects of erasures are copied last, so that they explain the layers
 * which an erasure takes away during the copy.
 */
import { createConcurrencyLimit } from '../../../core/kernel/concurrency-limit.ts';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../../core/ports/layer-store.ts';
import type { StoredLayer } from '../../../core/repository/layer.ts';
import { findManifests, readManifest } from '../../../core/use-cases/manifests/read-manifest.ts';
import { Refused } from '../answer.ts';

const REPOSITORIES = 'repositories/';
const PREFIXES = [REPOSITORIES, 'checkpoints/', 'erasures/'];
const COPIES_AT_A_TIME = 8;
/**
 * Each round follows the pushes and compactions of one repository during the round before. Internal: only a repository
 * that changes faster than it can be copied reaches it.
 */
const ROUNDS_MAX = 10;

type Source = Pick<LayerStore, 'get' | 'head' | 'list'>;

/** How many objects were copied, and their bytes. */
export interface Copied {
  readonly objects: number;
  readonly bytes: number;
}

/** Copies what the other store lacks. `leaveOut` says which objects stay where they are. */
export async function copyObjects(
  from: Source,
  to: LayerStore,
  leaveOut: (key: string) => boolean = () => false,
): Promise<Copied> {
  const copied: Copied[] = [];
  for (const prefix of PREFIXES) copied.push(await copyBelow(from, to, { prefix, leaveOut }));
  return sumOf(copied);
}

/** What a copy of a store in use holds. */
export interface UsedCopied extends Copied {
  /** Their newest manifests name layers that the store itself has lost. */
  readonly lacking: readonly RepositoryId[];
}

/** Copies what the other store lacks of a store that is in use. */
export async function copyUsedStore(from: LayerStore, to: LayerStore): Promise<UsedCopied> {
  const all = (prefix: string) => copyBelow(from, to, { prefix, leaveOut: () => false });
  const copied = [await all(REPOSITORIES)];
  const lacking: RepositoryId[] = [];
  for (const id of (await findManifests(to, { repository: null, revision: null })).keys()) {
    const again = async () => void copied.push(await all(`${REPOSITORIES}${id}/`));
    if (!(await isCompleted(to, id, again))) lacking.push(id);
  }
  for (const prefix of PREFIXES.slice(1)) copied.push(await all(prefix));
  return { ...sumOf(copied), lacking };
}

/**
 * Copies a repository until its newest manifest in the copy names only layers of the copy. Resolves with false if the
 * manifest stays the same and so does what is missing.
 */
async function isCompleted(copy: Source, id: RepositoryId, copyAgain: () => Promise<void>): Promise<boolean> {
  const revisions: number[] = [];
  for (;;) {
    const lacking = await revisionThatLacks(copy, id);
    if (lacking === null) return true;
    // A layer may leave between a listing and its copy. The manifest without it was written before, so the next listing
    // has it.
    if (revisions.slice(-2).every((revision) => revision === lacking) && revisions.length >= 2) return false;
    if (revisions.length === ROUNDS_MAX) throw new Refused(`The layers of ${id} changed with every copy: try again`);
    revisions.push(lacking);
    await copyAgain();
  }
}

function sumOf(copied: readonly Copied[]): Copied {
  const sum = (of: (one: Copied) => number) => copied.reduce((total, one) => total + of(one), 0);
  return { objects: sum(({ objects }) => objects), bytes: sum(({ bytes }) => bytes) };
}

/** Returns the revision of a repository's newest manifest in the copy if the copy lacks a layer of it; else null. */
async function revisionThatLacks(copy: Source, id: RepositoryId): Promise<number | null> {
  const found = (await findManifests(copy, { repository: id, revision: null })).get(id);
  if (found === undefined) return null;
  const manifest = await readManifest(copy, found);
  if ('invalid' in manifest) return null;
  for (const { key } of manifest.layers) if ((await copy.head(key)) === null) return found.revision;
  return null;
}

interface Wanted {
  readonly prefix: string;
  readonly leaveOut: (key: string) => boolean;
}

async function copyBelow(from: Source, to: LayerStore, { prefix, leaveOut }: Wanted): Promise<Copied> {
  const there = new Set<string>();
  for await (const { key } of to.list(prefix)) there.add(key);
  const limited = createConcurrencyLimit(COPIES_AT_A_TIME);
  let [objects, bytes] = [0, 0];
  const underWay = new Set<Promise<void>>();
  for await (const object of from.list(prefix)) {
    if (there.has(object.key) || leaveOut(object.key)) continue;
    const copying = limited(async () => {
      if (!(await copyObject(from, to, object))) return;
      objects += 1;
      bytes += object.sizeBytes;
    });
    underWay.add(copying);
    copying.finally(() => underWay.delete(copying)).catch(() => undefined);
    if (underWay.size >= COPIES_AT_A_TIME) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  return { objects, bytes };
}

/** Resolves with false if the object is gone: a sweep, a purge or a newer checkpoint has taken its place. */
async function copyObject(from: Source, to: LayerStore, { key, sizeBytes }: StoredLayer): Promise<boolean> {
  try {
    return (await to.put(key, await from.get(key), sizeBytes)) === 'stored';
  } catch (error) {
    if (error instanceof LayerStoreError && error.code === 'layer-not-found') return false;
    throw error;
  }
}

const CHECKPOINT = /^checkpoints\/([^/]+)\/(?:lost\/)?([0-9]{16})/;

/**
 * Returns which checkpoints of a backup stay out of a store: those of an account of which the store has one of as many
 * entries or more, or has given one up as lost.
 */
export async function checkpointsToLeaveOut(store: Pick<LayerStore, 'list'>): Promise<(key: string) => boolean> {
  const sizes = new Map<string, string>();
  for await (const { key } of store.list('checkpoints/')) {
    const [, account = '', size = ''] = CHECKPOINT.exec(key) ?? [];
    if (size > (sizes.get(account) ?? '')) sizes.set(account, size);
  }
  return (key) => {
    const [, account = '', size = ''] = CHECKPOINT.exec(key) ?? [];
    return size !== '' && !key.includes('/lost/') && size <= (sizes.get(account) ?? '');
  };
}
