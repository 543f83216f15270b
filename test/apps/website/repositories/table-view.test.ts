/** Comma- and tab-separated values as a table. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { csvRows, rowMarkup, separatorOf, weighRow } from '../../../../apps/website/rendering/csv-rows.ts';
import { windowOfRows } from '../../../../apps/website/repositories/table-view.ts';

const rowsOf = (text: string, separator = ',') =>
  [...csvRows(text, separator)].map(({ line, cells }) => [line, ...cells]);

describe('The rows of a table', () => {
  test('are those of RFC 4180, each with the number of the line that it begins in', () => {
    assert.deepEqual(rowsOf('a,b\r\n"1,2","say ""no""\nand go"\r\n,\nlast'), [
      [1, 'a', 'b'],
      [2, '1,2', 'say "no"\nand go'],
      [4, '', ''],
      [5, 'last'],
    ]);
    assert.deepEqual(rowsOf('\ufeffa\tb,c\n', '\t'), [[1, 'a', 'b,c']]);
    assert.deepEqual(rowsOf('"a"b,c'), [[1, 'ab', 'c']]);
    assert.deepEqual(rowsOf(''), []);
    assert.throws(() => rowsOf('a,"b\n'), SyntaxError);
  });

  test('are read in the time that their text takes, whatever its quotation marks are', () => {
    assert.equal(rowsOf(`"${'""'.repeat(200_000)}"`)[0]?.[1], '"'.repeat(200_000));
    assert.equal(rowsOf('"a\n"\n'.repeat(50_000)).length, 50_000);
  });

  test('are escaped, and weigh as much as their markup has at least', () => {
    const [row] = csvRows('<b>&,"\u202E",x', ',');
    assert.ok(row);
    const markup = rowMarkup(row);
    assert.equal(markup, '<tr><td><a id=L1 href=#L1>1</a></td><td>&lt;b&gt;&amp;</td><td>⟨U+202E⟩</td><td>x</td></tr>');
    const weight = weighRow(row);
    assert.ok(weight.bytes >= Buffer.byteLength(markup));
    assert.equal(weight.elements, markup.match(/<[a-z]/g)?.length);
  });
});

describe('A window of rows', () => {
  const text = 'name\n1\n2\n3\n';
  const { signal } = new AbortController();
  const shown = async (from: number, elements: number, given = text) => {
    const window = await windowOfRows(given, ',', { from, signal, room: { bytes: 10_000, elements } });
    return window === null ? null : [window.first, window.total, window.rows.map(({ cells }) => cells[0])];
  };

  test('has the head and as many rows as a page holds, from any row on', async () => {
    assert.deepEqual(await shown(1, 16), [1, 3, ['1', '2', '3']]);
    assert.deepEqual(await shown(1, 15), [1, 3, ['1', '2']]);
    assert.deepEqual(await shown(3, 16), [3, 3, ['3']]);
    assert.deepEqual(await shown(99, 16), [3, 3, ['3']]);
    assert.deepEqual(await shown(0, 16), [1, 3, ['1', '2', '3']]);
    assert.deepEqual(await shown(1, 16, 'name\n'), [1, 0, []]);
  });

  test('is missing where a page cannot hold one row, and where the text is no table', async () => {
    assert.equal(await shown(1, 7), null);
    assert.equal(await shown(1, 3), null);
    assert.equal(await shown(1, 16, 'a,"b'), null);
    assert.equal(await shown(1, 16, ''), null);
  });
});

test('A table is known by the name of its file', () => {
  assert.deepEqual(['a.csv', 'A.TSV', 'a.tab', 'csv', 'a.csv.txt'].map(separatorOf), [',', '\t', '\t', null, null]);
});
