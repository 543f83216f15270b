/** Length, lower case and cutting of texts. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { asciiLowerCase, codePointCount, cutCharacters, cutText, startOfText } from '../../../core/kernel/text.ts';

describe('A text', () => {
  test('has as length the number of its code points', () => {
    assert.deepEqual(['', 'abc', 'é', 'e\u0301', '😀😀'].map(codePointCount), [0, 3, 1, 2, 2]);
  });

  test('in lower case differs only in A to Z', () => {
    assert.equal(asciiLowerCase('AbcXYZ-É\u212a\u0130'), 'abcxyz-É\u212a\u0130');
  });

  test('that is cut ends with an ellipsis, and no character is split', () => {
    assert.equal(cutText('abcd', 4), 'abcd');
    assert.equal(cutText('abcde', 4), 'abc…');
    assert.equal(cutText('a😀bc', 4), 'a😀…');
    assert.equal(cutText('ab😀c', 4), 'ab…');
    assert.equal(cutText('\ufeffa\0bc', 4), '\ufeffa\0…');
    assert.equal(cutText('abc', 1), '…');
  });

  test('that is cut to a number of characters counts code points', () => {
    assert.equal(cutCharacters('😀😀😀😀', 4), '😀😀😀😀');
    assert.equal(cutCharacters('😀😀😀😀😀', 4), '😀😀😀…');
    assert.equal(cutCharacters('abcde', 4), 'abc…');
    assert.equal(cutCharacters('ab', 1), '…');
  });

  test('has a start of the requested length, in which a split character is U+FFFD', () => {
    assert.deepEqual(
      [startOfText('abc', 3), startOfText('abcd', 3), startOfText('ab😀', 3), startOfText('\ufeffa\0b', 3)],
      ['abc', 'abc', 'ab\ufffd', '\ufeffa\0'],
    );
  });
});
