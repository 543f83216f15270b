/** The words that changed within the lines of a diff, and the colours of both sides. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { changedRuns, compareWords } from '../../../../apps/website/rendering/changed-words.ts';
import { markupOf } from '../../../../apps/website/rendering/line-markup.ts';

const marked = (line: string, ranges: readonly (readonly [number, number])[] = []): string[] =>
  ranges.map(([start, end]) => line.slice(start, end));

describe('The words of two lines', () => {
  test('are marked where they differ, on both sides', () => {
    for (const [old, now, removed, added] of [
      ['const a = one(b);', 'const a = two(b);', ['one'], ['two']],
      ['a b c', 'a c', ['b '], []],
      ['f(x)', 'f(x, y)', [], [', y']],
      ['größe = 1', 'größe = 12', ['1'], ['12']],
    ] as const) {
      const words = compareWords(old, now);
      assert.deepEqual([marked(old, words?.old), marked(now, words?.now)], [removed, added], old);
    }
  });

  test('are not marked where too little is the same', () => {
    assert.equal(compareWords('return first;', 'throw new TypeError(second);'), null);
    assert.equal(compareWords('', ''), null);
  });

  test('are marked as a whole where comparing them would take long', () => {
    const words = Array.from({ length: 500 }, (_, n) => `w${n}`);
    const [old, now] = [
      `same ${'x'.repeat(2_000)} ${words.join(' ')}`,
      `same ${'x'.repeat(2_000)} ${words.toReversed().join(' ')}`,
    ];
    assert.equal(compareWords(old, now)?.old.length, 1);
  });
});

describe('The lines of a diff', () => {
  const shown = (text: string, marks: string, language: string | null): string => {
    const file = { text, marks, language };
    return markupOf(text + text, changedRuns([file, file]))({ start: text.length, end: 2 * text.length });
  };

  test('have the colours of their own side', () => {
    const markup = shown('/* a\nb\n*/ let c\n', '-++', 'javascript');
    // The comment begins on the old side only.
    assert.match(markup, /^<span class=com>\/\* a<\/span>\nb\n/);
    assert.match(markup, /<span class=key>let<\/span> c\n$/);
  });

  test('are plain in a language that nobody knows, with the words that changed', () => {
    const markup = shown('one two three four\none 2 three four\n', '-+', 'no-language');
    assert.equal(
      markup,
      'one <span class="word">two</span> three four\none <span class="word">2</span> three four\n'.replaceAll(
        '"word"',
        'word',
      ),
    );
  });
});
