/**
 * Git objects in memory, made by hand: their ids are real, their repository is whoever asks.
 *
 * Must stay true: it reads as the object database does (order of walks, what is reachable); it takes no pushes.
 */
import { createHash } from 'node:crypto';
import { type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import type {
  Commit,
  ObjectDatabase,
  ObjectInfo,
  ObjectReader,
  ObjectType,
  Signature,
  Tip,
  TreeEntry,
} from '../../../core/ports/object-database.ts';

type StoredObject =
  | { readonly type: 'blob'; readonly bytes: Buffer; readonly sizeBytes: number }
  | { readonly type: 'tree'; readonly entries: readonly TreeEntry[]; readonly sizeBytes: number }
  | { readonly type: 'commit'; readonly commit: Commit; readonly sizeBytes: number }
  | { readonly type: 'tag'; readonly target: ObjectId; readonly sizeBytes: number };

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
  /** A blob that says it is larger than it is. */
  hugeBlob(sizeBytes: number): ObjectId;
  /** Entries are put in git's order. */
  tree(entries: Readonly<Record<string, readonly [mode: string, id: ObjectId]>>): ObjectId;
  /** As `tree`, in the order given, with names as bytes. */
  rawTree(entries: readonly TreeEntry[]): ObjectId;
  commit(draft: CommitDraft): ObjectId;
  tag(target: ObjectId, name: string): ObjectId;
  find(id: ObjectId): Commit | null;
  typeOf(id: ObjectId): ObjectType | null;
  peel(id: ObjectId): ObjectId;
  /** Readers opened and not yet closed. */
  openReaders(): number;
}

export function createMemoryObjects(): MemoryObjects {
  const objects = new Map<ObjectId, StoredObject>();
  let open = 0;

  function put(type: ObjectType, content: Buffer, make: (id: ObjectId) => StoredObject): ObjectId {
    const hash = createHash('sha1').update(`${type} ${content.length}\0`).update(content).digest('hex');
    const id = objectId(hash);
    objects.set(id, make(id));
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
    return put('tree', content, () => ({ type: 'tree', entries, sizeBytes: content.length }));
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
    return object === undefined ? null : { id, type: object.type, sizeBytes: object.sizeBytes };
  }

  function tip(id: ObjectId): Tip | null {
    const object = objects.get(id);
    if (object === undefined) return null;
    const peeled = peel(id);
    const target = objects.get(peeled);
    const leads = object.type === 'tag' && target !== undefined ? { id: peeled, type: target.type } : null;
    return { id, type: object.type, peeled: leads };
  }

  /** Newest date first, equal dates first in, first out: git's default order. */
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
      tips: async (ids) => ids.map(tip),
      commit: async (id) => commitOf(id),
      commits: async (ids) => ids.map(commitOf),
      tag: async (id) => (objects.get(id)?.type === 'tag' ? { id, tagger: null, message: 'A tag\n' } : null),
      tree: async (id) => {
        const object = objects.get(id);
        return object?.type === 'tree' ? object.entries : null;
      },
      async *blob(id, range) {
        const object = objects.get(id);
        if (object?.type !== 'blob') throw new Error(`No blob ${id}`);
        const bytes = object.bytes.subarray(range?.start ?? 0, range?.end ?? object.bytes.length);
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
      isAncestor: async (ancestor, descendant) => new Set(walk([descendant], [])).has(ancestor),
      reachable: async (ids, tips) => {
        const found = reached(tips);
        return new Set(ids.filter((id) => found.has(id)));
      },
      uploadPack: () => {
        throw new Error('The twin serves no fetches');
      },
      close: () => {
        if (!closed) open -= 1;
        closed = true;
      },
    };
  }

  return {
    database: {
      receive: async () => ({ refused: 'pack-broken', detail: 'The twin takes no pushes' }),
      open: async () => reader(),
      drop: async () => {},
    },
    blob: (content) => {
      const bytes = Buffer.from(content);
      return put('blob', bytes, () => ({ type: 'blob', bytes, sizeBytes: bytes.length }));
    },
    hugeBlob: (sizeBytes) =>
      put('blob', Buffer.from(`huge ${sizeBytes}`), () => ({ type: 'blob', bytes: Buffer.alloc(0), sizeBytes })),
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
      const text = JSON.stringify([tree, parents, message, signature, seconds]);
      return put('commit', Buffer.from(text), (id) => ({
        type: 'commit',
        commit: { id, tree, parents, author: signature, committer: person, message },
        sizeBytes: text.length,
      }));
    },
    tag: (target, name) =>
      put('tag', Buffer.from(`${target} ${name}`), () => ({ type: 'tag', target, sizeBytes: 100 })),
    find: commitOf,
    typeOf: (id) => objects.get(id)?.type ?? null,
    peel,
    openReaders: () => open,
  };
}

/** Small, so that a file of some size comes in several pieces. */
const CHUNK_BYTES = 10_000;
