/**
 * Names objects in process: SHA-1 with detection of collision attacks, as git itself computes it (git-hash-object(1)).
 *
 * Invariants: an object that shows a collision attack has no name here. Node's own SHA-1 detects none, so ids of
 * what strangers send come from nowhere else, but for contents that are too large for memory: the check of the pack
 * that holds them names them again, here or in git, before anything else is made of them.
 *
 * The library is libgit2, in the builds that es-git makes of it for Node. Those for Linux on x64 are dependencies; on
 * other platforms nothing is named here.
 */
import { createRequire } from 'node:module';
import type { ObjectType } from '../../../core/git/objects.ts';
import { EMPTY_BLOB_ID, type ObjectId, objectId } from '../../../core/kernel/ids.ts';

const require: (name: string) => unknown = createRequire(import.meta.url);
/** With glibc, and with musl. */
const BUILDS: readonly (() => unknown)[] = [
  () => require('es-git-linux-x64-gnu'),
  () => require('es-git-linux-x64-musl'),
];
/** The types as es-git names them. */
const NAMES = { commit: 'Commit', tree: 'Tree', blob: 'Blob', tag: 'Tag' } as const;

/** Throws if the bytes show a collision attack. */
export type HashObject = (type: ObjectType, bytes: Buffer) => ObjectId;

/** Returns null where no build can be loaded. `onFault` is called if one should have been. */
export function loadObjectHash(onFault: (error: unknown) => void): HashObject | null {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null;
  let fault: unknown = null;
  for (const load of BUILDS) {
    try {
      return hashOf(load());
    } catch (error) {
      fault ??= error;
    }
  }
  onFault(fault);
  return null;
}

function hashOf(library: unknown): HashObject {
  const { hashObjectOid } = library as { readonly hashObjectOid?: unknown };
  if (typeof hashObjectOid !== 'function') throw new TypeError('es-git has no function that names objects');
  const nameOf = hashObjectOid as (type: string, bytes: Buffer) => unknown;
  const hash: HashObject = (type, bytes) => objectId(String(nameOf(NAMES[type], bytes)));
  const named = hash('blob', Buffer.alloc(0));
  if (named !== EMPTY_BLOB_ID) throw new TypeError(`es-git names the empty blob ${named}`);
  return hash;
}
