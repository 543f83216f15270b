/**
 * Finds among a pack's objects one that refers to an object that is missing.
 *
 * Invariants: the reads are bounded by bytes and by the signal, and the event loop gets its turns.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ObjectType } from '../../../core/git/objects.ts';
import { MIB } from '../../../core/kernel/byte-units.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { parseCommit, parseTag } from '../packs/object-parsing.ts';
import type { ObjectSource } from '../packs/object-source.ts';
import { entryOfObject } from '../packs/tree-entries.ts';

/**
 * Bytes of objects of a refused pack that the server reads to find what refers to a missing object, beside the last
 * one.
 */
export const EXPLAINED_BYTES_MAX = 64 * MIB;

/** What refers to the missing object, and what kind it takes it for. */
export type Referrer =
  | {
      readonly as: 'parent of commit' | 'root folder of commit' | 'target of tag';
      readonly kind: ObjectType;
      readonly id: ObjectId;
    }
  | { readonly as: 'entry'; readonly kind: 'blob' | 'tree'; readonly id: ObjectId; readonly name: string };

export interface Candidates {
  readonly commits: readonly ObjectId[];
  readonly trees: readonly ObjectId[];
  readonly tags: readonly ObjectId[];
}

/** How long reads in a row may block the event loop. */
const TURN_MS = 10;

/** Commits come first: what a shallow clone lacks is a parent. Throws the signal's reason when it is aborted. */
export async function findReferrer(
  source: ObjectSource,
  { commits, tags, trees }: Candidates,
  missing: ObjectId,
  signal: AbortSignal,
): Promise<Referrer | null> {
  const idBytes = Buffer.from(missing, 'hex');
  let bytesRead = 0;
  let sinceMs = performance.now();
  const among = async (
    ids: readonly ObjectId[],
    look: (id: ObjectId, bytes: Buffer) => Referrer | null | Promise<Referrer | null>,
  ): Promise<Referrer | null> => {
    for (const id of ids) {
      if (bytesRead >= EXPLAINED_BYTES_MAX) return null;
      signal.throwIfAborted();
      const object = await source.read(id);
      if (object === null) continue;
      bytesRead += object.bytes.length;
      const found = await look(id, object.bytes);
      if (found !== null) return found;
      if (performance.now() - sinceMs < TURN_MS) continue;
      await nextTurn();
      sinceMs = performance.now();
    }
    return null;
  };
  return (
    (await among(commits, (id, bytes) => inCommit(id, bytes, missing))) ??
    (await among(tags, (id, bytes) => inTag(id, bytes, missing))) ??
    (await among(trees, (id, bytes) => (bytes.includes(idBytes) ? inTree(id, bytes, missing) : null)))
  );
}

function inCommit(id: ObjectId, bytes: Buffer, missing: ObjectId): Referrer | null {
  const commit = parseCommit(id, bytes);
  if (commit?.parents.includes(missing) === true) return { as: 'parent of commit', kind: 'commit', id };
  return commit?.tree === missing ? { as: 'root folder of commit', kind: 'tree', id } : null;
}

function inTag(id: ObjectId, bytes: Buffer, missing: ObjectId): Referrer | null {
  const target = parseTag(bytes);
  return target?.id === missing ? { as: 'target of tag', kind: target.type, id } : null;
}

async function inTree(id: ObjectId, bytes: Buffer, missing: ObjectId): Promise<Referrer | null> {
  // A submodule names a commit of another repository, which no push has to bring.
  const entry = await entryOfObject(bytes, missing, nextTurn);
  if (entry === null) return null;
  const name = Buffer.from(entry.name).toString('latin1');
  return { as: 'entry', kind: entry.mode === '040000' ? 'tree' : 'blob', id, name };
}
