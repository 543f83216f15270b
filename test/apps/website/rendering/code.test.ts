/** Coloured code, line by line, and the language of a file's name. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import hljs from 'highlight.js';
import { describe, test } from 'vitest';
import { colourRuns, highlightedLines } from '../../../../apps/website/rendering/code.ts';
import { languageOf } from '../../../../apps/website/rendering/language.ts';
import { markupOf } from '../../../../apps/website/rendering/line-markup.ts';
import { lengthOfRun } from '../../../../apps/website/rendering/runs.ts';

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

describe('The colours of a text', () => {
  test('cover it as it is, with the marks that markup escapes and those that are invisible', () => {
    const text = 'const a = "<&\u202E\'";\r\n// `b`\n';
    const runs = colourRuns(text, 'javascript');
    const whole = { start: 0, end: text.length };
    assert.equal(
      runs.reduce((sum, run) => sum + lengthOfRun(run), 0),
      text.length,
    );
    assert.match(
      markupOf(text, runs)(whole),
      /<span class=str>&quot;&lt;&amp;⟨U\+202E⟩'&quot;<\/span>;\n<span class=com>/,
    );
  });

  test('are those of the inner part where one is in another', () => {
    const text = 'const x = `a${1}b`;';
    const markup = markupOf(text, colourRuns(text, 'javascript'))({ start: 0, end: text.length });
    assert.equal(
      markup,
      '<span class=key>const</span> x = <span class=str>`a${</span><span class=num>1</span><span class=str>}b`</span>;',
    );
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
