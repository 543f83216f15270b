/** Parts of pages: names, sizes, windows of lines, and words for a shell, each up to its limit. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'vitest';
import { uuids } from '../../../../adapters/node/ids.ts';
import { encodeName } from '../../../../apps/front-door/request-target.ts';
import { agentText, UNKNOWN_LENGTH_MAX } from '../../../../apps/website/identity/agent.ts';
import { html } from '../../../../apps/website/layout/html.ts';
import { segmentsOf } from '../../../../apps/website/repositories/addresses.ts';
import { shellWord } from '../../../../apps/website/repositories/empty-home.ts';
import { pageAsked, rowsWithin } from '../../../../apps/website/repositories/pager.ts';
import {
  bodyOf,
  NAME_LENGTH_MAX,
  SUBJECT_LENGTH_MAX,
  shownName,
  subjectOf,
} from '../../../../apps/website/repositories/shown-text.ts';
import { NAMES_MAX, repositoriesText } from '../../../../apps/website/tokens/words.ts';
import type { RepositoryId } from '../../../../core/kernel/ids.ts';
import { PAGE_ROWS_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { tempDir } from '../../../support/temp-dir.ts';

describe('A name in an address', () => {
  test('is encoded byte by byte, and decoded to the same bytes', () => {
    for (const name of [
      Buffer.from('caf\xe9', 'latin1'),
      Buffer.from('ä 100% #1?.txt'),
      Buffer.from('%2F'),
      Buffer.from('a+b&c=d;e'),
    ]) {
      const encoded = encodeName(name);
      assert.match(encoded, /^[\w.~%-]+$/);
      assert.deepEqual(
        segmentsOf(`/ada/r/blob/${encoded}`)?.map((part) => Buffer.from(part)),
        [name],
      );
    }
  });

  test('is refused if no tree can hold it', () => {
    for (const path of ['..', '.', '%2e%2e', 'a//b', 'a%00', '%zz', '%f', '\u0100']) {
      assert.equal(segmentsOf(`/ada/r/blob/${path}`), null, path);
    }
    assert.equal(segmentsOf('/ada/r/blob/a/b/?x=1#y')?.length, 2);
  });
});

describe('A text of a repository', () => {
  test('is cut, and shows what would hide or reorder it', () => {
    assert.equal(shownName('a\u202Eb\nc'), 'a⟨U+202E⟩b␤c');
    for (const [textOf, lengthMax] of [
      [shownName, NAME_LENGTH_MAX],
      [subjectOf, SUBJECT_LENGTH_MAX],
    ] as const) {
      const whole = 'x'.repeat(lengthMax);
      assert.equal(textOf(whole), whole);
      assert.equal(textOf(`${whole}x`), `${whole.slice(1)}…`);
    }
    assert.equal(bodyOf('x'.repeat(SUBJECT_LENGTH_MAX)), '');
    assert.equal(subjectOf('\n\n  One\r\nTwo'), 'One');
    assert.equal(subjectOf(' \n '), '(no message)');
    assert.equal(bodyOf('One\n\nTwo\nThree\n'), 'Two\nThree');
    assert.equal(bodyOf('One\n'), '');
    const long = 'word '.repeat(100).trim();
    assert.equal(bodyOf(long), long, 'a cut subject is shown whole below');
  });
});

test('A browser that is not known is named by its header, whole up to the limit', () => {
  const whole = 'x'.repeat(UNKNOWN_LENGTH_MAX);
  assert.deepEqual([agentText(whole), agentText(`${whole}x`)], [whole, `${whole}…`]);
});

test('The repositories of a token are named up to the limit, and the others are counted', () => {
  const own = Array.from({ length: NAMES_MAX + 1 }, (_, n) => ({ id: uuids.next<RepositoryId>(), name: `r${n}` }));
  const shown = (count: number) =>
    repositoriesText({ scope: 'SELECTED_REPO', repositoryIds: own.slice(0, count).map(({ id }) => id) }, own);
  const names = own.slice(0, NAMES_MAX).map(({ name }) => name);
  assert.equal(shown(NAMES_MAX), names.join(', '));
  assert.equal(shown(NAMES_MAX + 1), [...names, '1 more'].join(', '));
});

test('a branch called like a command is one word to the shell', async (context) => {
  const folder = await tempDir(context);
  for (const branch of ['main', 'feature/x', '$(touch hacked)', "it's;touch hacked", '`touch hacked`', '-x', 'a&b|c']) {
    const echoed = execFileSync('sh', ['-c', `printf '%s' ${shellWord(branch)}`], { cwd: folder, encoding: 'utf8' });
    assert.equal(echoed, branch);
  }
  assert.throws(() => execFileSync('ls', ['hacked'], { cwd: folder, stdio: 'pipe' }));
});

describe('The rows of a page', () => {
  const usual = (query: string) => pageAsked({ url: new URL(`http://localhost/${query}`) }, 100);
  const row = (length: number) => html`${'x'.repeat(length)}`;

  test('are all of them up to their weight, and half as many at one byte more', () => {
    const lengths = [PAGE_ROWS_BYTES_MAX - 99, ...Array<number>(99).fill(1)];
    assert.equal(rowsWithin(lengths, usual(''), row).rows.length, 100);
    const fewer = rowsWithin([...lengths.slice(1), (lengths[0] ?? 0) + 1], usual('?page=3'), row);
    assert.deepEqual([fewer.rows.length, fewer.page], [50, { offset: 300, limit: 50, usual: 100 }]);
    assert.equal(rowsWithin([PAGE_ROWS_BYTES_MAX + 1], usual(''), row).rows.length, 1, 'at least one');
  });

  test('are not made beyond the first that is too much', () => {
    let made = 0;
    const lengths = [1, ...Array<number>(99).fill(PAGE_ROWS_BYTES_MAX)];
    const { rows } = rowsWithin(lengths, usual(''), (length) => {
      made += 1;
      return row(length);
    });
    assert.deepEqual([rows.length, made], [1, 2]);
  });

  test('are of a size that divides the usual one, whatever is asked for', () => {
    const sizes = ['', '?size=100', '?size=99', '?size=25', '?size=6', '?size=1', '?size=0', '?size=1000', '?size=x'];
    assert.deepEqual(
      sizes.map((query) => usual(query).limit),
      [100, 100, 50, 25, 5, 1, 1, 100, 100],
    );
  });
});
