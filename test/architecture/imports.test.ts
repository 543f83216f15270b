/** The reader of imports, which the dependency rule relies on: an import that it misses is not checked. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readModule } from './imports.ts';
import { modulesOf, projectTree } from './source-tree.ts';

function specifiers(source: string): (string | null)[] {
  return readModule(source).imports.map(({ specifier }) => specifier);
}

describe('finds a module named by', () => {
  const forms: readonly [string, string][] = [
    ['a default import', `import a from 'x';`],
    ['named imports over lines', `import {\n  a,\n  b as c,\n} from "x"`],
    ['a type import', `import type { A } from 'x'; import { type B } from 'x'`],
    ['a namespace import', `import * as a from 'x'`],
    ['a default and named import', `import a, { b } from 'x'`],
    ['an import for its effect', `import 'x';`],
    ['an import with attributes', `import a from 'x' with { type: 'json' };`],
    ['a re-export', `export { a } from 'x'; export type { B } from 'x';`],
    ['a star export', `export * from 'x'; export * as y from 'x';`],
    ['a dynamic import', `const a = await import('x');`],
    ['an import type', `type A = import('x').A;`],
    ['require', `const a = require('x');`],
    ['import.meta.resolve', `const a = import.meta.resolve('x');`],
    ['a URL beside this module', `new Worker(new URL('x', import.meta.url))`],
    ['code inside a template', 'const a = `b ${await import("x")} c`;'],
    ['code after a regular expression with a quote', `const a = /['"\`]/.test(b); import('x')`],
    ['code after a division', `const a = b / c; const d = e / f; import('x')`],
    ['code after a comment with a quote', `// don't\n/* it's */ import('x')`],
    ['code after a shebang', `#!/usr/bin/env node\nimport a from 'x'`],
    ['code after a string that holds a comment', `const a = 'http://y'; import('x')`],
    ['code after a template with braces', 'const a = `{ ${b({ c: 1 })} }`; import("x")'],
  ];
  for (const [name, source] of forms) {
    test(name, () => {
      const found = specifiers(source);
      assert.notEqual(found.length, 0);
      assert.deepEqual([...new Set(found)], ['x']);
    });
  }
});

test('reports a computed specifier as unknown', () => {
  assert.deepEqual(specifiers('await import(name); require(`a${b}`); import(`../${c}/d.ts`);'), [null, null, null]);
  assert.deepEqual(specifiers('import.meta.resolve(name)'), [], 'not loaded, only looked for');
});

test('ignores comments, strings, members and keys', () => {
  const source = [`// import 'a'`, `/* import 'b' */`, `const c = "import 'c'";`, 'const d = `import "d"`;'];
  source.push(`e.import('e');`, `const f = { import: 'f', require: 'f' };`, `const g = /import 'g'/;`);
  assert.deepEqual(specifiers(source.join('\n')), []);
});

test('tells a module of re-exports only from one that declares something', () => {
  assert.equal(readModule(`import { a } from 'x';\nexport { a };\nexport * from 'y';`).onlyReExports, true);
  assert.equal(readModule(`export { a } from 'x';\nexport const b = 1;`).onlyReExports, false);
  assert.equal(readModule(`import 'x';`).onlyReExports, false);
});

test('throws for a source that it cannot read', () => {
  assert.throws(() => readModule(`const a = 'b\nimport 'c'`), SyntaxError);
  assert.throws(() => readModule('const a = `b'), SyntaxError);
});

test('reads every module of the project', () => {
  for (const [path, text] of modulesOf(projectTree())) assert.doesNotThrow(() => readModule(text), path);
});
