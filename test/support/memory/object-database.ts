/**
 * Git objects in memory: their ids are real, and every repository has all of them.
 *
 * Invariants: it reads as the object database does (order of walks, reachability); it accepts no objects by a push.
 */
import { createHash } from 'node:crypto';
import type {
  Commit,
  ObjectInfo,
  ObjectType,
  Signature,
  TagObject,
  Tip,
  TreeEntry,
} from '../../../core/git/objects.ts';
import { EMPTY_TREE_ID, type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import type { ObjectDatabase, ObjectReader, Quarantine } from '../../../core/ports/object-database.ts';
import { NO_HISTORY, NO_SEARCH } from '../no-history.ts';

/** The parsed content of an object. */
type Parsed =
  | { readonly type: 'blob'; readonly sizeBytes: number }
  | { readonly type: 'tree'; readonly entries: readonly TreeEntry[] }
  | { readonly type: 'commit'; readonly commit: Commit }
  | { readonly type: 'tag'; readonly target: ObjectId; readonly tag: TagObject };

type StoredObject = Parsed & { readonly content: Buffer };

export interface CommitDraft {
  readonly tree: ObjectId;
  readonly parents?: readonly ObjectId[];
  readonly message?: string;
  readonly seconds: number;
  readonly author?: Partial<Signature>;
}

export interface MemoryObjects {
  readonly database: ObjectDatabase;
  blob(content: string | Buffer): ObjectId;
  /** A blob that reports a size larger than its content. */
  hugeBlob(sizeBytes: number): ObjectId;
  /** A tree with its entries sorted in git's order. */
  tree(entries: Readonly<Record<string, readonly [mode: string, id: ObjectId]>>): ObjectId;
  /** A tree with its entries in the order passed and names as bytes. */
  rawTree(entries: readonly TreeEntry[]): ObjectId;
  commit(draft: CommitDraft): ObjectId;
  tag(target: ObjectId, name: string, draft?: Partial<Pick<TagObject, 'tagger' | 'message'>>): ObjectId;
  /** Every object in the form in which git stores it. */
  all(): Iterable<{ readonly id: ObjectId; readonly type: ObjectType; readonly content: Uint8Array }>;
  find(id: ObjectId): Commit | null;
  /** The commits reachable from the tips, in the order of `git log`. */
  walk(tips: readonly ObjectId[]): Iterable<ObjectId>;
  typeOf(id: ObjectId): ObjectType | null;
  peel(id: ObjectId): ObjectId;
  /** The number of readers opened and not yet closed. */
  openReaders(): number;
}

export function createMemoryObjects(): MemoryObjects {
  const objects = new Map<ObjectId, StoredObject>();
  // Git knows the empty tree without storing it.
  objects.set(EMPTY_TREE_ID, { type: 'tree', entries: [], content: Buffer.alloc(0) });
  let open = 0;

  function put(content: Buffer, type: ObjectType, parse: (id: ObjectId) => Parsed): ObjectId {
    const hash = createHash('sha1').update(`${type} ${content.length}\0`).update(content).digest('hex');
    const id = objectId(hash);
    objects.set(id, { ...parse(id), content });
    return id;
  }

  function rawTree(entries: readonly TreeEntry[]): ObjectId {
    const parts = entries.flatMap(({ mode, name, id }) => [
      Buffer.from(`${mode.replace(/^0/, '')} `),
      name,
      Buffer.from([0]),
      Buffer.from(id, 'hex'),
    ]);
    const content = Buffer.concat(parts);
    return put(content, 'tree', () => ({ type: 'tree', entries }));
  }

  function peel(id: ObjectId): ObjectId {
    const object = objects.get(id);
    return object?.type === 'tag' ? peel(object.target) : id;
  }

  function commitOf(id: ObjectId): Commit | null {
    const object = objects.get(id);
    return object?.type === 'commit' ? object.commit : null;
  }

  function info(id: ObjectId): ObjectInfo | null {
    const object = objects.get(id);
    if (object === undefined) return null;
    return { id, type: object.type, sizeBytes: object.type === 'blob' ? object.sizeBytes : object.content.length };
  }

  function tip(id: ObjectId): Tip | null {
    const object = objects.get(id);
    if (object === undefined) return null;
    const peeled = peel(id);
    const target = objects.get(peeled);
    const leads = object.type === 'tag' && target !== undefined ? { id: peeled, type: target.type } : null;
    return { id, type: object.type, peeled: leads };
  }

  /** Newest commit date first, equal dates first in, first out: git's default order. */
  function* walk(include: readonly ObjectId[], exclude: readonly ObjectId[]): Generator<ObjectId> {
    const hidden = exclude.length === 0 ? new Set<ObjectId>() : new Set(walk(exclude, []));
    const seen = new Set<ObjectId>();
    const queue: Commit[] = [];
    const add = (id: ObjectId): void => {
      const commit = commitOf(id);
      if (commit === null || seen.has(id)) return;
      seen.add(id);
      const at = queue.findIndex((other) => other.committer.seconds < commit.committer.seconds);
      queue.splice(at === -1 ? queue.length : at, 0, commit);
    };
    for (const id of include) add(peel(id));
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      if (!hidden.has(next.id)) yield next.id;
      for (const parent of next.parents) add(parent);
    }
  }

  function reached(tips: readonly ObjectId[]): ReadonlySet<ObjectId> {
    const found = new Set<ObjectId>();
    const open: ObjectId[] = [...tips];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const object = objects.get(id);
      if (object === undefined || found.has(id)) continue;
      found.add(id);
      if (object.type === 'tag') open.push(object.target);
      if (object.type === 'commit') open.push(object.commit.tree, ...object.commit.parents);
      if (object.type === 'tree') open.push(...object.entries.map((entry) => entry.id));
    }
    return found;
  }

  function reader(): ObjectReader {
    open += 1;
    let closed = false;
    return {
      lookup: async (ids) => ids.map(info),
      startingWith: async (digits, limit) =>
        [...objects.keys()]
          .filter((id) => id.startsWith(digits))
          .sort()
          .slice(0, limit),
      tips: async (ids) => ids.map(tip),
      commit: async (id) => commitOf(id),
      commits: async (ids) => ids.map(commitOf),
      commitSeconds: async (ids) => new Map(ids.map((id) => [id, commitOf(id)?.committer.seconds ?? 0])),
      tag: async (id) => {
        const object = objects.get(id);
        return object?.type === 'tag' ? object.tag : null;
      },
      tree: async (id, { offset, limit }) => {
        const object = objects.get(id);
        if (object?.type !== 'tree') return null;
        return { items: object.entries.slice(offset, offset + limit), total: object.entries.length };
      },
      entry: async (id, name) => {
        const object = objects.get(id);
        if (object?.type !== 'tree') return null;
        return object.entries.find((entry) => Buffer.compare(entry.name, name) === 0) ?? null;
      },
      async *blob(id, range) {
        const object = objects.get(id);
        if (object?.type !== 'blob') throw new Error(`No blob ${id}`);
        const bytes = object.content.subarray(range?.start ?? 0, range?.end ?? object.content.length);
        for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
      },
      async *walk({ include, exclude, skip = 0, limit = Number.POSITIVE_INFINITY }) {
        let index = 0;
        for (const id of walk(include, exclude)) {
          if (index >= skip + limit) return;
          if (index >= skip) yield id;
          index += 1;
        }
      },
      count: async (tip) => [...walk([tip], [])].length,
      isAncestor: async (ancestor, descendant) => new Set(walk([descendant], [])).has(ancestor),
      history: NO_HISTORY,
      search: { ...NO_SEARCH, files: (tree) => listed(tree, '') },
      reachable: async (ids, tips) => {
        const found = reached(tips);
        return new Set(ids.filter((id) => found.has(id)));
      },
      async *commitText({ commit, form }) {
        yield Buffer.from(`${form} of ${commit}`);
      },
      archiveReadsRefs: async () => false,
      async *archive({ tip, format, prefix }) {
        yield Buffer.from(`${format} of ${tip} in ${prefix}`);
      },
      uploadPack: () => {
        throw new Error('Objects in memory serve no fetches');
      },
      close: () => {
        if (!closed) open -= 1;
        closed = true;
      },
    };
  }

  /** What `git ls-tree -r -z` prints. */
  async function* listed(tree: ObjectId, prefix: string): AsyncGenerator<Uint8Array> {
    const object = objects.get(tree);
    if (object?.type !== 'tree') return;
    for (const { mode, id, name } of object.entries) {
      const path = Buffer.concat([Buffer.from(prefix, 'latin1'), name]);
      if (mode === '040000') yield* listed(id, `${path.toString('latin1')}/`);
      else yield Buffer.concat([Buffer.from(`${mode} blob ${id}\t`), path, Buffer.from([0])]);
    }
  }

  /** The quarantine of a push of what is there. */
  function quarantine(): Quarantine {
    const nothing = async (): Promise<void> => undefined;
    return {
      pack: '',
      objectCount: 0,
      receivedBytes: EMPTY_PACK_BYTES,
      tips: async (ids) => ids.map(tip),
      commitSeconds: async (ids) => new Map(ids.map((id) => [id, commitOf(id)?.committer.seconds ?? 0])),
      compareMoves: async (moves) => moves.map(({ before, after }) => new Set(walk([after], [])).has(before)),
      diff: NO_HISTORY.diff,
      layer: async () => Promise.reject(new TypeError('A pack of no objects makes no layer')),
      leavesOver: async () => false,
      keepReached: nothing,
      recheck: async () => null,
      install: nothing,
      discard: nothing,
    };
  }

  return {
    database: {
      receive: async ({ pack }) => {
        const bytes = Buffer.concat(await Array.fromAsync(pack));
        const isEmpty = bytes.length === EMPTY_PACK_BYTES && bytes.readUInt32BE(OBJECT_COUNT_AT) === 0;
        return isEmpty ? quarantine() : { refused: 'pack-broken', detail: 'Objects in memory accept no objects' };
      },
      open: async () => reader(),
      heldAnswer: () => null,
      drop: async () => {},
    },
    blob: (content) => {
      const bytes = Buffer.from(content);
      return put(bytes, 'blob', () => ({ type: 'blob', sizeBytes: bytes.length }));
    },
    hugeBlob: (sizeBytes) => put(Buffer.from(`huge ${sizeBytes}`), 'blob', () => ({ type: 'blob', sizeBytes })),
    tree: (entries) => {
      const named = Object.entries(entries).map(([name, [mode, id]]) => ({ name: Buffer.from(name), mode, id }));
      const key = ({ name, mode }: TreeEntry): Buffer =>
        Buffer.concat([name, Buffer.from(mode === '040000' ? '/' : '')]);
      return rawTree(named.sort((a, b) => Buffer.compare(key(a), key(b))));
    },
    rawTree,
    commit: ({ tree, parents = [], message = 'A change\n', seconds, author = {} }) => {
      const person = { name: 'Ada', email: 'ada@example.org', seconds, offsetMinutes: 0 };
      const signature = { ...person, ...author };
      const headers = [
        `tree ${tree}`,
        ...parents.map((parent) => `parent ${parent}`),
        `author ${signatureText(signature)}`,
        `committer ${signatureText(person)}`,
      ];
      return put(Buffer.from(`${headers.join('\n')}\n\n${message}`), 'commit', (id) => ({
        type: 'commit',
        commit: { id, tree, parents, author: signature, committer: person, message },
      }));
    },
    tag: (target, name, { tagger = null, message = 'A tag\n' } = {}) => {
      const headers = [
        `object ${target}`,
        `type ${objects.get(target)?.type ?? 'commit'}`,
        `tag ${name}`,
        ...(tagger === null ? [] : [`tagger ${signatureText(tagger)}`]),
      ];
      return put(Buffer.from(`${headers.join('\n')}\n\n${message}`), 'tag', (id) => ({
        type: 'tag',
        target,
        tag: { id, tagger, message },
      }));
    },
    all: () => [...objects].map(([id, { type, content }]) => ({ id, type, content })),
    find: commitOf,
    walk: (tips) => walk(tips, []),
    typeOf: (id) => objects.get(id)?.type ?? null,
    peel,
    openReaders: () => open,
  };
}

/** Formats a signature as git writes it into commits and tags. */
function signatureText({ name, email, seconds, offsetMinutes }: Signature): string {
  const minutes = Math.abs(offsetMinutes);
  const zone = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0')).join('');
  return `${name} <${email}> ${seconds} ${offsetMinutes < 0 ? '-' : '+'}${zone}`;
}

/** A header, which counts the objects at its end, and a checksum: gitformat-pack(5). */
const EMPTY_PACK_BYTES = 32;
const OBJECT_COUNT_AT = 8;

/** Small, so that a file of some size arrives in several chunks. */
const CHUNK_BYTES = 10_000;
