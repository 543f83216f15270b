/**
 * Reads of one repository under a lease.
 *
 * Must stay true: nothing is asked of git but full object ids; a reader that is closed holds nothing open; bytes of
 * large blobs are never in memory whole.
 */
import { LRUCache } from 'lru-cache';
import { type ObjectId, objectId, parseObjectId, type RepositoryId } from '../../core/kernel/ids.ts';
import type { ObjectReader, UploadPackOptions, WalkOptions } from '../../core/ports/object-database.ts';
import { type CatFile, createCatFile } from './cat-file.ts';
import type { ConfigPairs } from './git-environment.ts';
import type { Lease } from './layer-cache.ts';
import { parseCommit, parseTree } from './parse-object.ts';
import type { GitProcesses } from './processes.ts';
import { findTip, isAncestorOf } from './questions.ts';
import type { Views } from './views.ts';

const QUESTION_WALL_MS_MAX = 120_000;
/** The longest a fetch may take, slow clients included. */
const UPLOAD_WALL_MS_MAX = 4 * 60 * 60_000;

const UPLOAD_PACK: ConfigPairs = [
  ['uploadpack.allowAnySHA1InWant', 'true'],
  ['uploadpack.allowFilter', 'true'],
  ['uploadpackfilter.allow', 'false'],
  ['uploadpackfilter.blob:none.allow', 'true'],
  ['uploadpackfilter.blob:limit.allow', 'true'],
  ['uploadpackfilter.tree.allow', 'true'],
  ['uploadpackfilter.tree.maxDepth', '16'],
];

/** Sets of reachable ids, by repository and tips; shared by all readers. */
export type ReachableSets = LRUCache<string, Promise<ReadonlySet<string>>>;

/** Ids held in all sets together, at most: 40 bytes each and what a set needs. */
const REACHABLE_IDS_MAX = 2_000_000;

export function createReachableSets(): ReachableSets {
  return new LRUCache({ max: 16 });
}

export interface ReaderParts {
  readonly processes: GitProcesses;
  readonly views: Views;
  readonly reachableSets: ReachableSets;
}

export function createReader(parts: ReaderParts, repository: RepositoryId, lease: Lease): ObjectReader {
  const { processes, views, reachableSets } = parts;
  const env = { GIT_DIR: lease.gitDir };
  const question = { cwd: lease.gitDir, env, key: repository, wallMsMax: QUESTION_WALL_MS_MAX };
  let opened: CatFile | null = null;
  const objects = (): CatFile => {
    const args = ['cat-file', '--batch-command'];
    opened ??= createCatFile(() =>
      processes.start({ ...question, wallMsMax: UPLOAD_WALL_MS_MAX, args, stdin: 'stream', stdout: 'stream' }),
    );
    return opened;
  };

  const commit: ObjectReader['commit'] = async (id) => {
    const found = await objects().read(id);
    return found === null || found.type !== 'commit' ? null : parseCommit(id, found.bytes);
  };

  async function* walk({ include, exclude, skip, limit }: WalkOptions): AsyncGenerator<ObjectId, void, undefined> {
    const args = ['rev-list', '--stdin'];
    if (skip !== undefined) args.push(`--skip=${skip}`);
    if (limit !== undefined) args.push(`--max-count=${limit}`);
    const input = [...include, ...exclude.map((id) => `^${id}`)].map((line) => `${line}\n`).join('');
    for await (const line of lines(processes.stream({ ...question, args }, input))) yield objectId(line);
  }

  /** Every object the tips reach; made once for each state of the refs. */
  async function reachableFrom(tips: readonly ObjectId[]): Promise<ReadonlySet<string>> {
    const args = ['rev-list', '--objects', '--no-object-names', '--stdin'];
    const reached = new Set<string>();
    for await (const line of lines(processes.stream({ ...question, args }, tips.map((id) => `${id}\n`).join('')))) {
      if (parseObjectId(line) !== null) reached.add(line);
    }
    return reached;
  }

  return {
    lookup: (ids) => Promise.all(ids.map((id) => objects().info(id))),
    tips: (ids) => Promise.all(ids.map((id) => findTip(objects(), id))),
    commit,
    commits: (ids) => Promise.all(ids.map(commit)),
    async tree(id) {
      const found = await objects().read(id);
      return found === null || found.type !== 'tree' ? null : parseTree(found.bytes);
    },
    async *blob(id, range) {
      let at = 0;
      for await (const chunk of processes.stream({ ...question, args: ['cat-file', 'blob', id] }, '')) {
        const from = Math.max(0, (range?.start ?? 0) - at);
        const to = Math.min(chunk.length, (range?.end ?? Number.POSITIVE_INFINITY) - at);
        at += chunk.length;
        if (to > from) yield chunk.subarray(from, to);
        if (range !== undefined && at >= range.end) return;
      }
    },
    walk,
    isAncestor: (ancestor, descendant) => isAncestorOf(processes, question, ancestor, descendant),
    async reachable(ids, tips, tipsKey) {
      const key = `${repository} ${tipsKey}`;
      let set = reachableSets.get(key);
      if (set === undefined) {
        set = reachableFrom(tips);
        reachableSets.set(key, set);
        set.then(
          (reached) => {
            if (reached.size > REACHABLE_IDS_MAX) reachableSets.delete(key);
          },
          () => reachableSets.delete(key),
        );
      }
      const reached = await set;
      return new Set(ids.filter((id) => reached.has(id)));
    },
    async *uploadPack({ view, protocol, request, signal }: UploadPackOptions) {
      const folder = await views.folder(repository, lease.gitDir, view);
      const protocolEnv = protocol === 0 ? {} : { GIT_PROTOCOL: `version=${protocol}` };
      yield* processes.stream(
        {
          args: ['upload-pack', '--stateless-rpc', '--strict', folder],
          cwd: folder,
          env: protocolEnv,
          config: UPLOAD_PACK,
          key: repository,
          wallMsMax: UPLOAD_WALL_MS_MAX,
          signal,
        },
        request,
      );
    },
    close() {
      opened?.close();
      lease.release();
    },
  };
}

/** Whole lines of a stream of ASCII, without their line feeds. */
async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let rest = '';
  for await (const chunk of chunks) {
    const parts = (rest + Buffer.from(chunk).toString('latin1')).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
  if (rest !== '') yield rest;
}
