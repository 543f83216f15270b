/**
 * Names that are stored or sent, byte for byte: test/golden/names holds them by where they go, one name a line.
 *
 * A name that is missing was changed or removed: put it back, since streams, rows, histories, dashboards and clients
 * hold it. A name that is new gets its line, by hand, in the commit that adds it. If only the code that carries a name
 * changed its shape, change `stored-names.ts`, and no line.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { ROOT, treeOf } from './source-tree.ts';
import { createValues } from './source-values.ts';
import { storedNames } from './stored-names.ts';
import { child, children, nameOf, sourcesOf } from './syntax.ts';

const GOLDEN = join(ROOT, 'test', 'golden', 'names');
const names = await storedNames();

test('each place that names go to has a file, and no other file is there', () => {
  assert.deepEqual(
    readdirSync(GOLDEN).sort(),
    Object.keys(names)
      .map((place) => `${place}.txt`)
      .sort(),
  );
});

describe('no name changes that is stored or sent:', () => {
  for (const [place, found] of Object.entries(names)) {
    test(place, () => {
      const golden = readFileSync(join(GOLDEN, `${place}.txt`), 'utf8');
      const known = new Set(golden.split('\n').slice(0, -1));
      const changes = [
        ...[...known].filter((name) => !found.includes(name)).map((name) => `- ${name}`),
        ...found.filter((name) => !known.has(name)).map((name) => `+ ${name}`),
      ];
      assert.deepEqual(changes, [], `test/golden/names/${place}.txt`);
      assert.equal(golden, found.map((name) => `${name}\n`).join(''));
    });
  }
});

/** Returns what the first argument of the calls of `store` can be. */
function stored(files: { readonly [path: string]: string }): readonly string[] {
  const sources = sourcesOf(treeOf(files));
  const values = createValues(sources);
  return sources.nodes(/store\(/, 'CallExpression').flatMap(({ module, node }) => {
    const [argument] = nameOf(child(node, 'callee')) === 'store' ? children(node, 'arguments') : [];
    return argument === undefined ? [] : values.of({ module, node: argument });
  });
}

describe('the reader of the source', () => {
  test('follows a constant, an import and the callers of a function', () => {
    const names = "export const NAME = 'sweep';";
    const by =
      "import { NAME } from './names.ts';\nfunction keep(name: string) { store(`a.${name}`); }\nkeep(NAME);\nkeep('b');";
    assert.deepEqual(stored({ 'core/names.ts': names, 'core/by.ts': by }), ['a.b', 'a.sweep']);
  });

  test('follows the rows of a table', () => {
    assert.deepEqual(
      stored({ 'apps/a.ts': "const T = [{ name: 'x' }, { name: 'y' }];\nfor (const row of T) store(row.name);" }),
      ['x', 'y'],
    );
    assert.deepEqual(stored({ 'apps/a.ts': "[{ name: 'x' }].map(({ name }) => store(name));" }), ['x']);
  });

  test('leaves open what is known only at run time', () => {
    assert.deepEqual(stored({ 'core/a.ts': 'store(`a/${Math.random()}`);\nstore(read());' }), ['a/{}', '{}']);
  });
});
