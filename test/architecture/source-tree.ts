/**
 * The files of this project that the architecture tests read.
 *
 * Invariants: the tree holds exactly the files that git would commit, so that caches, data and editors' folders
 * neither hide a violation nor look like one. Samples that the tools must refuse are not part of it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The top folder of the project. */
export const ROOT = join(import.meta.dirname, '..', '..');

/** Sources that the tools must refuse: test/architecture/tools.test.ts. */
const SAMPLES = 'test/architecture/samples/';

/**
 * The text of each file by its path below the root, with `/`. Rules take a tree, so that a sample is a tree of one
 * file.
 */
export type SourceTree = ReadonlyMap<string, string>;

/** Returns a tree for a sample. */
export function treeOf(files: { readonly [path: string]: string }): SourceTree {
  return new Map(Object.entries(files));
}

/** Returns every file that git tracks or would add, all read as text. Throws outside a git checkout. */
export function projectTree(): SourceTree {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', '-z'];
  const listed = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const paths = listed.split('\0').filter((path) => path !== '' && !path.startsWith(SAMPLES));
  // Git still lists a deleted file whose deletion is not committed.
  const present = paths.filter((path) => existsSync(join(ROOT, path))).sort();
  return new Map(present.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
}

/** Returns the code files of a tree. */
export function modulesOf(tree: SourceTree): SourceTree {
  return new Map([...tree].filter(([path]) => /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx)$/.test(path)));
}
