/** Parts of the pages of repositories that list a bounded number of things, or show a bounded part of a text. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Content, html } from '../../../../apps/website/layout/html.ts';
import { PARENTS_SHOWN_MAX, parents } from '../../../../apps/website/repositories/commit.ts';
import { COMMITS_BYTES_MAX } from '../../../../apps/website/repositories/compare.ts';
import {
  CRUMBS_BYTES_MAX,
  lastCrumbs,
  PICKED_BYTES_MAX,
  PICKED_MAX,
  picked,
  refPicker,
} from '../../../../apps/website/repositories/frame.ts';
import { FOUND_BYTES_MAX } from '../../../../apps/website/repositories/limits.ts';
import { SEARCH_LENGTH_MAX, searchedText } from '../../../../apps/website/repositories/list.ts';
import { pageAsked, rowsWithin } from '../../../../apps/website/repositories/pager.ts';
import { MARKUP_BYTES_MIN, shortenedReadme } from '../../../../apps/website/repositories/readme.ts';
import {
  SEARCH_LENGTH_MAX as REFS_SEARCH_LENGTH_MAX,
  searchAsked,
} from '../../../../apps/website/repositories/refs-search.ts';
import {
  NAMES_IN_MESSAGE_MAX,
  NAMES_SHOWN_MAX,
  namesText,
  UPDATES_SHOWN_MAX,
  updatesTable,
} from '../../../../apps/website/repositories/restore.ts';
import { objectId, ZERO_OBJECT_ID } from '../../../../core/kernel/ids.ts';
import { startReading } from '../../../support/reading.ts';

const x = (length: number): string => 'x'.repeat(length);
const list = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);
const countOf = (content: Content, what: RegExp): number => html`${content}`.markup().match(what)?.length ?? 0;
const asked = (query: string) => ({ url: new URL(`http://localhost/?${query}`) });

describe('The picker of branches and tags', () => {
  test('lists as many of each as the limit beside the default branch, and leaves out one more', async () => {
    const reading = await startReading();
    const { node, objects } = reading;
    const tip = objects.commit({ tree: objects.tree({}), seconds: 1 });
    for (const count of [PICKED_MAX, PICKED_MAX + 1]) {
      const refs = list(count).flatMap((n) => [`refs/heads/b${100 + n}`, `refs/tags/v${100 + n}`]);
      const empty = await reading.repository(`r${count}`);
      const repository = await reading.push(
        empty,
        Object.fromEntries(['refs/heads/master', ...refs].map((name) => [name, tip])),
      );
      const picker = await refPicker({ context: node, repository }, 'tree', tip, []);
      const [branches = '', tags = ''] = picker.markup().split('<h3>Tags</h3>');
      assert.deepEqual(
        [branches, tags].map((part) => part.match(/<li>/g)?.length),
        [PICKED_MAX + 1, PICKED_MAX],
      );
    }
  });

  test('lists them up to the limit of their bytes, and not one byte more', () => {
    const links = [html`${x(PICKED_BYTES_MAX - 1)}`, html`x`];
    assert.equal(picked(links).length, 2);
    assert.equal(picked([...links, html`x`]).length, 2);
  });
});

test('The links to the folders of a path are all there up to the limit of their bytes, and beyond it the last ones', () => {
  const links = (bytes: number): string =>
    html`${lastCrumbs(3, (at) => html`${at === 3 ? x(bytes - 1) : `${at}`}`)}`.markup();
  assert.equal(links(CRUMBS_BYTES_MAX), `12${x(CRUMBS_BYTES_MAX - 1)}`);
  assert.equal(links(CRUMBS_BYTES_MAX + 1), `/…2${x(CRUMBS_BYTES_MAX)}`);
});

test('The parents of a commit are listed up to the limit, and the others are counted', async () => {
  const repository = await (await startReading()).repository('r');
  const shown = (count: number) => {
    const ids = list(count).map((n) => objectId(String(n).padStart(40, '0')));
    return parents({ repository }, { parents: ids });
  };
  const [full, more] = [shown(PARENTS_SHOWN_MAX), shown(PARENTS_SHOWN_MAX + 1)];
  assert.deepEqual(
    [full, more].map((part) => countOf(part, /<a /g)),
    [PARENTS_SHOWN_MAX, PARENTS_SHOWN_MAX],
  );
  assert.deepEqual(
    [full, more].map((part) => countOf(part, /and 1 more/g)),
    [0, 1],
  );
});

test('The commits of a comparison and what a search finds are all listed up to their weight, and fewer at one byte more', () => {
  const usual = pageAsked(asked(''), 100);
  for (const bytesMax of [COMMITS_BYTES_MAX, FOUND_BYTES_MAX]) {
    const rows = (last: number): number =>
      rowsWithin([bytesMax - 99, ...list(98).map(() => 1), last], usual, (length) => html`${x(length)}`, bytesMax).rows
        .length;
    assert.deepEqual([rows(1), rows(2)], [100, 50]);
  }
});

test('A search is read up to its limit, for repositories and for refs', () => {
  for (const [read, lengthMax] of [
    [searchedText, SEARCH_LENGTH_MAX],
    [(visit: { readonly url: URL }) => searchAsked({ visit }), REFS_SEARCH_LENGTH_MAX],
  ] as const) {
    assert.equal(read(asked(`q=${x(lengthMax)}`)), x(lengthMax));
    assert.equal(read(asked(`q=${x(lengthMax + 1)}`)), x(lengthMax));
  }
});

describe('A restoration', () => {
  test('lists changes up to the limit, and counts the others', () => {
    const table = (count: number) =>
      updatesTable(
        list(count).map((n) => ({
          ...({ ref: `refs/heads/b${n}`, kind: 'delete', type: null, peeled: null } as const),
          ...{ before: '1'.repeat(40), after: ZERO_OBJECT_ID },
        })),
      );
    const [full, more] = [table(UPDATES_SHOWN_MAX), table(UPDATES_SHOWN_MAX + 1)];
    const rows = [full, more].map((part) => countOf(part, /Is deleted/g));
    assert.deepEqual(rows, [UPDATES_SHOWN_MAX, UPDATES_SHOWN_MAX]);
    assert.deepEqual(
      [full, more].map((part) => countOf(part, /And 1 more/g)),
      [0, 1],
    );
  });

  test('names what it leaves out up to the limits of the page and of a message, and counts the others', () => {
    for (const most of [NAMES_SHOWN_MAX, NAMES_IN_MESSAGE_MAX]) {
      const names = list(most).map((n) => `b${n}`);
      assert.equal(namesText(names, most), names.join(', '));
      assert.equal(namesText([...names, 'more'], most), `${names.join(', ')} and 1 more`);
    }
  });
});

test('A README is shown from the least room on, and not in less', async () => {
  const readme = { id: objectId('1'.repeat(40)), text: 'Reads the sky', ref: 'main', names: [Buffer.from('README')] };
  const shown = async (room: number) => shortenedReadme(() => assert.fail('it is not Markdown'), readme, room);
  assert.match((await shown(MARKUP_BYTES_MIN)).markup.markup(), /Reads the sky/);
  assert.equal((await shown(MARKUP_BYTES_MIN - 1)).markup.markup(), '');
});
