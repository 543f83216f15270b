/** How much of a diff one page shows, and where the rest is. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import type { Html } from '../../../../apps/website/layout/html.ts';
import { changedRuns } from '../../../../apps/website/rendering/changed-words.ts';
import {
  LONG_PAGE_BYTES_MAX,
  LONG_PAGE_ELEMENTS_MAX,
  LONG_PAGE_ROOM,
} from '../../../../apps/website/rendering/weight.ts';
import {
  CONTEXTS,
  diffAsked,
  PAGE_CHANGED_LINES_MAX,
  PAGE_FILES_MAX,
  queryOf,
  titleOfPart,
  wantedFor,
} from '../../../../apps/website/repositories/diff-page.ts';
import { type DiffReader, hunksWithin } from '../../../../apps/website/repositories/diff-plan.ts';
import { diffView } from '../../../../apps/website/repositories/diff-view.ts';
import type { ChangedFile, DiffLine, Hunk } from '../../../../core/git/diff/diff.ts';
import { createDiffParser, DIFF_BOUNDS } from '../../../../core/git/diff/diff-parser.ts';
import { type AccountId, objectId } from '../../../../core/kernel/ids.ts';
import { startReading } from '../../../support/reading.ts';

const [BEFORE, AFTER] = [objectId('1'.repeat(40)), objectId('2'.repeat(40))];

function lineOf(kind: DiffLine['kind'], number: number, text: string): DiffLine {
  return {
    kind,
    ...{ oldNumber: kind === 'added' ? null : number, newNumber: kind === 'deleted' ? null : number, text },
    ...{ guessed: false, cut: false, ended: true },
  };
}

function hunkOf(lines: readonly DiffLine[]): Hunk {
  return { oldStart: 1, oldLines: lines.length, newStart: 1, newLines: lines.length, heading: '', lines };
}

function fileOf(lines: readonly DiffLine[], more: Partial<ChangedFile> = {}): ChangedFile {
  return {
    ...({ status: 'modified', path: Buffer.from('a.js'), previousPath: null } as const),
    ...{ before: { mode: '100644', id: BEFORE }, after: { mode: '100644', id: AFTER } },
    ...{ additions: lines.filter(({ kind }) => kind === 'added').length, deletions: 0, binary: false, cut: false },
    ...{ hunks: lines.length === 0 ? [] : [hunkOf(lines)], ...more },
  };
}

const added = (count: number, text = 'x'): DiffLine[] =>
  Array.from({ length: count }, (_, at) => lineOf('added', at + 1, text));

function sent(page: Html): string {
  return page
    .parts()
    .map((part) => (typeof part === 'string' ? part : Array.from(part.make(), (piece) => piece.markup()).join('')))
    .join('');
}

describe('A page of a diff', () => {
  let reader: DiffReader;

  beforeAll(async () => {
    const repository = await (await startReading()).repository('r');
    const renderer: DiffReader['context']['renderer'] = { changes: async (_, { files }) => changedRuns(files) };
    reader = {
      context: { renderer },
      visit: { person: { account: 'ada' as AccountId }, signal: new AbortController().signal },
      repository,
    };
  });

  async function shown(files: readonly ChangedFile[], query = '', filesTotal = files.length) {
    const page = diffAsked({ url: new URL(`http://localhost/${query}`) });
    const diff = { files, filesTotal, truncated: [] };
    const address = (wanted: Readonly<Record<string, string>>) => `/c?${new URLSearchParams(wanted).toString()}`;
    const markup = sent(await diffView(reader, { diff, page, before: BEFORE, after: AFTER, address }));
    assert.ok(Buffer.byteLength(markup) < LONG_PAGE_BYTES_MAX);
    assert.ok((markup.match(/<[a-z]/g)?.length ?? 0) < LONG_PAGE_ELEMENTS_MAX);
    return {
      markup,
      open: markup.match(/<details[^>]* open>/g)?.length ?? 0,
      lines: markup.match(/ class=added/g)?.length ?? 0,
    };
  }

  test('shows every line with its numbers as links, the colours of its language and the words that changed', async () => {
    const lines = [
      lineOf('context', 1, 'let a;'),
      lineOf('deleted', 2, 'let b = 1;'),
      lineOf('added', 2, 'let b = 2;'),
    ];
    const { markup } = await shown([fileOf(lines)]);
    assert.ok(
      markup.includes('<div><a id=d0L1 href=#d0L1>1</a><a id=d0R1 href=#d0R1>1</a><span class=key>let</span> a;</div>'),
    );
    assert.ok(
      markup.includes(
        '<div class=removed><a id=d0L2 href=#d0L2>2</a><span class=key>let</span> b = <span class="word num">1</span>;</div>',
      ),
    );
    assert.match(
      markup,
      /<a href="[^"]*\/blob\/1{40}\/a.js">View file before<\/a><a href="[^"]*\/blob\/2{40}\/a.js">View file<\/a>/,
    );
  });

  test('shows carriage returns at line ends only where some lines have none', async () => {
    const count = async (texts: readonly string[]) => {
      const { markup } = await shown([fileOf(texts.map((text, at) => lineOf('added', at + 1, text)))]);
      return markup.match(/U\+000D/g)?.length ?? 0;
    };
    assert.equal(await count(['one\r', 'two\r']), 0);
    assert.equal(await count(['one\r', 'two']), 1);
    assert.equal(await count(['o\rne\r', 'two\r']), 1);
  });

  test('stands side by side when asked to, with a gap where one side has no line', async () => {
    const lines = [
      lineOf('context', 1, 'a'),
      lineOf('deleted', 2, 'b'),
      lineOf('added', 2, 'c'),
      lineOf('added', 3, 'd'),
    ];
    const { markup } = await shown([fileOf(lines, { path: Buffer.from('a') })], '?view=split');
    const text = markup.replaceAll(/<a id[^>]*>\d+<\/a>|<span[^>]*>|<\/span>/g, '');
    assert.ok(
      text.includes(
        '<div>a</div><div>a</div><div class=removed>b</div><div class=added>c</div><div class=gap></div><div class=added>d</div>',
      ),
    );
  });

  test('folds the files that it has no room for, with their counts, and then has no colours', async () => {
    const half = Math.floor(LONG_PAGE_ROOM.elements / 4);
    const small = fileOf(added(1, 'let a'), { additions: 1 });
    const files = [fileOf(added(half)), fileOf(added(half)), small];
    const { markup, open, lines } = await shown(files);
    assert.deepEqual([open, lines], [2, half + 1]);
    assert.match(markup, /<li><a href="\/c\?file&#61;1"><bdi>a.js<\/bdi>.*<li><a href="#d2">/s);
    assert.match(
      markup,
      /12,250 changed lines?, for which this page has no room. <a data-in-place href="\/c\?file&#61;1">/,
    );
    assert.ok(!markup.includes('<span class=key>'));
    assert.match((await shown([small])).markup, /<span class=key>/);
  });

  test('folds a file whose lines were not kept', async () => {
    const { markup, open } = await shown([fileOf([], { cut: true, additions: 25_000 }), fileOf(added(1))]);
    assert.equal(open, 1);
    assert.match(markup, /25,000 changed lines/);
    assert.match((await shown([fileOf([], { cut: true, additions: null })])).markup, /were not counted/);
  });

  test('shows one file alone, page by page, to its last line', async () => {
    const count = LONG_PAGE_ROOM.elements;
    const first = await shown([fileOf(added(count))], '?file=7', 9);
    assert.match(first.markup, /id="d7" open/);
    const next = /rel="next" href="\/c\?file&#61;7&#38;from&#61;(\d+)"/.exec(first.markup)?.[1];
    assert.equal(Number(next), first.lines);
    const last = await shown([fileOf(added(count - first.lines))], `?file=7&from=${next}`, 9);
    assert.ok(!last.markup.includes('rel="next"') || last.lines < count - first.lines);
  });

  test('leads to the files that it does not list', async () => {
    const { markup } = await shown([fileOf(added(1)), fileOf(added(1))], '', 3);
    assert.match(markup, /rel="next" href="\/c\?files&#61;2"/);
    assert.match(markup, /Files 1 to 2/);
    assert.ok(!(await shown([fileOf(added(1))], '?files=2', 3)).markup.includes('rel="next"'));
  });

  test('says of files without lines what changed', async () => {
    const id = { before: { mode: '100644', id: BEFORE }, after: { mode: '100755', id: BEFORE } };
    for (const [file, said] of [
      [{ ...id }, /Mode 100644 → 100755.*Only its mode changed/s],
      [
        { status: 'renamed', previousPath: Buffer.from('b'), ...id, after: id.before },
        /b → a.js.*Only its name changed/s,
      ],
      [{ binary: true, additions: null, deletions: null }, /A binary file/],
      [{ status: 'added', before: null }, /An empty file/],
      [{}, /Only white space changed/],
    ] as const) {
      assert.match((await shown([fileOf([], file)])).markup, said);
    }
    const { markup } = await shown([fileOf([], id), fileOf([], id)]);
    assert.equal(markup.match(/\+0/g)?.length, 1, 'only the sum of all has zeros');
    const image = (await shown([fileOf([], { binary: true, path: Buffer.from('a.png'), additions: null })])).markup;
    assert.match(image, /<img src="[^"]*\/raw\/1{40}\/a.png" alt="a.png before".*<img src="[^"]*\/raw\/2{40}\/a.png"/s);
  });
});

test('The lines that a page has room for are as many as their weight says, and not one more', () => {
  const hunk = hunkOf(added(3, 'abc'));
  const used = { bytes: 0, elements: 0 };
  const all = hunksWithin([hunk], false, { used, room: { bytes: 10_000, elements: 7 } });
  assert.deepEqual([all.lines, all.length, all.isCut], [3, 12, false]);
  const fewer = hunksWithin([hunk], false, { used, room: { bytes: 10_000, elements: 6 } });
  assert.deepEqual([fewer.lines, fewer.hunks[0]?.lines.length, fewer.isCut], [2, 2, true]);
  assert.equal(hunksWithin([hunk], false, { used, room: { bytes: all.weight.bytes - 1, elements: 7 } }).lines, 2);
});

test('A diff is read with as many changed lines and files as a page shows', () => {
  const bounds = { ...DIFF_BOUNDS, ...wantedFor(diffAsked({ url: new URL('http://localhost/') })).bounds };
  for (const [count, cut] of [
    [PAGE_CHANGED_LINES_MAX, false],
    [PAGE_CHANGED_LINES_MAX + 1, true],
  ] as const) {
    const parser = createDiffParser(bounds);
    const ids = `${'0'.repeat(40)} ${'1'.repeat(40)}`;
    const text = `@@ -0,0 +1,${count} @@\n${'+x\n'.repeat(count)}`;
    parser.add(Buffer.from(`:000000 100644 ${ids} A\0a\0\0diff --git a/a b/a\n${text}`));
    const { files } = parser.end('whole');
    assert.deepEqual([files[0]?.additions, files[0]?.cut, files[0]?.hunks.length], [count, cut, cut ? 0 : 1]);
  }
  for (const count of [PAGE_FILES_MAX, PAGE_FILES_MAX + 1]) {
    const parser = createDiffParser(bounds);
    const ids = `${'0'.repeat(40)} ${'1'.repeat(40)}`;
    parser.add(Buffer.from(Array.from({ length: count }, (_, n) => `:000000 100644 ${ids} A\0${n}\0`).join('')));
    const { files, filesTotal } = parser.end('whole');
    assert.deepEqual([files.length, filesTotal], [PAGE_FILES_MAX, count]);
  }
});

test('An address of a diff is read as it is written, and anything else in it is the plain diff', () => {
  const asked = (query: string) => diffAsked({ url: new URL(`http://localhost/?${query}`) });
  for (const query of ['', 'file=3', 'file=3&context=25&from=40&w=1&view=split', 'files=2000', 'w=1']) {
    assert.equal(new URLSearchParams(queryOf(asked(query))).toString(), query);
  }
  assert.equal(asked('file=0&context=26').context, CONTEXTS[0]);
  assert.equal(titleOfPart(asked('file=3&from=40&w=1'), 'a.js'), 'a.js, from line 41, without white space');
  assert.equal(titleOfPart(asked(''), null), '');
});
