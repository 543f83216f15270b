/** Markdown: GitHub's flavour, links into the repository, and what a hostile README may not do. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'vitest';
import { anchorOf, renderMarkdown } from '../../../../apps/website/rendering/markdown.ts';

const PLACE = { blobs: '/ada/engine/blob/main', raw: '/ada/engine/raw/main', folder: 'docs/guide' };
const rendered = (text: string, folder = PLACE.folder) => renderMarkdown(text, { ...PLACE, folder }).trim();

describe('Markdown', () => {
  test('has headings below those of the page, each with an anchor of its own', () => {
    assert.equal(
      rendered('# Hello, World!\n\n## Hello `World`\n\n### x\n\n#### x'),
      [
        '<h3 id="hello-world">Hello, World!</h3>',
        '<h4 id="hello-world-1">Hello <code>World</code></h4>',
        '<h5 id="x">x</h5>',
        '<h6 id="x-1">x</h6>',
      ].join('\n'),
    );
    assert.equal(
      rendered('### a\n\n###### b\n\n# c').replaceAll(/ id="[^"]*"/g, ''),
      '<h3>a</h3>\n<h4>b</h4>\n<h3>c</h3>',
    );
    assert.match(rendered('# Übung 1\n\n[there](#übung-1)'), /<a href="#%C3%BCbung-1">/);
    const ids = [...rendered('# x\n# x 1\n# x').matchAll(/id="([^"]*)"/g)].map(([, id]) => id);
    assert.deepEqual(ids, ['x', 'x-1', 'x-2'], 'none is there twice');
  });

  test('has tables that scroll inside themselves, aligned without styles', () => {
    const table = rendered('| a | b | c |\n|---|--:|:-:|\n| 1 | 2 | 3 |');
    assert.match(table, /^<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>/);
    assert.match(table, /<td>1<\/td>\s*<td class="number">2<\/td>\s*<td class="middle">3<\/td>/);
    assert.doesNotMatch(table, /style/);
  });

  test('has strikethrough, autolinks and task lists', () => {
    assert.equal(rendered('~~gone~~'), '<p><s>gone</s></p>');
    const link = '<a href="https://example.org/x" rel="nofollow noopener noreferrer">https://example.org/x</a>';
    assert.equal(rendered('https://example.org/x'), `<p>${link}</p>`);
    assert.match(
      rendered('- [ ] later\n- [x] done\n- [no] mark'),
      /<li class="task">☐ later<\/li>\s*<li class="task">☑ done<\/li>\s*<li>\[no\] mark/,
    );
  });

  test('gives a heading whose anchor the page itself has another one, and its links follow', () => {
    const text = '# Content\n\n# Ref\n\n# fn1\n\n# MD x\n\n[a](#content) [b](#usage)';
    const ids = [...rendered(text).matchAll(/id="([^"]*)"/g)].map(([, id]) => id);
    assert.deepEqual(ids, ['md-content', 'md-ref', 'md-fn1', 'md-md-x']);
    assert.match(rendered(text), /<a href="#md-content">a<\/a> <a href="#usage">b<\/a>/);
  });

  test('knows every id of the pages that show it', () => {
    const folder = new URL('../../../../apps/website/', import.meta.url);
    const sources = ['layout', 'repositories'].flatMap((name) =>
      readdirSync(new URL(`${name}/`, folder)).map((file) => readFileSync(new URL(`${name}/${file}`, folder), 'utf8')),
    );
    const ids = new Set(
      sources.flatMap((source) => [...source.matchAll(/ id="([a-z][\w-]*)"/g)].map(([, id = '']) => id)),
    );
    assert.ok(ids.has('content') && ids.has('ref'));
    for (const id of ids) assert.notEqual(anchorOf(id), id, id);
  });

  test('has alerts, which begin with their mark', () => {
    assert.equal(
      rendered('> [!WARNING]\n> Do *not* **do** this.'),
      '<div class="alert warning">\n<p class="alert-title">Warning</p>\n<p>Do <em>not</em> <strong>do</strong> this.</p>\n</div>',
    );
    assert.match(rendered('> [!tip]\n>\n> - a'), /^<div class="alert tip">\n<p class="alert-title">Tip<\/p>\s*<ul>/);
    for (const text of ['> [!NOTE]', '> [!OTHER]\n> text', '> text [!NOTE]\n> text', '- > [!NOTE]\n  > text']) {
      assert.match(rendered(text), /<blockquote>/, text);
    }
  });

  test('has footnotes, with links there and back', () => {
    const text = rendered('One[^a] and two[^a].\n\n[^a]: The *note*.\n\n    Its end.\n');
    assert.match(
      text,
      /One<sup><a id="fnref1" href="#fn1">\[1\]<\/a><\/sup> and two<sup><a id="fnref1:1" href="#fn1">/,
    );
    assert.match(
      text,
      /<section class="footnotes">\s*<ol>\s*<li id="fn1" class="footnote-item">\s*<p>The <em>note<\/em>/,
    );
    assert.match(text, /<a class="footnote-backref" href="#fnref1">↩︎<\/a>/);
    assert.match(rendered('[^1]: x\n\n[^2] text'), /\[\^2\] text/);
  });

  test('colours a fenced block in a language it knows, and keeps another as it is', () => {
    assert.match(rendered('```js\nconst x = 1;\n```'), /<span class="key">const<\/span>/);
    assert.match(rendered('```nonsense\n<b>\n```'), /<code>&lt;b&gt;\s*<\/code>/);
  });

  test('keeps the harmless HTML that READMEs use for their layout, and closes what a text left open', () => {
    assert.equal(
      rendered('<p align="center">\n<img src="logo.png" width="20">\n</p>\n<!-- a note -->'),
      '<p align="center">\n<img width="20" src="/ada/engine/raw/main/docs/guide/logo.png" alt="" loading="lazy" />\n</p>',
    );
    assert.match(rendered('<div>\n\nopen'), /open<\/p>\s*<\/div>$/);
    assert.doesNotMatch(rendered('</div></article></main>\n\ntext'), /<\/(div|article|main)>/);
  });
});

describe('A relative link or image', () => {
  test('leads into the repository at the text’s own commit', () => {
    const cases = {
      'x.md': '/ada/engine/blob/main/docs/guide/x.md',
      './x.md#part': '/ada/engine/blob/main/docs/guide/x.md#part',
      './x.md#content': '/ada/engine/blob/main/docs/guide/x.md#md-content',
      '../x.ts#L3': '/ada/engine/blob/main/docs/x.ts#L3',
      '/LICENSE': '/ada/engine/blob/main/LICENSE',
      '../../../../../etc/passwd': '/ada/engine/blob/main/etc/passwd',
      'a%20b/ü?x=1': '/ada/engine/blob/main/docs/guide/a%20b/%C3%BC',
    };
    for (const [href, wanted] of Object.entries(cases)) {
      assert.match(rendered(`[x](${href})`), new RegExp(`<a href="${wanted.replaceAll('.', '\\.')}">x</a>`), href);
    }
    assert.match(rendered('[x](x.md)', ''), /href="\/ada\/engine\/blob\/main\/x\.md"/);
    assert.match(rendered('![x](../a.png)'), /src="\/ada\/engine\/raw\/main\/docs\/a\.png" alt="x"/);
  });

  test('never leads out of the repository as another origin', () => {
    for (const href of [
      '//evil.example/x',
      '/\\evil.example',
      '\\\\evil.example',
      '/%5cevil.example',
      '\t//evil.example',
    ]) {
      const markup = rendered(`[x](<${href}>)`) + rendered(`<a href="${href}">x</a>`) + rendered(`![x](<${href}>)`);
      assert.doesNotMatch(markup, /(href|src)="(?!\/ada\/engine\/)/, href);
    }
  });
});

describe('A hostile README', () => {
  test('comes out as text with its scripts, handlers, styles, frames and forms', () => {
    for (const payload of [
      '<script>alert(1)</script>',
      '<img src=x onerror=alert(1)>',
      '<svg onload=alert(1)>',
      '<iframe src="https://evil.example"></iframe>',
      '<form action="/settings" method="post"><input name="x"></form>',
      '<a href="#" style="position:fixed;inset:0">cover</a>',
      '<style>body{display:none}</style>',
      '<base href="https://evil.example">',
      '<meta http-equiv="refresh" content="0;url=https://evil.example">',
      '<math><mtext></p><style><!--</style><img src onerror=alert(1)>',
      '<div id="find" class="top">x</div>',
      '<!-- --!><script>alert(1)</script> -->',
      '<b\u0000 onclick=alert(1)>x</b>',
      '<details ontoggle=alert(1) open>',
    ]) {
      for (const text of [payload, `a ${payload} b`, `- ${payload}`, `| ${payload} |\n|---|`]) {
        const markup = rendered(text);
        assert.doesNotMatch(markup, /<(script|svg|iframe|form|input|style|base|meta|math)/i, text);
        assert.doesNotMatch(markup, /<[^>]*\s(on\w+|style|id|srcdoc|action)=/i, text);
      }
      assert.match(rendered(payload), /&lt;/, payload);
    }
  });

  test('has no link or image that runs, or carries its own content', () => {
    for (const url of [
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      'java\tscript:alert(1)',
      'javascript&colon;alert(1)',
      '&#106;avascript:alert(1)',
      'vbscript:x',
      'data:text/html,<script>alert(1)</script>',
      'data:image/svg+xml;base64,PHN2Zz4=',
      'file:///etc/passwd',
      'blob:https://x/y',
    ]) {
      for (const text of [`[x](${url})`, `![x](${url})`, `<a href="${url}">x</a>`, `<img src="${url}">`, `<${url}>`]) {
        assert.doesNotMatch(rendered(text), /<[^>]*(href|src)="(?!\/ada\/engine\/|#)/i, text);
        assert.doesNotMatch(rendered(text), /<[^>]*(href|src)="[^"]*script:/i, text);
      }
    }
  });

  test('loads nothing from another origin: such an image is a link that names it', () => {
    const rel = 'rel="nofollow noopener noreferrer"';
    assert.equal(
      rendered('![build](https://ci.example/badge.svg)'),
      `<p><a class="image" href="https://ci.example/badge.svg" ${rel}>build</a></p>`,
    );
    assert.match(rendered('<img src="https://ci.example/a.png">'), />image at ci\.example<\/a>/);
    assert.equal(
      rendered('[![build](https://ci.example/b.svg)](https://ci.example/)'),
      `<p><a href="https://ci.example/" ${rel}><span class="image">build</span></a></p>`,
    );
    assert.doesNotMatch(
      rendered('<picture><source srcset="https://x.example/a"><img src="a.png"></picture>'),
      /x\.example/,
    );
  });

  test('shows the marks that reverse what is read', () => {
    assert.match(rendered('access \u202Elevel\u2066 user'), /access ⟨U\+202E⟩level⟨U\+2066⟩ user/);
  });

  test('cannot take the id or class of a part of the page', () => {
    assert.match(rendered('# find'), /id="find"/);
    assert.match(rendered('```" class="top\nx\n```'), /<code>x\s*<\/code>/);
  });
});
