/** The pages of a repository whose every name and text is as long as it may be: they stay below their weight. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { LONG_PAGE_BYTES_MAX } from '../../../../apps/website/rendering/weight.ts';
import { REF_COMPONENT_BYTES_MAX } from '../../../../core/git/ref-name.ts';
import {
  LINKED_NAME_BYTES_MAX,
  REPOSITORY_DESCRIPTION_LENGTH_MAX,
  REPOSITORY_NAME_LENGTH_MAX,
  USERNAME_LENGTH_MAX,
} from '../../../../core/kernel/limits.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser } from '../../../support/form-browser.ts';
import { signIn } from '../../../support/site-browser.ts';
import { type Account, api, createAccount, git, gitUrl, newWorkTree, type Strata } from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';

const FILES = 110;
const REFS = 25;
const COMMITS = 60;
/** A file's name takes 255 bytes on the file systems that people use. */
const FILE_NAME_BYTES_MAX = 255;

/** Repeats a text to this many bytes at most, of which the end is the number. */
const long = (text: string, bytesMax: number, number = 0): string => {
  const end = `-${number}`;
  return text.repeat(Math.floor((bytesMax - end.length) / Buffer.byteLength(text))) + end;
};

/** Words whose characters grow most in an address, in markup, and not at all. */
const WORDS = { ascii: 'unbreakable', kana: 'かな', escaped: `<&'"=` } as const;

/** The home and the folders show a README. */
const SHOWS_FILE = /^\/[^/]+\/[^/?]+(\/(blob|blame|commit|compare|tree)[/?].*|\?.*)?$/;

describe('The pages of a repository of the longest names', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let owner: Account;
  let browser: SiteBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    owner = await createAccount(strata, 'longname'.repeat(5).slice(0, USERNAME_LENGTH_MAX));
    browser = await signIn(strata, owner);
  });

  /** Pushes a repository whose names are made of the word. Returns its name and the address of a file in folders. */
  async function push(word: string, number: number): Promise<{ readonly home: string; readonly file: string }> {
    const name = long('repository', REPOSITORY_NAME_LENGTH_MAX, number);
    const description = word.repeat(REPOSITORY_DESCRIPTION_LENGTH_MAX).slice(0, REPOSITORY_DESCRIPTION_LENGTH_MAX);
    const made = await api(strata, owner.token, 'POST', '/v1/repositories', { name, description });
    assert.equal(made.status, 201, made.text);
    const file = [long(word, FILE_NAME_BYTES_MAX, 1), long(word, FILE_NAME_BYTES_MAX, 2)].join('/');
    const work = await newWorkTree(ending);
    await git(work, ['fast-import', '--quiet', '--force'], history(word, file));
    await git(work, ['push', '--quiet', gitUrl(strata, owner, name), 'refs/heads/*', 'refs/tags/*']);
    const home = `/${owner.username}/${name}`;
    return { home, file: file.split('/').map(encodeURIComponent).join('/') };
  }

  for (const [number, [kind, word]] of Object.entries(WORDS).entries()) {
    test(`weigh less than a page may, with names of ${kind} characters`, async () => {
      const { home, file } = await push(word, number);
      const [folder = ''] = file.split('/');
      const branch = encodeURIComponent(refName(word, 1));
      const addresses = [
        ...[
          `/${owner.username}`,
          home,
          `${home}/branches`,
          `${home}/tags`,
          `${home}/moments`,
          `${home}/activity`,
          `${home}/settings`,
        ],
        ...[`${home}/tree/main`, `${home}/tree/main/${folder}`, `${home}/tree/${branch}`, `${home}/blob/main/${file}`],
        ...[`${home}/blob/${branch}/${file}`, `${home}/blob/main/README.md`, `${home}/commits/main`],
        ...[`${home}/blame/main/${file}`, `${home}/blame/${branch}/${file}`, `${home}/blame/main/README.md`],
        ...[`${home}/commits/${branch}/${file}`, `${home}/commit/${await tipOf(home)}`],
        `${home}/compare/${encodeURIComponent(refName(word, 2))}...main`,
        `${home}/files?ref=${branch}`,
        `${home}/files?ref=${branch}&q=${encodeURIComponent(word)}`,
        `${home}/search?ref=${branch}&q=${encodeURIComponent(word)}`,
        `${home}/commits/${branch}?text=${encodeURIComponent(word)}`,
      ];
      const at = `at=${new Date().toISOString()}`;
      const past = addresses.slice(1).map((address) => `${address}${address.includes('?') ? '&' : '?'}${at}`);
      for (const address of kind === 'escaped' ? [...addresses, ...past] : addresses) {
        const { status, bytes } = await browser.get(address);
        assert.equal(status, 200, address);
        const most = SHOWS_FILE.test(address) ? LONG_PAGE_BYTES_MAX : PAGE_BYTES_MAX;
        assert.ok(bytes.length < most, `${address} has ${bytes.length} bytes`);
      }
    });
  }

  async function tipOf(home: string): Promise<string> {
    const [, id = ''] = /\/commit\/([0-9a-f]{40})/.exec((await browser.get(home)).html) ?? [];
    return id;
  }

  test('weigh less than a page may where a file is in a thousand folders', async () => {
    await api(strata, owner.token, 'POST', '/v1/repositories', { name: 'deep' });
    const folders = Array.from({ length: 1_000 }, (_, n) => `d${n}`);
    const file = [...folders, 'file'].join('/');
    const work = await newWorkTree(ending);
    const head = 'commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nx\n';
    await git(work, ['fast-import', '--quiet', '--force'], `${head}M 100644 inline ${file}\ndata 1\nx\n`);
    await git(work, ['push', '--quiet', gitUrl(strata, owner, 'deep'), 'main']);
    const kinds = ['blob', 'blame', 'commits'].map((kind) => `${kind}/main/${file}`);
    for (const address of [`tree/main/${folders.join('/')}`, ...kinds]) {
      const { status, bytes, html } = await browser.get(`/${owner.username}/deep/${address}`);
      assert.equal(status, 200);
      assert.ok(bytes.length < PAGE_BYTES_MAX, `${address.slice(0, 10)} has ${bytes.length} bytes`);
      const nearest = address.startsWith('tree') ? 'd998' : 'd999';
      assert.match(html, new RegExp(`/…/<a href="[^"]*/${nearest}">${nearest}</a>/<strong>`));
    }
  });

  test('show the start of a name that no address could hold, without a link and without its last commit', async () => {
    const made = await api(strata, owner.token, 'POST', '/v1/repositories', { name: 'beyond' });
    assert.equal(made.status, 201, made.text);
    const work = await newWorkTree(ending);
    const names = ['x'.repeat(LINKED_NAME_BYTES_MAX), 'y'.repeat(LINKED_NAME_BYTES_MAX + 1)];
    const changes = names.map((name) => `M 100644 inline ${name}\ndata 0\n`).join('');
    const commit = 'commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 5\nfiles\n';
    await git(work, ['fast-import', '--quiet', '--force'], `${commit}${changes}\n`);
    await git(work, ['push', '--quiet', gitUrl(strata, owner, 'beyond'), 'refs/heads/main']);
    const { status, html } = await browser.get(`/${owner.username}/beyond`);
    assert.equal(status, 200);
    const rowOf = (letter: string): string =>
      html.split('<tr>').find((row) => row.includes(`${letter.repeat(50)}`)) ?? assert.fail(`no row of ${letter}`);
    assert.match(rowOf('x'), /<a href="[^"]*x{4096}">x+…<\/a>.*\/commit\//s);
    assert.match(rowOf('y'), /<bdi><span>y+…<\/span><\/bdi>/);
    assert.doesNotMatch(rowOf('y'), /href="[^"]*\/(blob|commit)\//);
  });

  test('list every row, though fewer are on a page', async () => {
    const { home } = await push(WORDS.ascii, 9);
    const rows = new Set<string>();
    let next: string | undefined = `${home}/tree/main`;
    for (let pages = 0; next !== undefined; pages += 1) {
      assert.ok(pages < 40, 'the pages end');
      const { html } = await browser.get(next);
      for (const [, row = ''] of html.matchAll(/<bdi><a href="[^"]*\/blob\/main\/([^"/]*)"/g)) rows.add(row);
      const [, found] = /rel="next" href="([^"]*)"/.exec(html) ?? [];
      next = found?.replaceAll('&#61;', '=').replaceAll('&#38;', '&');
      if (next !== undefined) assert.match(next, /size=/);
    }
    // A folder takes the place of one of the files, and a README is beside them.
    assert.equal(rows.size, FILES);
  });
});

function refName(word: string, number: number): string {
  return long(
    word.replaceAll(/[^\w-]/gu, (character) => (character > '~' ? character : '=')),
    REF_COMPONENT_BYTES_MAX,
    number,
  );
}

/**
 * A branch `main` of many commits, one of which changes many files, and many branches and tags, for git fast-import.
 */
function history(word: string, deep: string): string {
  const data = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const quoted = (path: string): string => `"${path.replaceAll('"', '\\"')}"`;
  const file = (path: string, text: string): string => `M 100644 inline ${quoted(path)}\n${data(text)}`;
  const line = `${word.repeat(20)}\n`;
  const files = [
    ...Array.from({ length: FILES }, (_, n) => file(long(word, FILE_NAME_BYTES_MAX, n), line)),
    file('README.md', `# ${word.repeat(30)}\n\n${`[${word}](${encodeURIComponent(word)}.md) ${line}\n`.repeat(300)}`),
    file(deep, line.repeat(2_000)),
  ];
  const person = `${word.repeat(40).replaceAll(/[<>]/g, '=')} <a@example.org>`;
  const commits = Array.from({ length: COMMITS }, (_, n) => {
    const from = n === 0 ? '' : `from :${n}\n`;
    const changes = n === 0 ? files.join('') : n === COMMITS - 1 ? file(deep, `${line.repeat(1_999)}x\n`) : '';
    return `commit refs/heads/main\nmark :${n + 1}\ncommitter ${person} ${1_700_000_000 + n} +0000\n${data(word.repeat(100))}${from}${changes}\n`;
  });
  const refs = Array.from({ length: REFS }, (_, n) => [
    `reset refs/heads/${refName(word, n)}\nfrom :${n + 1}\n\n`,
    `tag ${refName(word, n)}\nfrom :${n + 1}\ntagger ${person} 1700000000 +0000\n${data(word.repeat(100))}`,
  ]);
  return [...commits, ...refs.flat()].join('');
}
