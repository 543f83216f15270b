/**
 * Repositories of the real git for tests of what Strata does with objects: fixed dates and identities, so that
 * equal steps make equal ids, and nothing of the machine's configuration.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';

export interface RunGit {
  readonly cwd?: string;
  readonly input?: string | Uint8Array;
  readonly env?: { readonly [name: string]: string };
}

const IDENTITY = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
};

/** Runs git and answers its standard output; throws with its standard error when it fails. */
export function runGit(args: readonly string[], options: RunGit = {}): Buffer {
  return execFileSync('git', [...args], {
    cwd: options.cwd ?? tmpdir(),
    input: options.input ?? '',
    env: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      HOME: '/nonexistent',
      LC_ALL: 'C',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      ...IDENTITY,
      ...options.env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 1024 * 1024 * 1024,
  });
}

/** A file's text, or null to remove it. */
export type Files = { readonly [path: string]: string | Uint8Array | null };

export interface CommitOptions {
  readonly message?: string;
  readonly branch?: string;
  readonly parents?: readonly ObjectId[];
  /** Seconds since the epoch; by default a minute after the last commit of this repository. */
  readonly seconds?: number;
}

export interface TestRepository {
  readonly path: string;
  git(args: readonly string[], options?: Omit<RunGit, 'cwd'>): Buffer;
  /** The one line that git answers. */
  line(args: readonly string[], options?: Omit<RunGit, 'cwd'>): string;
  /** Commits the branch's files with these changes, on top of it unless parents are given. */
  commit(files: Files, options?: CommitOptions): ObjectId;
  /** Writes an object as it is, unchecked. */
  object(type: 'blob' | 'tree' | 'commit' | 'tag', bytes: string | Uint8Array): ObjectId;
  /** A tree of these entries, in the order given, unchecked. */
  tree(entries: readonly { readonly mode: string; readonly name: string; readonly id: ObjectId }[]): ObjectId;
  /** A pack of what the revisions reach; `^` excludes. A thin one has deltas on what is excluded. */
  pack(revisions: readonly string[], options?: { readonly thin?: boolean }): Buffer;
  /** A pack of exactly these objects. */
  packOf(ids: readonly ObjectId[]): Buffer;
}

const FIRST_COMMIT_SECONDS = 1_700_000_000;

/** A repository in a folder of its own, on branch `main`. */
export function testRepository(path: string): TestRepository {
  mkdirSync(path, { recursive: true });
  runGit(['init', '-q', '-b', 'main', path]);
  let seconds = FIRST_COMMIT_SECONDS;
  const git: TestRepository['git'] = (args, options = {}) => runGit(args, { ...options, cwd: path });
  const line: TestRepository['line'] = (args, options) => git(args, options).toString().trim();
  const object: TestRepository['object'] = (type, bytes) =>
    objectId(line(['hash-object', '-t', type, '-w', '--stdin', '--literally'], { input: bytes }));
  return {
    path,
    git,
    line,
    object,
    commit: (files, options = {}) => {
      seconds = options.seconds ?? seconds + 60;
      const branch = options.branch ?? 'main';
      const before = line(['for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`]);
      const parents = options.parents ?? (before === '' ? [] : [objectId(before)]);
      git(parents[0] === undefined ? ['read-tree', '--empty'] : ['read-tree', parents[0]]);
      for (const [name, content] of Object.entries(files)) {
        if (content === null) {
          git(['update-index', '--force-remove', '--', name]);
          continue;
        }
        const file = join(path, name);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, content);
        git(['update-index', '--add', '--', name]);
      }
      const tree = line(['write-tree']);
      const date = `${seconds} +0000`;
      const id = line(['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])], {
        input: options.message ?? `Commit at ${seconds}`,
        env: { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date },
      });
      git(['update-ref', `refs/heads/${branch}`, id]);
      return objectId(id);
    },
    tree: (entries) =>
      object(
        'tree',
        Buffer.concat(
          entries.map(({ mode, name, id }) =>
            Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
          ),
        ),
      ),
    pack: (revisions, options = {}) => {
      const all = revisions.filter((revision) => revision.startsWith('--'));
      const input = revisions.filter((revision) => !revision.startsWith('--')).map((revision) => `${revision}\n`);
      const thin = options.thin ? ['--thin'] : [];
      return git(['pack-objects', '--revs', '--stdout', '-q', '--delta-base-offset', ...thin, ...all], {
        input: input.join(''),
      });
    },
    packOf: (ids) => git(['pack-objects', '--stdout', '-q'], { input: `${ids.join('\n')}\n` }),
  };
}

/** A new folder under the system's temporary one. */
export function temporaryFolder(name: string): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `strata-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }) };
}
