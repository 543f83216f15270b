/** Coloured code, line by line, and the language of a file's name. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import hljs from 'highlight.js';
import { describe, test } from 'vitest';
import { codeLines, highlightedLines } from '../../../../apps/website/rendering/code.ts';
import { languageOf } from '../../../../apps/website/rendering/language.ts';

describe('Coloured code', () => {
  test('has one balanced markup for each line, also inside what spans lines', () => {
    const lines = highlightedLines('/* one\ntwo */ const x = `a${1}\nb`;\n', 'javascript');
    assert.equal(lines.length, 4);
    assert.equal(lines[0], '<span class=com>/* one</span>');
    for (const line of lines) {
      assert.equal(line.match(/<span/g)?.length ?? 0, line.match(/<\/span>/g)?.length ?? 0, line);
    }
  });

  test('reads as the text itself', () => {
    const text = readFileSync(new URL(import.meta.url), 'utf8');
    const read = highlightedLines(text, 'typescript').map((line) =>
      line
        .replaceAll(/<[^>]*>/g, '')
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
        .replaceAll('&quot;', '"')
        .replaceAll('&#x27;', "'")
        .replaceAll('&amp;', '&'),
    );
    assert.equal(read.join('\n'), text);
  });

  test('shows hostile code as text', () => {
    for (const language of ['javascript', 'xml', 'markdown', 'php', 'css', 'diff', 'json']) {
      const text =
        '<script>alert(1)</script>\n"><img src=x onerror=alert(1)>\n</span></td></table>\n<span class="hljs-x" onclick=1>';
      const markup = highlightedLines(text, language).join('\n');
      assert.doesNotMatch(markup.replaceAll(/<span class=\w+>|<\/span>/g, ''), /[<>]/, language);
    }
  });

  test('shows the marks that reverse what is read', () => {
    assert.match(highlightedLines('/* \u202E } */', 'c').join(''), /⟨U\+202E⟩/);
  });
});

describe('Lines of code', () => {
  test('without a language are text, and only those that fit are returned with the number of all', () => {
    const text = '<b>&"\n\u202Etwo\r\nthree\n';
    const job = { text, language: null, from: 1, bytesMax: 1_000 };
    assert.deepEqual(codeLines(job), {
      lines: ['&lt;b&gt;&amp;&quot;', '⟨U+202E⟩two', 'three'],
      from: 1,
      to: 3,
      total: 3,
    });
    assert.deepEqual(codeLines({ ...job, from: 3, bytesMax: 1 }), { lines: ['three'], from: 3, to: 3, total: 3 });
    assert.deepEqual(codeLines({ ...job, language: 'c', from: 2 }).lines.length, 2);
    assert.deepEqual(codeLines({ ...job, text: '' }), { lines: [], from: 1, to: 1, total: 0 });
  });
});

describe('The language of a file', () => {
  test('is known by its extension or its name, without regard to case', () => {
    for (const [name, language] of [
      ['a.ts', 'typescript'],
      ['A.TS', 'typescript'],
      ['Makefile', 'makefile'],
      ['go.mod', 'go'],
      ['.npmrc', 'ini'],
      ['constructor', null],
      ['x.constructor', null],
      ['LICENSE', null],
      ['', null],
      ['ts', null],
    ] as const) {
      assert.equal(languageOf(name), language, name);
    }
  });

  test('is one that the library knows', () => {
    const source = readFileSync(new URL('../../../../apps/website/rendering/language.ts', import.meta.url), 'utf8');
    const names = new Set([...source.matchAll(/: '([a-z\d]+)'/g)].map(([, language]) => language ?? ''));
    assert.ok(names.size > 50);
    for (const name of names) assert.ok(hljs.getLanguage(name), name);
  });
});
