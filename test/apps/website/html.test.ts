/** The templates of pages: what they escape. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Content, html, trustedHtml } from '../../../apps/website/layout/html.ts';

const made = (content: Content): string => html`${content}`.markup();

/** Stored by a hostile person, and shown to another. */
const PAYLOADS = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' autofocus onfocus='alert(1)",
  '</title><svg onload=alert(1)>',
  '</textarea><script>alert(1)</script>',
  '&lt;script&gt;',
  'x=y',
];

describe('A template', () => {
  test('escapes every character that means something in text or in a quoted attribute', () => {
    assert.equal(made(`&<>"'=`), '&#38;&#60;&#62;&#34;&#39;&#61;');
    assert.equal(made('a`b ${c} ! \u2028 ü'), 'a`b ${c} ! \u2028 ü');
  });

  test('shows what hostile people store as text, whether in an element or in an attribute', () => {
    for (const payload of PAYLOADS) {
      const page = html`<p title="${payload}">${payload}</p><p title='${payload}'></p>`.markup();
      const [, double = '', text = '', single = ''] =
        /^<p title="([^"]*)">([^<]*)<\/p><p title='([^']*)'><\/p>$/.exec(page) ?? [];
      assert.deepEqual([double, text, single].map(unescape), [payload, payload, payload]);
    }
  });

  test('escapes a value after an exclamation mark, with which the library leaves values as they are', () => {
    const name = '<b>';
    assert.equal(html`Hello!${name}`.markup(), 'Hello!&#60;b&#62;');
    assert.equal(html`<p>!${[name]}!!${name}</p>`.markup(), '<p>!&#60;b&#62;!!&#60;b&#62;</p>');
  });

  test('escapes the texts of lists at every depth', () => {
    assert.equal(made(['<', [html`<br>`, ['>', 7]], null]), '&#60;<br>&#62;7');
  });

  test('keeps templates in templates, and leaves out null and false', () => {
    assert.equal(html`<ul>${[html`<li>${'&'}</li>`]}${null}${false}${0}</ul>`.markup(), '<ul><li>&#38;</li>0</ul>');
  });

  test('does not take an object for markup that only looks like it', () => {
    const forged = { markup: () => '<script>' } as unknown as Content;
    assert.throws(() => made(forged), TypeError);
  });

  test('keeps markup that a reviewed file declares trusted', () => {
    assert.equal(made(trustedHtml('<b>x</b>')), '<b>x</b>');
  });
});

function unescape(text: string): string {
  return text.replaceAll(/&#(\d+);/g, (_match, code: string) => String.fromCodePoint(Number(code)));
}
