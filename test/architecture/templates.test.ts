/**
 * Which files may make markup without escaping (apps/website/layout/html.ts). A file enters a list below after a
 * review of what it lets through.
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { modulesOf, projectTree, type SourceTree, treeOf } from './source-tree.ts';

/** The file that stands around the library of templates, and those that declare a library's markup trusted. */
const TEMPLATES = 'apps/website/layout/html.ts';
const TRUSTING: readonly string[] = [TEMPLATES];

function unescaped(tree: SourceTree): string[] {
  return [...modulesOf(tree)].flatMap(([path, text]) => {
    if (path.startsWith('test/')) return [];
    const usesLibrary = /['"]ghtml(\/[^'"]*)?['"]/.test(text) && path !== TEMPLATES;
    const trusts = /\btrustedHtml\b/.test(text) && !TRUSTING.includes(path);
    return [usesLibrary ? [`${path} uses ghtml itself`] : [], trusts ? [`${path} trusts markup`] : []].flat();
  });
}

test('only the listed files make markup without escaping', () => {
  assert.deepEqual(unescaped(projectTree()), []);
});

test('refuses a file that uses the library of templates itself, or that trusts markup without a review', () => {
  const library = `import { html } from 'ghtml';`;
  const trust = `import { trustedHtml } from '../layout/html.ts';`;
  assert.deepEqual(unescaped(treeOf({ 'apps/website/a/b.ts': library })), ['apps/website/a/b.ts uses ghtml itself']);
  assert.deepEqual(unescaped(treeOf({ 'apps/website/a/b.ts': trust })), ['apps/website/a/b.ts trusts markup']);
});
