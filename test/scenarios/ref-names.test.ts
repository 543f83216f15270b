/**
 * The attack: a pushed name takes over what others pinned. A tag called like the id of another commit, a branch called
 * like the full name of a tag, a branch that begins with an id: each changed what links, scripts and archives showed.
 *
 * One table of cases drives every surface that reads a ref, and git itself beside them.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser } from '../support/form-browser.ts';
import { recordRefs } from '../support/recorded-refs.ts';
import { answersIn, type Letter, REF_CASES, type RefCase } from '../support/ref-cases.ts';
import { addressMeaning, meaningOf } from '../support/ref-meaning.ts';
import { createDice } from '../support/seeded.ts';
import { signIn } from '../support/site-browser.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('A text that names a ref', () => {
  const ending = suiteEnding();
  const ids = new Map<Letter, string>();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;

  beforeAll(async () => {
    shared = await sharedParts(ending, 'postgres');
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    for (const letter of ['A', 'B', 'C', 'D'] as const) {
      await git(work, ['checkout', '--quiet', '--orphan', `tip-${letter}`]);
      await commitFile(work, 'README.md', `[${letter}](docs/which.txt)`);
      await commitFile(work, 'which.txt', letter);
      await commitFile(work, 'docs/which.txt', letter);
      ids.set(letter, (await git(work, ['rev-parse', 'HEAD'])).trim());
    }
  });

  const idOf = (letter: Letter): string => ids.get(letter) ?? '';
  const filled = (text: string): string =>
    text
      .replaceAll(/\{([A-D])\}/g, (_, letter: Letter) => idOf(letter))
      .replaceAll(/\{\^([A-D])\}/g, (_, letter: Letter) => idOf(letter).toUpperCase())
      .replaceAll('{64}', 'ab'.repeat(32));
  const filledRefs = (refs: RefCase['refs']): Record<string, string> =>
    Object.fromEntries(Object.entries(refs).map(([name, letter]) => [filled(name), idOf(letter)]));

  /** Makes a repository that holds all commits. Its refs are what is recorded afterwards. */
  async function madeRepository(name: string): Promise<{ readonly id: string; readonly url: string }> {
    const url = await createRepository(strata, ada, name);
    await git(work, ['push', '--quiet', url, 'refs/heads/tip-*:refs/heads/tip-*']);
    const { body } = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`);
    return { id: (body as { id: string }).id, url };
  }

  type Read = (name: string, text: string) => Promise<string | null>;

  const rest = async (target: string) => {
    const answer = await api(strata, ada.token, 'GET', target);
    assert.ok([200, 404, 422].includes(answer.status), `${target}: ${answer.status} ${answer.text}`);
    return answer;
  };
  const page = async (target: string) => {
    const shown = await browser.follow(await browser.get(target));
    assert.ok([200, 404].includes(shown.status), `${target}: ${shown.status}`);
    return shown.status === 200 ? shown.html : null;
  };
  const commitLinked = (html: string | null): string | null => /\/commit\/([0-9a-f]{40})/.exec(html ?? '')?.[1] ?? null;

  const firstLine = (html: string | null): string | null =>
    html === null ? null : idOf((/<a id="L1"[^>]*>1<\/a>([A-D])/.exec(html)?.[1] ?? '') as Letter);

  /** Each returns the commit that a text leads to. */
  const TEXT_SURFACES: Readonly<Record<string, Read>> = {
    contents: async (name, text) => {
      const { status, body } = await rest(`/v1/repos/ada/${name}/contents?ref=${encodeURIComponent(text)}`);
      const { commit, ref } = (body ?? {}) as { commit: string; ref: string };
      if (status === 200 && text !== '') assert.equal(ref, text);
      return status === 200 ? commit : null;
    },
    'contents of a file': async (name, text) => {
      const { status, body } = await rest(
        `/v1/repos/ada/${name}/contents/docs/which.txt?ref=${encodeURIComponent(text)}`,
      );
      return status === 200 ? idOf((body as { content: Letter }).content) : null;
    },
    'raw contents': async (name, text) => {
      const { status, text: content } = await rest(
        `/v1/repos/ada/${name}/contents/which.txt?raw=true&ref=${encodeURIComponent(text)}`,
      );
      return status === 200 ? idOf(content as Letter) : null;
    },
    commits: async (name, text) => {
      const { status, body } = await rest(`/v1/repos/ada/${name}/commits?ref=${encodeURIComponent(text)}`);
      const { branch, commits } = (body ?? {}) as { branch: string; commits: { hexsha: string }[] };
      if (status === 200 && text !== '') assert.equal(branch, text, '`branch` repeats what was asked');
      return status === 200 ? (commits[0]?.hexsha ?? null) : null;
    },
    'commits of a path': async (name, text) => {
      const { status, body } = await rest(`/v1/repos/ada/${name}/commits?path=docs&ref=${encodeURIComponent(text)}`);
      return status === 200 ? ((body as { commits: { hexsha: string }[] }).commits[0]?.hexsha ?? null) : null;
    },
    blame: async (name, text) => {
      const { status, body } = await rest(`/v1/repos/ada/${name}/blame/which.txt?ref=${encodeURIComponent(text)}`);
      return status === 200 ? (body as { commit: string }).commit : null;
    },
    search: async (name, text) => {
      const query = new URLSearchParams({ q: '](docs', ref: text });
      const { status, body } = await rest(`/v1/repos/ada/${name}/search?${query}`);
      const { matches } = (body ?? {}) as { matches: { text: string }[] };
      return status === 200 ? idOf((matches[0]?.text.slice(1, 2) ?? '') as Letter) : null;
    },
    comparison: async (name, text) => {
      if (text === '') return meaningless;
      const { status, body } = await rest(`/v1/repos/ada/${name}/compare/${encodeURIComponent(`${text}...${text}`)}`);
      return status === 200 ? (body as { merge_base: string }).merge_base : null;
    },
    archive: async (name, text) => {
      if (text === '') return meaningless;
      const { status, headers } = await rest(`/v1/repos/ada/${name}/archive/${encodeURIComponent(text)}.tar.gz`);
      return status === 200 ? (/[0-9a-f]{40}/.exec(headers.get('etag') ?? '')?.[0] ?? 'no id') : null;
    },
    compare: async (name, text) => {
      if (text === '') return meaningless;
      const query = new URLSearchParams({ base: text, head: text });
      return commitLinked(await page(`/ada/${name}/compare?${query}`));
    },
    switch: async (name, text) => commitLinked(await page(`/ada/${name}/switch?${new URLSearchParams({ ref: text })}`)),
  };
  /** This surface takes no such text. */
  const meaningless = 'meaningless';

  const encoded = (address: string): string => address.split('/').map(encodeURIComponent).join('/');
  const ADDRESS_SURFACES: Readonly<
    Record<string, (name: string, address: string, query: string) => Promise<string | null>>
  > = {
    tree: async (name, address, query) =>
      commitLinked(await page(`/ada/${name}/tree/${encoded(address)}/docs${query}`)),
    blob: async (name, address, query) =>
      firstLine(await page(`/ada/${name}/blob/${encoded(address)}/docs/which.txt${query}`)),
    blame: async (name, address, query) =>
      firstLine(await page(`/ada/${name}/blame/${encoded(address)}/docs/which.txt${query}`)),
    raw: async (name, address, query) => {
      const shown = await browser.get(`/ada/${name}/raw/${encoded(address)}/docs/which.txt${query}`);
      return shown.status === 200 ? idOf(shown.bytes.toString() as Letter) : null;
    },
    commits: async (name, address, query) =>
      commitLinked(await page(`/ada/${name}/commits/${encoded(address)}/docs${query}`)),
  };

  /** What git's own client finds by the text, in the form that it has for it; undefined where git has none. */
  async function byGit(url: string, text: string): Promise<string | null | undefined> {
    const folder = await tempDir(ending);
    if (text === 'HEAD' || text.startsWith('refs/') || /^[0-9a-f]{40}$/.test(text)) {
      await git(folder, ['init', '--quiet', '--bare']);
      const fetched = await tryGit(folder, ['fetch', '--quiet', url, `${text}:refs/found/it`]);
      return fetched.code === 0 ? (await git(folder, ['rev-parse', 'refs/found/it'])).trim() : null;
    }
    if (text === '' || /^[0-9A-F]{40}$/.test(text) || text.startsWith('-')) return undefined;
    const clone = path.join(folder, 'clone.git');
    const cloned = await tryGit(folder, ['clone', '--quiet', '--bare', '--branch', text, url, clone]);
    return cloned.code === 0 ? (await git(clone, ['rev-parse', 'HEAD'])).trim() : null;
  }

  for (const [index, { title, refs, defaultBranch = 'main', texts, addresses }] of REF_CASES.entries()) {
    test(`has one meaning everywhere: ${title}`, { timeout: 60_000 }, async () => {
      const name = `case-${index}`;
      const asked = answersIn(texts);
      const { id, url } = await madeRepository(name);
      const about = { account: ada.id, repository: id };
      const moment = await recordRefs(shared, { ...about, refs: filledRefs(refs), defaultBranch });
      const expected = (letter: Letter | null) => (letter === null ? null : idOf(letter));
      for (const [text, answer] of asked) {
        for (const [surface, read] of Object.entries(TEXT_SURFACES)) {
          const found = await read(name, filled(text));
          if (found !== meaningless) assert.equal(found, expected(answer), `${surface} of ${text}`);
        }
      }
      const plain = asked.filter(([text]) => text !== '' && text !== 'refs' && !text.includes('/'));
      const placed = [...plain, ...answersIn(addresses)];
      for (const [address, answer] of placed) {
        for (const [surface, read] of Object.entries(ADDRESS_SURFACES)) {
          assert.equal(await read(name, filled(address), ''), expected(answer), `${surface}/${address}`);
        }
      }
      const states = new Set<string>();
      for (const [text, answer] of asked) {
        // For an id that no ref reaches git answers by what the layers hold (docs/git-path.md, Wants), and of a full
        // name that is not there its client takes another ref by rules of its own.
        if (answer === null && /^\{|^f{40}$|^HEAD$|^refs\//.test(text)) continue;
        const found = await byGit(url, filled(text));
        if (found !== undefined) assert.equal(found, expected(answer), `git of ${text}`);
        states.add(found === undefined ? 'none' : 'asked');
      }
      assert.ok(states.has('asked'));

      // The same as of this moment, when all of it is gone.
      await recordRefs(shared, { ...about, refs: { 'refs/heads/main': idOf('D') }, defaultBranch: 'main' });
      const now = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}/contents?ref=main`);
      assert.equal((now.body as { commit: string }).commit, idOf('D'));
      for (const [address, answer] of placed) {
        for (const [surface, read] of Object.entries(ADDRESS_SURFACES)) {
          const found = await read(name, filled(address), `?at=${moment}`);
          assert.equal(found, expected(answer), `${surface}/${address} as of that time`);
        }
      }
      for (const [text, answer] of asked) {
        if (text === '') continue;
        const query = new URLSearchParams({ base: filled(text), head: filled(text), at: moment });
        const found = commitLinked(await page(`/ada/${name}/compare?${query}`));
        assert.equal(found, expected(answer), `compare of ${text} as of that time`);
      }
      const then = path.join(await tempDir(ending), 'then.git');
      await git(work, ['clone', '--quiet', '--mirror', url.replace(/\.git$/, `@${moment}.git`), then]);
      const cloned = await git(then, ['for-each-ref', '--format=%(refname) %(objectname)']);
      const recorded = Object.entries(filledRefs(refs)).map(([ref, tip]) => `${ref} ${tip}\n`);
      assert.deepEqual(cloned.split(/(?<=\n)/).sort(), recorded.sort());
    });
  }

  test('has the meaning that the model gives it, in random sets of refs', { timeout: 120_000 }, async () => {
    const dice = createDice(30);
    const { id } = await madeRepository('random');
    const letters = ['A', 'B', 'C'] as const;
    const component = (): string =>
      dice.pick(['HEAD', 'refs', 'heads', 'tags', 'main', 'docs', 'x', '{A}', '{^B}', '{64}']);
    const words = (): string => Array.from({ length: 1 + dice.below(3) }, component).join('/');
    for (let round = 0; round < 12; round += 1) {
      const refs: Record<string, string> = { 'refs/heads/main': idOf('A') };
      for (let count = 0; count < 12; count += 1) {
        const name = filled(`refs/${dice.pick(['heads', 'heads', 'tags', 'notes'])}/${words()}`);
        const collides = Object.keys(refs).some(
          (other) => `${other}/`.startsWith(`${name}/`) || `${name}/`.startsWith(`${other}/`),
        );
        if (!collides) refs[name] = idOf(dice.pick(letters));
      }
      const set = {
        refs,
        defaultBranch: dice.pick([
          'main',
          ...Object.keys(refs).flatMap((ref) => /^refs\/heads\/(.*)/.exec(ref)?.[1] ?? []),
        ]),
      };
      await recordRefs(shared, { account: ada.id, repository: id, ...set });
      const reached = new Set(Object.values(refs));
      for (let count = 0; count < 14; count += 1) {
        const isFull = dice.chance(0.4);
        const text = isFull ? dice.pick(Object.keys(refs)) : filled(words());
        const meant = meaningOf(set, text);
        const expected = meant !== null && reached.has(meant) ? meant : null;
        assert.equal(await TEXT_SURFACES['contents']?.('random', text), expected, `${text} in ${JSON.stringify(set)}`);
        assert.equal(await TEXT_SURFACES['commits']?.('random', text), expected, `${text} in ${JSON.stringify(set)}`);
        const address = addressMeaning(set, `${text}/docs/which.txt`);
        const isThere = address?.path === 'docs/which.txt' || address?.path === 'which.txt';
        const shown = isThere && address.id !== null && reached.has(address.id) ? address.id : null;
        assert.equal(
          await ADDRESS_SURFACES['raw']?.('random', text, ''),
          shown,
          `raw/${text} in ${JSON.stringify(set)}`,
        );
      }
    }
  });

  test('has no answer of before confirmed to a client that kept it', async () => {
    await madeRepository('kept');
    const target = `/v1/repos/ada/kept/commits?ref=${idOf('A')}`;
    const { headers } = await api(strata, ada.token, 'GET', target);
    const etag = headers.get('etag') ?? '';
    const ask = (tag: string) =>
      fetch(strata.url + target, { headers: { Authorization: `Bearer ${ada.token}`, 'If-None-Match': tag } });
    assert.equal((await ask(etag)).status, 304);
    // Until now the tag named the refs alone, whatever the text of the ref meant.
    assert.equal((await ask(etag.replace('-c2"', '-c1"'))).status, 200);
    assert.match(etag, /-c2"$/);
  });

  test('leads on from a page to the same ref, whatever other refs there are', async () => {
    const { id } = await madeRepository('links');
    const refs = {
      'refs/heads/main': 'A',
      'refs/heads/HEAD/docs': 'B',
      'refs/heads/{A}': 'C',
      'refs/tags/main/docs': 'B',
    } as const;
    const defaultBranch = 'HEAD/docs';
    await recordRefs(shared, { account: ada.id, repository: id, refs: filledRefs(refs), defaultBranch });
    const home = (await page('/ada/links')) ?? '';
    assert.equal(commitLinked(home), idOf('B'));
    const links = [
      ...new Set([...home.matchAll(/href="(\/ada\/links\/(?:tree|blob)\/[^"]*)"/g)].map(([, link = '']) => link)),
    ];
    assert.ok(links.length >= 5, links.join('\n'));
    assert.ok(links.includes('/ada/links/tree/refs/heads/HEAD/docs/docs'), links.join('\n'));
    const branches = (await page('/ada/links/branches')) ?? '';
    for (const [link, letter] of [
      [`/ada/links/tree/refs/heads/${idOf('A')}`, 'C'],
      ['/ada/links/tree/refs/heads/HEAD/docs', 'B'],
      ['/ada/links/tree/main', 'A'],
    ] as const) {
      assert.ok(branches.includes(`href="${link}"`), link);
      assert.equal(commitLinked(await page(link)), idOf(letter), link);
    }
    const readme = (await page('/ada/links/tree/main')) ?? '';
    assert.ok(readme.includes('href="/ada/links/blob/refs/heads/main/docs/which.txt"'), 'a link of a README');
    const commits = await browser.get('/ada/links/commits');
    assert.equal(commits.location, '/ada/links/commits/refs/heads/HEAD/docs');
    const folder = (await page('/ada/links/tree/refs/heads/main')) ?? '';
    assert.ok(folder.includes('href="/ada/links/tree/refs/heads/main/docs"'), 'not the tag main/docs');
  });
});
