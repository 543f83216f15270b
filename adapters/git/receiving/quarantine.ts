/**
 * A received pack in a folder of its own, checked and invisible to every reader until it is installed.
 *
 * Must stay true: it ends by install or discard, and leaves no file of its own behind; it holds the lease on the
 * layers it was checked against until then.
 */
import { join } from 'node:path';
import { canonicalJson } from '../../../core/kernel/json.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import type { CommittedObjects, Layer, PackRefusal, Quarantine } from '../../../core/ports/object-database.ts';
import { commandError, type Git, type ObjectView } from '../process/git-commands.ts';
import { createGitObjects } from '../packs/git-objects.ts';
import { quarantineView, recheckPack } from './index-pack.ts';
import type { CacheLease, LayerCache } from '../layer-cache.ts';
import { layerContent } from '../cache/layer-tar.ts';
import type { GitLog } from '../process/log.ts';
import { isAncestorNearby, readTips } from '../object-graph.ts';
import {
  createObjectSource,
  type ObjectSource,
  openFreshPack,
  type OpenPack,
  type PackMemory,
} from '../packs/object-source.ts';

export interface QuarantineContext {
  readonly git: Git;
  readonly cache: LayerCache;
  readonly memory: PackMemory;
  readonly log: GitLog;
}

export interface ReceivedPack {
  /** The pack's checksum, hex. */
  readonly pack: string;
  readonly receivedBytes: number;
  /** Holds `pack/pack-<hex>.{pack,idx,rev}`; null for a pack of no objects, of which nothing is kept. */
  readonly folder: string | null;
}

/** Takes over the lease and the folder. */
export async function createQuarantine(
  context: QuarantineContext,
  received: ReceivedPack,
  leased: CacheLease,
): Promise<Quarantine> {
  const { git, cache, memory, log } = context;
  const { pack, receivedBytes, folder } = received;
  const fileOf = (extension: string) => join(folder ?? '', 'pack', `pack-${pack}.${extension}`);
  const own = folder === null ? null : await openFreshPack(memory, pack, fileOf('pack'), fileOf('idx'));
  let lease = leased;
  let objects = objectsOf(git, lease, own, folder);
  let ended = false;

  /** The first caller ends it; the answer is whether that is you. */
  const end = () => {
    if (ended) return false;
    ended = true;
    return true;
  };
  const clear = async (moved: boolean) => {
    lease.release();
    if (folder === null) return;
    if (moved) await cache.incoming.giveBack(folder);
    else await cache.incoming.remove(folder);
  };

  return {
    pack,
    objectCount: own?.index.objectCount ?? 0,
    receivedBytes,
    tips: (ids) => readTips(objects.source, ids),
    isAncestor: (ancestor, descendant) => isAncestor(git, objects, ancestor, descendant),
    layer: async (updates, description) => {
      if (own === null) throw new TypeError('A pack of no objects makes no layer');
      return layerContent(memory.pages, {
        pack,
        packFile: own.file.file,
        idxFile: own.index.file,
        updates: updates.map((line) => `${line}\n`).join(''),
        description: `${canonicalJson(description)}\n`,
      });
    },
    recheck: async (committed: CommittedObjects): Promise<PackRefusal | null> => {
      const next = await cache.acquire(committed);
      try {
        const refusal =
          folder === null ? null : await recheckPack(git, fileOf('pack'), next.folder, join(folder, 'recheck'));
        if (refusal !== null) {
          next.release();
          return refusal;
        }
      } catch (error) {
        next.release();
        throw error;
      }
      lease.release();
      lease = next;
      objects = objectsOf(git, lease, own, folder);
      return null;
    },
    install: async (layer: Layer) => {
      if (!end()) return;
      let moved = false;
      try {
        if (own !== null) {
          const packBytes = own.file.file.sizeBytes;
          const idxBytes = own.index.file.sizeBytes;
          const files = {
            packPath: fileOf('pack'),
            idxPath: fileOf('idx'),
            revPath: fileOf('rev'),
            packBytes,
            idxBytes,
          };
          moved = await cache.install(lease, layer, files, own);
        }
      } catch (error) {
        // The push is committed: whoever reads next fetches the layer from the store.
        log.warn({ layer: layer.id, error }, 'A new layer could not be moved into the cache');
      }
      clear(moved).catch((error: unknown) => log.warn({ folder, error }, 'A quarantine stays on the disk'));
    },
    discard: async () => {
      if (end()) await clear(false);
    },
  };
}

/** Objects as they can be asked for in process, and by git. */
export interface ObjectAccess {
  readonly source: ObjectSource;
  readonly view: ObjectView;
}

function objectsOf(git: Git, lease: CacheLease, own: OpenPack | null, folder: string | null): ObjectAccess {
  const view: ObjectView =
    folder === null
      ? { key: lease.folder.repository, variables: { GIT_DIR: lease.folder.path } }
      : quarantineView(lease.folder, folder);
  const packs = own === null ? lease.packs : [...lease.packs, own];
  return { source: createObjectSource(packs, createGitObjects(git, view)), view };
}

/** In process where the answer is near, else by git. */
export async function isAncestor(
  git: Git,
  { source, view }: ObjectAccess,
  ancestor: ObjectId,
  descendant: ObjectId,
): Promise<boolean> {
  const near = await isAncestorNearby(source, ancestor, descendant);
  if (near !== null) return near;
  const command = { args: ['merge-base', '--is-ancestor', ancestor, descendant], view };
  const answer = await git.answer(command);
  if (answer.code === 0) return true;
  if (answer.code === 1) return false;
  throw commandError(command, answer);
}
