/**
 * What each client does against the server, and how each outcome is judged: the columns of the table.
 *
 * Invariants: no cell takes a client's word. After a push the server's refs are read with stock git, and their
 * objects fetched; after a clone or a fetch stock git checks the client's objects and refs. A refusal leaves the server
 * as it was, and says what its user needs to know.
 */
import { randomBytes } from 'node:crypto';
import { commitFile, git, tryGit } from '../support/strata.ts';
import type { DriverAnswer, DriverRequest } from './driver-protocol.ts';
import { judgeClone, judgeShallow, judgeStored, type Refs, refsOf } from './judging.ts';

/** What the operations of one client share: its own repository on the server, and its clones. */
export interface Scene {
  readonly url: string;
  /** The same with credentials, for stock git. */
  readonly judgeUrl: string;
  readonly unknownUrl: string;
  readonly username: string;
  readonly token: string;
  readonly readOnlyToken: string;
  /** A work tree of stock git, from which the repository was filled. */
  readonly source: string;
  /** A bare repository that follows the server's. */
  readonly mirror: string;
  readonly cloned: string;
  readonly shallow: string;
  /** A folder that no operation has used. */
  newFolder(): string;
  ask(request: DriverRequest): Promise<DriverAnswer>;
}

/** Which refusal is provoked; the client's words must tell its user about it. */
export type Refusal = 'wrong token' | 'read-only token' | 'unknown repository' | 'reserved ref';

export interface Operation {
  readonly name: string;
  /** What a client offers that does it, to be named where a client offers it not. */
  readonly needs: 'clone' | 'shallow' | 'unshallow' | 'fetch' | 'push' | 'push outside branches and tags';
  /** For an operation that the server must refuse. */
  readonly refusal?: Refusal;
  ask(scene: Scene): Promise<DriverAnswer>;
  /** Throws with the reason if the client or the server is not as it must be; `before` are the server's refs before. */
  judge(scene: Scene, before: Refs): Promise<void>;
}

const place = ({ url, username, token, cloned }: Scene) => ({ url, username, token, folder: cloned });

/** A large blob that does not compress: git sends such a push chunked, without a length. */
const LARGE_BLOB_BYTES = 3 * 1024 * 1024;

async function commitOn(scene: Scene, branch: string, content: string | Uint8Array): Promise<string> {
  const blob = (await git(scene.cloned, ['hash-object', '-w', '--stdin'], content)).trim();
  const tree = (await git(scene.cloned, ['mktree'], `100644 blob ${blob}\tmade-by-the-matrix\n`)).trim();
  const known = await tryGit(scene.cloned, ['rev-parse', '--verify', '--quiet', branch]);
  const parent = known.code === 0 ? known.stdout.trim() : (await git(scene.cloned, ['rev-parse', 'HEAD'])).trim();
  const commit = (await git(scene.cloned, ['commit-tree', tree, '-p', parent, '-m', 'A change'])).trim();
  await git(scene.cloned, ['update-ref', branch, commit]);
  return commit;
}

/** Enough that git names them in several rounds before one that the server has, in requests that it compresses. */
const OWN_COMMITS = 60;

/** Commits of the clone alone, newer than all that it shares with the server. */
async function addCommitsOfItsOwn(scene: Scene): Promise<void> {
  const head = (await git(scene.cloned, ['rev-parse', 'HEAD'])).trim();
  const first = Math.floor(Date.now() / 1_000);
  const commits = Array.from({ length: OWN_COMMITS }, (_, count) => {
    const from = count === 0 ? `from ${head}\n` : '';
    return `commit refs/heads/own\ncommitter Own <own@example.org> ${first + count} +0000\ndata 0\n${from}\n`;
  });
  await git(scene.cloned, ['fast-import', '--quiet'], commits.join(''));
}

function push(scene: Scene, refspec: string, token = scene.token): Promise<DriverAnswer> {
  return scene.ask({ ...place(scene), operation: 'push', token, refspec });
}

/** After a push the server must have what it had, and this change; null is a deletion. */
async function judgeChange(scene: Scene, before: Refs, name: string): Promise<void> {
  const local = (await refsOf(scene.cloned)).get(name);
  const expected = new Map(before);
  if (local === undefined) expected.delete(name);
  else expected.set(name, local);
  await judgeStored(scene, expected);
}

async function judgeUnchanged(scene: Scene, before: Refs): Promise<void> {
  await judgeStored(scene, before);
}

const [BRANCH, TAG] = ['refs/heads/mine', 'refs/tags/mine'];

const READING: readonly Operation[] = [
  {
    name: 'clone',
    needs: 'clone',
    ask: (scene) => scene.ask({ ...place(scene), operation: 'clone' }),
    judge: (scene) => judgeClone(scene, scene.cloned),
  },
  {
    name: 'shallow clone',
    needs: 'shallow',
    ask: (scene) => scene.ask({ ...place(scene), operation: 'clone', folder: scene.shallow, depth: 1 }),
    judge: (scene) => judgeShallow(scene, scene.shallow, 'shallow'),
  },
  {
    name: 'unshallow',
    needs: 'unshallow',
    ask: (scene) => scene.ask({ ...place(scene), operation: 'unshallow', folder: scene.shallow }),
    judge: (scene) => judgeShallow(scene, scene.shallow, 'whole'),
  },
  {
    name: 'fetch',
    needs: 'fetch',
    ask: async (scene) => {
      await commitFile(scene.source, 'later', `${randomBytes(8).toString('hex')}\n`);
      await git(scene.source, ['tag', '-a', 'v2', '-m', 'two']);
      await git(scene.source, ['push', '--quiet', scene.judgeUrl, 'main', 'main:refs/heads/later', 'v2']);
      await addCommitsOfItsOwn(scene);
      return scene.ask({ ...place(scene), operation: 'fetch' });
    },
    judge: (scene) => judgeClone(scene, scene.cloned),
  },
];

const PUSHING: readonly Operation[] = [
  {
    name: 'new branch',
    needs: 'push',
    ask: async (scene) => {
      await commitOn(scene, BRANCH, 'one\n');
      return push(scene, `${BRANCH}:${BRANCH}`);
    },
    judge: (scene, before) => judgeChange(scene, before, BRANCH),
  },
  {
    name: 'changed branch',
    needs: 'push',
    ask: async (scene) => {
      await commitOn(scene, BRANCH, randomBytes(LARGE_BLOB_BYTES));
      return push(scene, `${BRANCH}:${BRANCH}`);
    },
    judge: (scene, before) => judgeChange(scene, before, BRANCH),
  },
  {
    name: 'new tag',
    needs: 'push',
    ask: async (scene) => {
      await git(scene.cloned, ['tag', '-a', '-m', 'Mine', 'mine', BRANCH]);
      return push(scene, `${TAG}:${TAG}`);
    },
    judge: (scene, before) => judgeChange(scene, before, TAG),
  },
  {
    name: 'changed tag',
    needs: 'push',
    ask: async (scene) => {
      await git(scene.cloned, ['tag', '-f', '-a', '-m', 'Mine again', 'mine', `${BRANCH}~1`]);
      return push(scene, `+${TAG}:${TAG}`);
    },
    judge: (scene, before) => judgeChange(scene, before, TAG),
  },
];

const REFUSED: readonly Operation[] = [
  {
    name: 'wrong token',
    needs: 'clone',
    refusal: 'wrong token',
    ask: (scene) => {
      // It has the right form, so that the server has to look for it.
      const token = `${scene.token.slice(0, -8)}AAAAAAAA`;
      return scene.ask({ ...place(scene), operation: 'clone', folder: scene.newFolder(), token });
    },
    judge: judgeUnchanged,
  },
  {
    name: 'read-only token',
    needs: 'push',
    refusal: 'read-only token',
    ask: async (scene) => {
      await commitOn(scene, 'refs/heads/unwelcome', 'unwelcome\n');
      return push(scene, 'refs/heads/unwelcome:refs/heads/unwelcome', scene.readOnlyToken);
    },
    judge: judgeUnchanged,
  },
  {
    name: 'unknown repository',
    needs: 'clone',
    refusal: 'unknown repository',
    ask: (scene) => {
      const { unknownUrl: url } = scene;
      return scene.ask({ ...place(scene), operation: 'clone', folder: scene.newFolder(), url });
    },
    judge: judgeUnchanged,
  },
  {
    name: 'reserved ref',
    needs: 'push outside branches and tags',
    refusal: 'reserved ref',
    ask: (scene) => push(scene, `${BRANCH}:refs/strata/mine`),
    judge: judgeUnchanged,
  },
];

const DELETING: readonly Operation[] = [
  {
    name: 'deleted branch',
    needs: 'push',
    ask: async (scene) => {
      await git(scene.cloned, ['update-ref', '-d', BRANCH]);
      return push(scene, `:${BRANCH}`);
    },
    judge: (scene, before) => judgeChange(scene, before, BRANCH),
  },
  {
    name: 'deleted tag',
    needs: 'push',
    ask: async (scene) => {
      await git(scene.cloned, ['tag', '-d', 'mine']);
      return push(scene, `:${TAG}`);
    },
    judge: (scene, before) => judgeChange(scene, before, TAG),
  },
];

/** In the order in which they are done, each on what the ones before it left. */
export const OPERATIONS: readonly Operation[] = [...READING, ...PUSHING, ...REFUSED, ...DELETING];
