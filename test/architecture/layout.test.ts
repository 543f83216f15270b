/** The top level's content, file names, and the absence of barrels (docs/architecture.md, Shape; CONTRIBUTING.md). */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readModule } from './imports.ts';
import { modulesOf, projectTree, type SourceTree, treeOf } from './source-tree.ts';

const FOLDERS = ['core', 'adapters', 'projections', 'workflows', 'apps', 'test', 'deploy', 'docs'];
const DOCUMENTS = ['README.md', 'LICENSE', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];
const FILES = [...DOCUMENTS, 'package.json', 'package-lock.json', 'tsconfig.json'];
/** Dotfiles are listed by name, so that the leftovers of a tool are refused. */
const DOTFILES = '.ci .github .gitignore .gitattributes .dockerignore .editorconfig .npmrc'.split(' ');
const TOOL_SETTINGS = ['.biome.json', '.knip.jsonc', '.oxlintrc.json'];

function strangersAtTheTop(tree: SourceTree): string[] {
  const known = new Set([...FILES, ...DOTFILES, ...TOOL_SETTINGS, ...FOLDERS.map((name) => `${name}/`)]);
  const top = [...tree.keys()].map((path) => path.replace(/\/.*/, '/'));
  return [...new Set(top)].filter((name) => !known.has(name) && !known.has(name.replace(/^(\..*)\/$/, '$1')));
}

/**
 * File names that do not say what is inside. A `helper`, in the singular, is a process: docs/git-path.md, Every git
 * process.
 */
function vagueNames(tree: SourceTree): string[] {
  return [...tree.keys()].filter((path) => /(^|[/._-])(utils?|helpers)([/._-]|$)/i.test(path));
}

/** A package's edge: only its index may re-export other modules. */
const EDGE = /^(adapters|projections|workflows)\/[^/]+\/index\.ts$/;

function barrels(tree: SourceTree): string[] {
  return [...modulesOf(tree)].flatMap(([path, text]) => {
    if (EDGE.test(path)) return [];
    const { onlyReExports, starExports } = readModule(text);
    return onlyReExports || starExports.length > 0 ? [path] : [];
  });
}

test('the top level holds only the listed files and folders', () => {
  assert.deepEqual(strangersAtTheTop(projectTree()), []);
});

test('refuses an unknown folder, file or dotfile at the top level', () => {
  for (const path of ['lib/a.ts', 'notes.md', '.eslintrc.json', '.idea/workspace.xml', 'core', 'tests/a.test.ts']) {
    assert.equal(strangersAtTheTop(treeOf({ [path]: '' })).length, 1, path);
  }
  assert.deepEqual(strangersAtTheTop(treeOf({ '.ci/run': '', 'docs/operating.md': '', 'deploy/Dockerfile': '' })), []);
});

test('no file or folder is called utils or helpers', () => {
  assert.deepEqual(vagueNames(projectTree()), []);
});

test('refuses files and folders called utils or helpers', () => {
  for (const path of ['core/utils.ts', 'test/helpers/a.ts', 'core/git/pack-utils.ts', 'apps/api/test.util.ts']) {
    assert.deepEqual(vagueNames(treeOf({ [path]: '' })), [path]);
  }
  assert.deepEqual(vagueNames(treeOf({ 'core/utility-bill.ts': '' })), []);
});

test('no module is a barrel', () => {
  assert.deepEqual(barrels(projectTree()), []);
});

test("refuses a barrel anywhere but at a package's edge", () => {
  for (const text of [`export * from './a.ts';\nconst b = 1;`, `import { a } from './a.ts';\nexport { a };`]) {
    assert.deepEqual(barrels(treeOf({ 'core/account/index.ts': text })), ['core/account/index.ts']);
    assert.deepEqual(barrels(treeOf({ 'adapters/git/index.ts': text })), []);
  }
});
