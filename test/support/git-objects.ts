/** Git objects for tests of the read models: a real repository behind the reading half of the object database port. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import type { Commit, ObjectInfo, ObjectType, Signature } from '../../core/git/objects.ts';
import { type ObjectId, objectId, type RepositoryId } from '../../core/kernel/ids.ts';
import type { CommittedObjects, ObjectReader } from '../../core/ports/object-database.ts';
import { git } from './git-process.ts';
import { NO_HISTORY, NO_SEARCH } from './no-history.ts';

export interface GitObjects {
  /** A test may replace it. */
  open: (objects: CommittedObjects) => Promise<ObjectReader>;
  /** The path of the bare repository that holds the objects of all layers of this repository. */
  readonly pathOf: (repository: RepositoryId) => string;
  /** Called before each `open`; `open` rejects with what it throws. */
  onOpen: (objects: CommittedObjects) => void;
  /** The number of readers opened and not yet closed. */
  readonly leases: () => number;
  readonly walks: () => number;
}

export function gitObjects(folder: string): GitObjects {
  let leases = 0;
  let walks = 0;
  const pathOf = (repository: RepositoryId): string => path.join(folder, `${repository}.git`);
  const objects: GitObjects = {
    pathOf,
    onOpen: () => undefined,
    leases: () => leases,
    walks: () => walks,
    open: async (committed) => {
      objects.onOpen(committed);
      leases += 1;
      const cwd = pathOf(committed.repository);
      const unused = (): never => {
        throw new Error('The read models do not use this');
      };
      return {
        lookup: (ids) => lookup(cwd, ids),
        commits: (ids) => commits(cwd, ids),
        commit: async (id) => (await commits(cwd, [id]))[0] ?? null,
        async *walk({ include, exclude, skip, limit }) {
          walks += 1;
          const bounds = [
            ...(skip === undefined ? [] : [`--skip=${skip}`]),
            ...(limit === undefined ? [] : [`-n${limit}`]),
          ];
          const input = [...include, ...exclude.map((id) => `^${id}`)].join('\n');
          const output = (await run(cwd, ['rev-list', ...bounds, '--stdin'], `${input}\n`)).toString();
          for (const line of output.split('\n')) if (line !== '') yield objectId(line);
        },
        ...{
          startingWith: unused,
          tips: unused,
          commitSeconds: unused,
          commitText: unused,
          history: NO_HISTORY,
          search: NO_SEARCH,
          tag: unused,
          tree: unused,
          entry: unused,
          blob: unused,
          count: unused,
          isAncestor: unused,
          reachable: unused,
          uploadPack: unused,
          archiveReadsRefs: unused,
          archive: unused,
        },
        close: () => {
          leases -= 1;
        },
      };
    },
  };
  return objects;
}

/** A new bare repository. */
export function initBare(folder: string): string {
  git(['init', '--bare', '--quiet', '-b', 'main', folder]);
  return folder;
}

function run(cwd: string, args: readonly string[], input: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', GIT_CONFIG_NOSYSTEM: '1', HOME: '/nonexistent' };
    const options = { cwd, env, encoding: 'buffer', maxBuffer: 512 * 1024 * 1024 } as const;
    const child = execFile('git', [...args], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`git ${args[0]}: ${stderr.toString()}`, { cause: error }));
    });
    child.stdin?.end(input);
  });
}

async function lookup(cwd: string, ids: readonly ObjectId[]): Promise<readonly (ObjectInfo | null)[]> {
  if (ids.length === 0) return [];
  const output = (await run(cwd, ['cat-file', '--batch-check'], `${ids.join('\n')}\n`)).toString();
  return output
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [id = '', type = '', size = ''] = line.split(' ');
      return type === 'missing' ? null : { id: objectId(id), type: type as ObjectType, sizeBytes: Number(size) };
    });
}

async function commits(cwd: string, ids: readonly ObjectId[]): Promise<readonly (Commit | null)[]> {
  if (ids.length === 0) return [];
  const output = await run(cwd, ['cat-file', '--batch'], `${ids.join('\n')}\n`);
  let at = 0;
  return ids.map((id) => {
    const lineEnd = output.indexOf(10, at);
    const [, type, size] = output.toString('utf8', at, lineEnd).split(' ');
    at = lineEnd + 1;
    if (type === 'missing') return null;
    const body = output.subarray(at, at + Number(size));
    at += Number(size) + 1;
    return type === 'commit' ? parseCommit(id, body.toString('utf8')) : null;
  });
}

function parseCommit(id: ObjectId, text: string): Commit {
  const headEnd = text.indexOf('\n\n');
  const headers = text.slice(0, headEnd).split('\n');
  const values = (name: string): string[] =>
    headers.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
  return {
    id,
    tree: objectId(values('tree')[0] ?? ''),
    parents: values('parent').map(objectId),
    author: signature(values('author')[0] ?? ''),
    committer: signature(values('committer')[0] ?? ''),
    message: text.slice(headEnd + 2),
  };
}

function signature(line: string): Signature {
  const [, name = '', email = '', seconds = '0'] = /^(.*?) ?<(.*)> (\d+)/.exec(line) ?? [];
  return { name, email, seconds: Number(seconds), offsetMinutes: 0 };
}
