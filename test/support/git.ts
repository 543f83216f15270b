/**
 * Repositories made by the real git, for tests of how Strata treats objects. Dates and identities are fixed, so that
 * equal steps make equal ids; the machine's git configuration is not used.
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

/** Runs git and returns its standard output; throws with its standard error when git fails. */
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

/** New contents by path; null removes the file. */
export type Files = { readonly [path: string]: string | Uint8Array | null };

export interface CommitOptions {
  readonly message?: string;
  readonly branch?: string;
  readonly parents?: readonly ObjectId[];
  /** Seconds since the epoch; by default a minute after the previous commit of this repository. */
  readonly seconds?: number;
}

export interface TestRepository {
  readonly path: string;
  git(args: readonly string[], options?: Omit<RunGit, 'cwd'>): Buffer;
  /** Runs git and returns its output as one trimmed line. */
  line(args: readonly string[], options?: Omit<RunGit, 'cwd'>): string;
  /** Commits the branch's files with these changes, on top of the branch unless `parents` are passed. */
  commit(files: Files, options?: CommitOptions): ObjectId;
  /** Writes an object without git's checks. */
  object(type: 'blob' | 'tree' | 'commit' | 'tag', bytes: string | Uint8Array): ObjectId;
  /** Writes a tree with its entries in the order passed, without git's checks. */
  tree(entries: readonly { readonly mode: string; readonly name: string; readonly id: ObjectId }[]): ObjectId;
  /** Packs the objects reachable from the revisions; `^` excludes. A thin pack has deltas against excluded objects. */
  pack(revisions: readonly string[], options?: { readonly thin?: boolean }): Buffer;
  /** Packs exactly these objects. */
  packOf(ids: readonly ObjectId[]): Buffer;
}

const FIRST_COMMIT_SECONDS = 1_700_000_000;

/** A repository in this folder, on branch `main`. */
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

/** A new folder below the system's temporary folder; `remove` deletes it. */
export function temporaryFolder(name: string): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `strata-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }) };
}
