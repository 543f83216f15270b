/**
 * The files of this project as the architecture tests see them.
 *
 * Must stay true: what git would commit and nothing else, so that caches, data and editors' folders neither
 * hide a violation nor look like one; samples that must be refused are not part of it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The top folder of the project. */
export const ROOT = join(import.meta.dirname, '..', '..');

/** Sources the tools must refuse: test/architecture/tools.test.ts. */
const SAMPLES = 'test/architecture/samples/';

/** Text by path below the root, with `/`. Rules take one of these, so that a sample is a tree of one file. */
export type SourceTree = ReadonlyMap<string, string>;

/** A tree for a sample. */
export function treeOf(files: { readonly [path: string]: string }): SourceTree {
  return new Map(Object.entries(files));
}

/** Every file git tracks or would add, binary ones read as text all the same. Throws outside a git checkout. */
export function projectTree(): SourceTree {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', '-z'];
  const listed = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const paths = listed.split('\0').filter((path) => path !== '' && !path.startsWith(SAMPLES));
  // A file deleted and not yet committed is still listed.
  const present = paths.filter((path) => existsSync(join(ROOT, path))).sort();
  return new Map(present.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
}

/** The part of a tree that holds code. */
export function modulesOf(tree: SourceTree): SourceTree {
  return new Map([...tree].filter(([path]) => /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx)$/.test(path)));
}
