/** The lines of a text on a page: whole up to its weight, coloured if there is room for that, and else in windows. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Html, html } from '../../../../apps/website/layout/html.ts';
import { colourRuns } from '../../../../apps/website/rendering/code.ts';
import { weighLine, weighRuns, weighText } from '../../../../apps/website/rendering/line-markup.ts';
import {
  LONG_PAGE_BYTES_MAX,
  LONG_PAGE_ELEMENTS_MAX,
  LONG_PAGE_ROOM,
} from '../../../../apps/website/rendering/weight.ts';
import {
  linesWithin,
  textOfWindow,
  WINDOW_LINE_LENGTH_MAX,
  WINDOW_READ_BYTES_MAX,
  wholeView,
  windowOf,
} from '../../../../apps/website/repositories/code-view.ts';

/** The markup of a page, with the pieces that are made while it is sent. */
function sent(page: Html): string {
  return page
    .parts()
    .map((part) => (typeof part === 'string' ? part : Array.from(part.make(), (piece) => piece.markup()).join('')))
    .join('');
}

const lines = (markup: string): number => markup.match(/<a id="L/g)?.length ?? 0;
const x = (length: number): string => 'x'.repeat(length);

describe('The lines of a text', () => {
  test('are on one page with their numbers and colours, and read as the text itself', () => {
    const text = `${Array.from({ length: 2_000 }, (_, n) => `const line${n} = "<&>\u202E";`).join('\r\n')}\n`;
    const markup = sent(wholeView(text, colourRuns(text, 'javascript')) ?? html``);
    assert.match(markup, /\n<a id="L2000" href="#L2000">2000<\/a><span class=key>const<\/span> line1999/);
    const read = markup.replaceAll(/<a id[^>]*>\d+<\/a>|<[^>]*>/g, '').replaceAll('&lt;&amp;&gt;', '<&>');
    assert.equal(read, text.replaceAll('\r', '').replaceAll('\u202E', '⟨U+202E⟩').replaceAll('"', '&quot;'));
  });

  test('are whole up to the elements of a page, and come in windows with one more', () => {
    const most = LONG_PAGE_ROOM.elements;
    assert.ok(most < LONG_PAGE_ELEMENTS_MAX);
    assert.equal(lines(sent(wholeView('\n'.repeat(most), null) ?? html``)), most);
    assert.equal(wholeView('\n'.repeat(most + 1), null), null);
    assert.equal(linesWithin(windowOf('\n'.repeat(most + 1), 1)).length, most);
  });

  test('are whole up to the bytes of a page, and never weigh less than their markup has', () => {
    const most = LONG_PAGE_ROOM.bytes - weighLine(0, 1).bytes;
    const page = wholeView(x(most), null) ?? html``;
    assert.ok(sent(page).length >= most && sent(page).length < LONG_PAGE_BYTES_MAX);
    assert.equal(wholeView(x(most + 1), null), null);
    // A quotation mark takes six bytes.
    assert.equal(wholeView('"'.repeat(Math.ceil(most / 6)), null), null);
    const hostile = '\0\x01<>&"\u2069\ufeff\r\n\r é語😀\t';
    const shown = sent(wholeView(hostile, null) ?? html``);
    assert.ok(Buffer.byteLength(shown.slice(shown.indexOf('</a>'))) <= weighText(hostile) + 60);
  });

  test('lose their colours first', () => {
    const text = '1\n'.repeat(LONG_PAGE_ROOM.elements - 1);
    const runs = colourRuns('1\n1', 'javascript');
    assert.equal(weighRuns('1\n1', runs).elements, 2);
    const markup = sent(wholeView(text, colourRuns(text, 'javascript')) ?? html``);
    assert.ok(lines(markup) === LONG_PAGE_ROOM.elements - 1 && !markup.includes('<span'));
  });

  test('make no piece of a page that takes long, however long a line is', () => {
    const page = wholeView(`${x(1_000_000)}😀${x(10)}\n`.repeat(2), null) ?? html``;
    const made = page.parts().flatMap((part) => (typeof part === 'string' ? [] : [...part.make()]));
    assert.ok(made.every((piece) => piece.markup().length < 100_000));
    assert.ok(
      made
        .map((piece) => Buffer.from(piece.markup()).toString())
        .join('')
        .includes('x😀x'),
    );
  });
});

describe('A window of lines', () => {
  const window = (text: string, from = 1) => windowOf(text, from);

  test('ends before the line that would make its page too heavy, and has one line at least', () => {
    const numbers = (room: number) =>
      linesWithin(window('aaa\nbb\nc\n'), { bytes: room, elements: 100 }).map(({ number }) => number);
    assert.deepEqual(numbers(1), [1]);
    const both = 2 * (26 + 3) + 5;
    assert.deepEqual([both - 1, both].map(numbers), [[1], [1, 2]]);
  });

  test('begins with the line that was asked for, or the last', () => {
    const starts = (from: number) => window('a\nb\nc', from);
    assert.deepEqual(starts(2), { text: 'b\nc', first: 2, total: 3, isOpen: false });
    for (const [from, first] of [
      [0, 1],
      [99, 3],
    ] as const) {
      assert.equal(starts(from).first, first);
    }
    assert.deepEqual(linesWithin(window('')), []);
  });

  test('cuts a line beyond its length, and says so; not one of this length', () => {
    for (const more of [0, 1]) {
      const [line] = linesWithin(window(x(WINDOW_LINE_LENGTH_MAX + more)));
      assert.deepEqual([line?.end, line?.isCut], [WINDOW_LINE_LENGTH_MAX, more === 1]);
    }
    const [first] = linesWithin(window(`${x(WINDOW_LINE_LENGTH_MAX - 1)}😀`));
    assert.equal(first?.end, WINDOW_LINE_LENGTH_MAX - 1, 'no character is divided');
  });

  test('of a large file is read up to the last line that it has whole', () => {
    const bytes = Buffer.alloc(WINDOW_READ_BYTES_MAX, 'é\n');
    assert.equal(textOfWindow(bytes)?.text.at(-1), '\n');
    const short = Buffer.from('é\nno end');
    assert.equal(textOfWindow(short)?.text, 'é\nno end');
    const oneLine = Buffer.alloc(WINDOW_READ_BYTES_MAX, 'aé');
    assert.equal(textOfWindow(oneLine)?.encoding, 'UTF-8', 'it ends within a character');
    assert.equal(textOfWindow(Buffer.from([0])), null);
  });
});
