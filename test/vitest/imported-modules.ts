/** Computes which modules of the project a test file imports, directly or through others. */
import { importedModules } from '../architecture/dependency-rule.ts';
import { projectTree } from '../architecture/source-tree.ts';

/** Returns the modules of the project that a module imports directly. */
export type ImportsOf = (path: string) => readonly string[];

/** Reads each module once, however many test files import it. */
export function readImports(): ImportsOf {
  const tree = projectTree();
  const known = new Map<string, readonly string[]>();
  return (path) => {
    const imports = known.get(path) ?? importedModules(tree, path);
    known.set(path, imports);
    return imports;
  };
}

/** Returns whether a module imports another, directly or through others. */
export function reaches(importsOf: ImportsOf, from: string, target: string, seen = new Set<string>()): boolean {
  if (from === target) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return importsOf(from).some((next) => reaches(importsOf, next, target, seen));
}
