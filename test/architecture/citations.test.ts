/** The citation rule, with citations that it must refuse and citations that it must accept. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { citationFaults } from './citations.ts';
import { projectTree, treeOf } from './source-tree.ts';

const DOCUMENTS = {
  'docs/architecture.md': '# Architecture\n\n## Invariants\n\n1. One.\n2. Two.\n\n## Streams\n',
  'docs/git-path.md':
    '# The Git path\n\n### Wants\n\nSee [the log](event-log.md), and [above](architecture.md#streams).\n',
  'docs/event-log.md': '# The event log\n',
};

function faults(comment: string, path = 'core/a.ts'): string[] {
  return citationFaults(treeOf({ ...DOCUMENTS, [path]: comment }));
}

test('every citation in the project leads to a section of a document that is in the repository', () => {
  assert.deepEqual(citationFaults(projectTree()), []);
});

describe('refuses', () => {
  const samples: readonly [string, string][] = [
    ['a document that does not exist', '/** As docs/pushing.md has it. */'],
    ['a section that its document does not have', '/** Authorised first (docs/git-path.md, Haves). */'],
    ['a section that the citation breaks over two lines', '/**\n * Authorised (docs/git-path.md,\n * Haves).\n */'],
    ['a document by its name without its folder', '// As git-path.md asks.'],
    ['a document by its subject', '/** Authorised first (git-path, Wants). */'],
    ['a design document', '/** See design/event-log.md. */'],
    ['an invariant that does not exist', '/** docs/architecture.md, invariant 3 */'],
    ['an invariant without its document', '/** By invariant 2. */'],
  ];
  for (const [name, comment] of samples) test(name, () => assert.notDeepEqual(faults(comment), []));

  test('a file that a document names and that is not in the repository', () => {
    const tree = treeOf({ 'docs/a.md': 'See `core/runtime/{execute,gone}.ts`.', 'core/runtime/execute.ts': '' });
    assert.deepEqual(citationFaults(tree), ['docs/a.md: core/runtime/gone.ts is not in the repository']);
  });

  test('a link between documents that leads nowhere', () => {
    assert.equal(faults('[there](nowhere.md)', 'docs/operating.md').length, 1);
  });
});

describe('accepts', () => {
  const samples: readonly [string, string][] = [
    ['a document', '/** As docs/git-path.md has it. */'],
    ['a section of one', '/** Authorised first (docs/git-path.md, Wants). */'],
    ['a section that the citation breaks over two lines', '/**\n * Authorised (docs/git-path.md,\n * Wants).\n */'],
    ['an invariant', '/** docs/architecture.md, invariant 2 */'],
    ['invariants', '/** Invariants (docs/architecture.md, invariants 1 and 2): … */'],
    ['a public standard', '/** RFC 6962, section 2.1; gitprotocol-pack(5) */'],
  ];
  for (const [name, comment] of samples) test(name, () => assert.deepEqual(faults(comment), []));
});
