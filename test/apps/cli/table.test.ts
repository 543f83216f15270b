/** Tables and texts on terminals of any width, and for other programs. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Column, fieldsText, tableText } from '../../../apps/cli/terminal/table.ts';
import { createTerminal, type Terminal } from '../../../apps/cli/terminal/terminal.ts';
import { cutTo, showable, widthOf } from '../../../apps/cli/terminal/text.ts';
import { relativeTime, sizeText } from '../../../apps/cli/terminal/values.ts';

interface Row {
  readonly id: string;
  readonly text: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'TEXT', text: ({ text }, exact) => (exact ? `exact ${text}` : text), colour: () => 'red' },
  { title: 'END', text: () => 'end', right: true },
];
const ROWS: readonly Row[] = [
  { id: '0123456789', text: 'short' },
  { id: '0', text: 'a longer text, 表示幅は二倍です, 👩‍👩‍👧 and cafe\u0301' },
];

function terminalOf(columns: number | null, environment: Readonly<Record<string, string>> = {}): Terminal {
  const stream = { write: () => true, isTTY: columns !== null, ...(columns === null ? {} : { columns }) };
  return createTerminal(stream, stream, environment);
}

const plain = (line: string): string => line.replaceAll(/\u001b\[\d+m/g, '');

describe('a table', () => {
  test('is never wider than the terminal, at any width', () => {
    for (let columns = 1; columns <= 120; columns += 1) {
      const lines = tableText(terminalOf(columns), COLUMNS, ROWS).trimEnd().split('\n');
      for (const line of lines) assert.ok(widthOf(plain(line)) <= columns, `${columns}: ${JSON.stringify(line)}`);
    }
  });

  test('is aligned, and cuts the widest column first', () => {
    const lines = tableText(terminalOf(40), COLUMNS, ROWS).trimEnd().split('\n').map(plain);
    assert.deepEqual(lines, [
      'ID          TEXT                     END',
      '0123456789  short                    end',
      '0           a longer text, 表示幅…   end',
    ]);
  });

  test('for other programs is whole values with tabs between, and no head', () => {
    const text = tableText(terminalOf(null), COLUMNS, [{ id: '1', text: 'a\tb\nc' }]);
    assert.equal(text, '1\texact a b c\tend\n');
    assert.equal(fieldsText(terminalOf(null), [['name', 'a\nb']]), 'name\ta b\n');
  });

  test('has colours on a terminal only, and none with NO_COLOR or a dumb terminal', () => {
    assert.ok(tableText(terminalOf(80), COLUMNS, ROWS).includes('\u001b[31m'));
    for (const terminal of [terminalOf(80, { NO_COLOR: '1' }), terminalOf(80, { TERM: 'dumb' }), terminalOf(null)]) {
      assert.ok(!tableText(terminal, COLUMNS, ROWS).includes('\u001b'));
    }
  });
});

// The attack: a name that moves the cursor, clears the screen, or shows `exe.jpg` for `gpj.exe`.
test('no text of the service can act on the terminal', () => {
  for (const code of [0, 7, 8, 0x1b, 0x7f, 0x9b, 0x9d, 0x61c, 0x200e, 0x202e, 0x2028, 0x2066, 0xd800]) {
    assert.equal(showable(`a${String.fromCharCode(code)}b`), 'a\ufffdb', code.toString(16));
  }
  assert.equal(showable('a\r\n\tb'), 'a b');
  assert.equal(showable('naïve 表示 👩‍👩‍👧'), 'naïve 表示 👩‍👩‍👧');
});

test('a text is cut between characters, not inside one', () => {
  assert.equal(cutTo('abcdef', 6), 'abcdef');
  assert.equal(cutTo('abcdefg', 6), 'abcde…');
  assert.equal(cutTo('表示表示', 6), '表示…');
  assert.equal(cutTo('cafe\u0301s', 4), 'caf…');
  assert.equal(cutTo('abc', 0), '');
});

test('secrets stay out of what is written to standard error', () => {
  let written = '';
  const stream = { write: (text: string | Uint8Array) => ((written += String(text)), true) };
  const terminal = createTerminal(stream, stream, {});
  terminal.hide('a secret value');
  terminal.error(`it was a secret value, or strata_${'x'.repeat(46)}`);
  assert.equal(written, 'error: it was …, or strata_…\n');
});

test('times and sizes read as people say them', () => {
  const now = Date.parse('2026-01-10T00:00:00Z');
  const texts = ['2026-01-10T00:00:00Z', '2026-01-09T23:59:00Z', '2026-01-08T00:00:00Z', '2026-02-20T00:00:00Z', null];
  assert.deepEqual(
    texts.map((time) => relativeTime(time, now)),
    ['just now', '1 minute ago', '2 days ago', 'in 1 month', '-'],
  );
  assert.deepEqual([0, 1023, 1024, 5 * 1024 ** 3].map(sizeText), ['0 B', '1023 B', '1.0 KiB', '5.0 GiB']);
});
