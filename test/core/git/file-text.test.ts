/** Which bytes of a file are text for people, and in which encoding. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { fileText } from '../../../core/git/file-text.ts';

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const TEXT = 'Grüße aus Köln.\nÇa va, “mère” ?\n';

describe('the text of a file', () => {
  test('is UTF-8 where its bytes are, whatever they look like', () => {
    for (const text of ['', 'plain\n', TEXT, 'Привет', '\ufeffwith a mark', 'gr\xc3\xbc']) {
      assert.deepEqual(fileText(Buffer.from(text)), { text, encoding: 'UTF-8' });
    }
  });

  test('is UTF-16 by its byte order mark, which is no part of the text', () => {
    const little = Buffer.from(`\ufeff${TEXT}`, 'utf16le');
    assert.deepEqual(fileText(little), { text: TEXT, encoding: 'UTF-16LE' });
    assert.deepEqual(fileText(Buffer.from(little).swap16()), { text: TEXT, encoding: 'UTF-16BE' });
    // Half a character, half a pair of surrogates, and UTF-32.
    assert.equal(fileText(little.subarray(0, -1)), null);
    assert.equal(fileText(Buffer.from([0xff, 0xfe, 0x00, 0xd8])), null);
    assert.equal(fileText(Buffer.from([0xff, 0xfe, 0, 0, 0x41, 0, 0, 0])), null);
    assert.equal(fileText(little.subarray(2)), null);
  });

  test('is guessed where it looks like a Western European language', () => {
    const texts = [
      'gr\xf6\xdfer\n',
      '\xc9t\xe9 \xe0 la plage, \xabno\xebl\xbb\r\n',
      'l\x92\x9cuvre co\xfbte 10 \x80\n',
      'col\xb7lega, \xbfqu\xe9? 20\xb0, \xa9 2001',
      'me\xf0 \xfe\xf3\xf0 vi\xf0 l\xf3ni\xf0, allir saman',
    ];
    for (const text of texts) {
      const found = fileText(latin1(text));
      assert.equal(found?.encoding, 'Windows-1252', text);
      assert.equal(found?.text, new TextDecoder('windows-1252').decode(latin1(text)));
    }
  });

  test('is guessed with three letters beyond ASCII in a row, and not with four', () => {
    const withRow = (length: number) => fileText(latin1(`plain words ${'\xe9'.repeat(length)} here`));
    assert.equal(withRow(3)?.encoding, 'Windows-1252');
    assert.equal(withRow(4), null);
  });

  test('is guessed with two plain letters for each beyond ASCII, and not with fewer', () => {
    assert.equal(fileText(latin1('a\xe9b a\xe9b'))?.encoding, 'Windows-1252');
    assert.equal(fileText(latin1('a\xe9b a\xe9')), null);
  });

  test('is not guessed for other encodings, nor for what is no text', () => {
    const others: readonly (readonly [string, Buffer])[] = [
      ['KOI8-R', latin1('\xf0\xd2\xc9\xd7\xc5\xd4, \xcd\xc9\xd2!\n')],
      ['Shift_JIS', latin1('\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\n')],
      ['GBK', latin1('\xc4\xe3\xba\xc3\xca\xc0\xbd\xe7\n')],
      ['ISO-8859-2', latin1('Zaj\xb1c by\xb3 ma\xb3y\n')],
      ['a control character', latin1('gr\xfcn\x01')],
      ['NUL', latin1('gr\xfcn\0')],
      ['no character of Windows-1252', latin1('gr\x81n')],
      ['random bytes', Buffer.from('89504e470d0a1a0affd8ffe000104a', 'hex')],
    ];
    for (const [name, bytes] of others) assert.equal(fileText(bytes), null, name);
  });
});
