/** The pages of repositories: what real git pushed, read in a browser without scripts on a real server. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { LONG_PAGE_BYTES_MAX, LONG_PAGE_ROOM } from '../../../../apps/website/rendering/weight.ts';
import { PAGE_ENTRIES_MAX } from '../../../../apps/website/repositories/tree.ts';
import { PAGE_COMMITS_MAX } from '../../../../core/kernel/limits.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../../../support/form-browser.ts';
import { signIn } from '../../../support/site-browser.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';
import { tempDir } from '../../../support/temp-dir.ts';

describe('The pages of repositories', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;
  let tip: string;

  const page = async (address: string): Promise<SitePage> => {
    const shown = await browser.get(address);
    assert.equal(shown.status, 200, `${address}: ${shown.html.slice(0, 2_000)}`);
    return shown;
  };
  const textOf = ({ html }: SitePage): string => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'engine');
    await commitFile(work, 'src/lib/index.ts', 'const answer = 42;\n// <b>not bold</b>\n');
    await commitFile(work, 'manual/guide.md', '# Guide\n\n[home](../README.md) ![logo](logo.png)\n');
    await commitFile(work, 'manual/logo.png', 'not really an image');
    await commitFile(work, 'long.txt', Array.from({ length: 3_000 }, (_, n) => `line number ${n + 1}\n`).join(''));
    await commitFile(
      work,
      'large.txt',
      Array.from({ length: 60_000 }, (_, n) => `line ${n + 1} of a large file\n`).join(''),
    );
    await commitFile(work, 'newlines', '\n'.repeat(200_000));
    await commitFile(work, 'binary', '\0\x01\x02');
    await commitFile(work, 'odd/values.csv', 'name,count\n"a, b",1\n');
    await commitFile(work, 'odd/film.mp4', '\0not a film');
    const links = { 'to-file': '../long.txt', 'to-folder': '../manual/', 'to-nothing': 'gone', outside: '../../etc' };
    for (const [name, target] of Object.entries(links)) {
      const id = (await git(work, ['hash-object', '-w', '--stdin'], target)).trim();
      await git(work, ['update-index', '--add', '--cacheinfo', `120000,${id},odd/${name}`]);
    }
    await commitFile(work, 'empty', '');
    await commitFile(work, 'große Datei #1?.txt', 'umlaut');
    await commitFile(work, 'README.md', '# Engine\n\nReads [the guide](manual/guide.md).\n');
    await git(work, ['update-index', '--force-remove', 'README']);
    tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['branch', 'feature/one', `${tip}~1`]);
    await git(work, ['tag', '-a', 'v1.0', '-m', 'one']);
    await git(work, ['push', '--quiet', url, 'refs/heads/*', 'refs/tags/*']);
    await api(strata, ada.token, 'PATCH', '/v1/repos/ada/engine', { description: 'Reads the sky' });
  });

  test('list the account’s repositories with sizes, and find them by a part of their name or description', async () => {
    await createRepository(strata, ada, 'telescope');
    const all = textOf(await page('/ada'));
    assert.match(all, /engine Reads the sky (just now|.* ago) .*KiB.*telescope empty/);
    assert.match(textOf(await page('/ada?q=SKY')), /1 repository found/);
    const found = textOf(await page('/ada?q=TELE'));
    assert.match(found, /telescope/);
    assert.doesNotMatch(found, /engine/);
    const nothing = await page(`/ada?q=${encodeURIComponent('"><script>alert(1)</script>')}`);
    assert.match(nothing.html, /value="&#34;&#62;&#60;script/);
    assert.match(textOf(nothing), /Nothing found .*Show all repositories/);
    assert.match(nothing.html, /<a href="\/ada">Show all repositories/);
    assert.match(textOf(await page('/ADA')), /engine/);
  });

  test('show a home with the last commit, the files, the README and the address to clone', async () => {
    const home = await page('/ada/engine');
    const text = textOf(home);
    assert.match(text, /ada \/ engine Reads the sky/);
    assert.match(text, /A U Thor Write README.md/);
    assert.match(
      text,
      /manual Write manual\/logo.png .* src Write src\/lib\/index.ts/,
      'folders first, each with its last commit',
    );
    assert.match(home.html, /<h3 id="engine">Engine<\/h3>/);
    assert.match(home.html, /<a href="\/ada\/engine\/blob\/main\/manual\/guide.md">the guide<\/a>/);
    const [, shownUrl = ''] = /<code[^>]*>(http[^<]*engine\.git)<\/code>/.exec(home.html) ?? [];
    assert.equal(shownUrl, `${strata.url}/r/ada/engine.git`);
    assert.match(home.html, /<title>ada\/engine · Strata<\/title>/);
  });

  test('are reached by an address that ends in .git, which no repository’s name does', async () => {
    for (const [address, home] of [
      ['/ada/engine.git', '/ada/engine'],
      ['/ada/engine.GIT/?at=20990101T000000Z', '/ada/engine?at=20990101T000000Z'],
      ['/ada/nothing.git', '/ada/nothing'],
    ] as const) {
      const answer = await browser.get(address);
      assert.deepEqual([answer.status, answer.location], [303, home], address);
      const stranger = await fetch(strata.url + address, { redirect: 'manual' });
      assert.match(stranger.headers.get('location') ?? '', /^\/sign-in\?next=%2Fada%2F(engine|nothing)\.git/i);
    }
    for (const address of ['/ada/.git', '/ada/%0d%0ax.git', '/ada/%2f%2fevil.example.git', '/ada/..%2f.git']) {
      assert.equal((await browser.get(address)).status, 404, address);
    }
  });

  test('show an empty repository’s commands with the person’s own address, which work as they are', async (context) => {
    await createRepository(strata, ada, 'fresh');
    const home = await page('/ada/fresh');
    const commands = [...home.html.matchAll(/<code[^>]*>([^<]*)<\/code>/g)].map(([, text]) => text ?? '');
    assert.equal(commands[0], `git remote add origin ${strata.url}/r/ada/fresh.git`);
    assert.equal(commands[1], 'git push -u origin HEAD');
    const own = await newWorkTree(context);
    await git(own, ['remote', 'add', 'origin', gitUrl(strata, ada, 'fresh')]);
    await git(own, ['push', '--quiet', '-u', 'origin', 'HEAD']);
    assert.match(textOf(await page('/ada/fresh')), /Write README/);
  });

  test('show folders, and lead from a file to its page and back', async () => {
    const tree = await page('/ada/engine/tree/main/src/lib');
    assert.match(tree.html, /<a href="\/ada\/engine\/blob\/main\/src\/lib\/index.ts">index.ts<\/a>/);
    assert.match(tree.html, /href="\/ada\/engine\/tree\/main\/src" aria-label="The folder above"/);
    const file = await browser.get('/ada/engine/tree/main/src/lib/index.ts');
    assert.deepEqual([file.status, file.location], [303, '/ada/engine/blob/main/src/lib/index.ts']);
    const folder = await browser.get('/ada/engine/blob/main/src');
    assert.deepEqual([folder.status, folder.location], [303, '/ada/engine/tree/main/src']);
    for (const missing of [
      'tree/main/nothing',
      'blob/main/nothing',
      'raw/main/nothing',
      'raw/main/src',
      'tree/nothing',
      'commits/nothing',
    ]) {
      assert.equal((await browser.get(`/ada/engine/${missing}`)).status, 404, missing);
    }
  });

  test('show the history of a file on under the name that it had before', async () => {
    await git(work, ['symbolic-ref', 'HEAD', 'refs/heads/renamed']);
    await git(work, ['update-ref', 'HEAD', tip]);
    await git(work, ['update-index', '--force-remove', 'manual/guide.md']);
    await commitFile(work, 'manual/<handbook>.md', '# Guide\n\n[home](../README.md) ![logo](logo.png)\n');
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'engine'), 'renamed']);
    await git(work, ['symbolic-ref', 'HEAD', 'refs/heads/main']);
    await git(work, ['read-tree', 'main']);
    const history = await page('/ada/engine/commits/renamed/manual/%3Chandbook%3E.md');
    assert.match(textOf(history), /Write manual\/&#60;handbook&#62;\.md .*Write manual\/guide\.md/);
    assert.match(history.html, /Commits of its earlier name are here too: <code><bdi>manual\/guide\.md<\/bdi><\/code>/);
    const before = await page('/ada/engine/commits/main/manual/guide.md');
    assert.doesNotMatch(before.html, /earlier name/);
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'engine'), ':renamed']);
  });

  test('name the commit that last touched a folder or a file above it', async () => {
    const commitOf = async (file: string): Promise<string> =>
      (await git(work, ['log', '-1', '--format=%H', 'main', '--', file])).trim();
    for (const [kind, file] of [
      ['tree', 'src'],
      ['tree', 'src/lib'],
      ['tree', 'manual'],
      ['blob', 'src/lib/index.ts'],
      ['blob', 'manual/guide.md'],
      ['blob', 'binary'],
    ] as const) {
      const { html } = await page(`/ada/engine/${kind}/main/${file}`);
      const [, id] =
        /<header><strong[^>]*>A U Thor<\/strong> <a class="subject"[^>]*\/commit\/([0-9a-f]{40})"/.exec(html) ?? [];
      assert.equal(id, await commitOf(file), `${kind} ${file}`);
      assert.notEqual(id, tip);
    }
  });

  test('show a file with numbers that are links, colours, and its name as it is', async () => {
    const file = await page('/ada/engine/blob/main/src/lib/index.ts');
    assert.match(
      file.html,
      /<a id="L1" href="#L1">1<\/a><span class=key>const<\/span> answer = <span class=num>42<\/span>;/,
    );
    assert.match(file.html, /<span class=com>\/\/ &lt;b&gt;not bold&lt;\/b&gt;<\/span>/);
    assert.match(textOf(file), /2 lines/);
    assert.match(file.html, new RegExp(`href="/ada/engine/blob/${tip}/src/lib/index.ts">Permalink`));
    const odd = await page('/ada/engine/tree/main');
    const [, address = ''] = /href="([^"]*)">große Datei/.exec(odd.html) ?? [];
    assert.equal(address, '/ada/engine/blob/main/gro%C3%9Fe%20Datei%20%231%3F.txt');
    assert.match(textOf(await page(address)), /umlaut/);
    assert.match(textOf(await page('/ada/engine/blob/main/binary')), /not text/);
    assert.match(textOf(await page('/ada/engine/blob/main/empty')), /This file is empty/);
  });

  test('show Markdown rendered, and its source when asked', async () => {
    const guide = await page('/ada/engine/blob/main/manual/guide.md');
    assert.match(guide.html, /<a href="\/ada\/engine\/blob\/main\/README.md">home<\/a>/);
    assert.match(guide.html, /<img src="\/ada\/engine\/raw\/main\/manual\/logo.png" alt="logo" loading="lazy" \/>/);
    assert.match(
      (await page('/ada/engine/blob/main/manual/guide.md?view=source')).html,
      /<span class=def># Guide<\/span>/,
    );
  });

  test('show a long file on one page, and in windows what no page holds', async () => {
    const whole = await page('/ada/engine/blob/main/long.txt');
    const numbers = (html: string) =>
      [...html.matchAll(/<a id="L(\d+)" href="#L\1">\1<\/a>/g)].map(([, n]) => Number(n));
    assert.deepEqual(
      numbers(whole.html),
      Array.from({ length: 3_000 }, (_, n) => n + 1),
    );
    let next: string | null = '/ada/engine/blob/main/newlines';
    let lines = 0;
    let parts = 0;
    while (next !== null) {
      const part: SitePage = await page(next);
      assert.ok(part.bytes.length < LONG_PAGE_BYTES_MAX, `${part.bytes.length} bytes`);
      assert.match(textOf(part), /200,000 lines/);
      const shown = numbers(part.html);
      assert.equal(shown[0], lines + 1);
      lines += shown.length;
      const [, query] = /rel="next" href="([^"]*)"/.exec(part.html) ?? [];
      next = query === undefined ? null : `/ada/engine/blob/main/newlines${query.replaceAll('&#61;', '=')}`;
      parts += 1;
    }
    assert.deepEqual([lines, parts], [200_000, Math.ceil(200_000 / LONG_PAGE_ROOM.elements)]);
    assert.match((await page('/ada/engine/blob/main/newlines?from=99999999')).html, /<a id="L200000"/);
  });

  test('show a large file from any line on, to its end', async () => {
    const large = (await page('/ada/engine/blob/main/large.txt?from=59999')).html;
    assert.match(large, /<a id="L59999" href="#L59999">59999<\/a>line 59999 of a large file\n<a id="L60000"/);
    assert.match(large, /60,000 lines/);
    assert.match((await page('/ada/engine/blob/main/large.txt')).html, /Lines 1–\d+ of 60,000/);
  });

  test('send raw bytes as plain text or as an image, and all else as attachments that nothing runs in', async () => {
    const text = await page('/ada/engine/raw/main/src/lib/index.ts');
    assert.equal(text.html, 'const answer = 42;\n// <b>not bold</b>\n');
    assert.equal(text.headers['content-type'], 'text/plain; charset=utf-8');
    const binary = await page('/ada/engine/raw/main/binary');
    assert.deepEqual([...binary.bytes], [0, 1, 2]);
    assert.equal(binary.headers['content-type'], 'application/octet-stream');
    assert.equal(binary.headers['content-disposition'], 'attachment; filename="binary"');
    const image = await page('/ada/engine/raw/main/manual/logo.png');
    assert.equal(image.headers['content-type'], 'image/png');
    assert.equal(image.headers['content-disposition'], undefined, 'a browser shows it');
    for (const { headers } of [text, binary, image]) {
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.match(headers['content-security-policy'] ?? '', /^default-src 'none';.*; sandbox$/);
    }
  });

  test('send a part of the raw bytes, and nothing to a browser that has them', async () => {
    const raw = '/ada/engine/raw/main/src/lib/index.ts';
    const part = await browser.get(raw, { range: 'bytes=6-11' });
    assert.deepEqual([part.status, part.html], [206, 'answer']);
    assert.equal(part.headers['content-range'], 'bytes 6-11/38');
    const { etag = '' } = part.headers;
    assert.deepEqual((await browser.get(raw, { range: 'bytes=6-11', 'if-range': '"other"' })).status, 200);
    const known = await browser.get(raw, { 'if-none-match': etag });
    assert.deepEqual([known.status, known.bytes.length], [304, 0]);
    const beyond = await browser.get(raw, { range: 'bytes=99-' });
    assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, 'bytes */38']);
    const large = await browser.get('/ada/engine/raw/main/large.txt', { range: 'bytes=5-12' });
    assert.deepEqual([large.status, large.html], [206, '1 of a l']);
  });

  test('show values as a table, what plays with the way to it, and lead on from a link', async () => {
    const table = await page('/ada/engine/blob/main/odd/values.csv');
    assert.match(table.html, /<th scope=col>name<\/th>.*<a id=L2 href=#L2>2<\/a><\/td><td>a, b<\/td>/s);
    assert.match((await page('/ada/engine/blob/main/odd/values.csv?view=source')).html, /&quot;a, b&quot;/);
    assert.match(
      (await page('/ada/engine/blob/main/odd/film.mp4')).html,
      /<a href="\/ada\/engine\/raw\/main\/odd\/film.mp4">Play it/,
    );
    const film = (await page('/ada/engine/raw/main/odd/film.mp4')).headers;
    assert.deepEqual([film['content-type'], film['x-content-type-options']], ['video/mp4', 'nosniff']);
    assert.match(film['content-security-policy'] ?? '', /^default-src 'none';.*; sandbox allow-same-origin$/);
    for (const [link, target] of [
      ['to-file', '<a href="/ada/engine/blob/main/long.txt">'],
      ['to-folder', '<a href="/ada/engine/blob/main/manual">'],
      ['to-nothing', 'which is not in this repository'],
      ['outside', 'which is not in this repository'],
    ] as const) {
      assert.ok((await page(`/ada/engine/blob/main/odd/${link}`)).html.includes(target), link);
    }
  });

  test('list commits by day, those of a ref and those of a path', async () => {
    const first = await browser.get('/ada/engine/commits');
    assert.equal(first.location, '/ada/engine/commits/main');
    const commits = await page('/ada/engine/commits/main');
    const subjects = [...commits.html.matchAll(/<a class="subject"[^>]*>([^<]*)<\/a>/g)].map(([, text]) => text);
    assert.equal(subjects[0], 'Write README.md');
    assert.equal(subjects.length, Number((await git(work, ['rev-list', '--count', 'main'])).trim()));
    assert.match(commits.html, /<h2><time datetime="\d{4}-\d\d-\d\d">\w+day, \d+ \w+ \d{4}<\/time><\/h2>/);
    const history = textOf(await page('/ada/engine/commits/main/manual'));
    assert.match(history, /Write manual\/logo.png.*Write manual\/guide.md/);
    assert.doesNotMatch(history, /Write binary/);
  });

  test('show a commit with its diff in parts that fold', async () => {
    const commit = await page(`/ada/engine/commit/${tip}`);
    assert.match(textOf(commit), /Write README.md .* A U Thor authored .*, C O Mitter committed .* Parent/);
    assert.match(commit.html, /<details class="box file" id="d0" open><summary>.*README.md/);
    assert.match(commit.html, /<div class=added><a id=d0R1 href=#d0R1>1<\/a><span class=def># Engine<\/span><\/div>/);
    assert.match(textOf(commit), /1 file/);
    const long = (await git(work, ['log', '-1', '--format=%H', '--', 'long.txt'])).trim();
    const large = await page(`/ada/engine/commit/${long}`);
    assert.equal(large.html.match(/<div class=added>/g)?.length, 3_000);
    const huge = (await git(work, ['log', '-1', '--format=%H', '--', 'large.txt'])).trim();
    const folded = await page(`/ada/engine/commit/${huge}`);
    assert.match(textOf(folded), /It has 60,000 changed lines, for which this page has no room/);
    let next: string | undefined = /<a data-in-place href="([^"]*)"/.exec(folded.html)?.[1];
    let read = 0;
    while (next !== undefined) {
      const part = await page(next.replaceAll('&#61;', '=').replaceAll('&#38;', '&'));
      assert.ok(part.bytes.length < LONG_PAGE_BYTES_MAX);
      const numbers = [
        ...part.html.matchAll(/<div class=added><a id=d0R(\d+) href=#d0R\1>\1<\/a>line (\d+) of a large file<\/div>/g),
      ];
      assert.equal(Number(numbers[0]?.[1]), read + 1);
      assert.equal(numbers.at(-1)?.[1], numbers.at(-1)?.[2]);
      read += numbers.length;
      next = /rel="next" href="([^"]*)"/.exec(part.html)?.[1];
    }
    assert.equal(read, 60_000);
    const root = (await git(work, ['rev-list', '--max-parents=0', 'main'])).trim();
    assert.match(textOf(await page(`/ada/engine/commit/${root}`)), /it has no parent/);
    for (const id of ['main', 'f'.repeat(10), 'f'.repeat(40), 'HEAD', '--output=x', `${tip}^`]) {
      assert.equal((await browser.get(`/ada/engine/commit/${encodeURIComponent(id)}`)).status, 404, id);
    }
  });

  test('say which push brought a commit, with which token', async () => {
    const pushed = /Pushed (just now|.* ago) with the token scenario/;
    assert.match(textOf(await page(`/ada/engine/commit/${tip}`)), pushed);
    assert.match(textOf(await page('/ada/engine')), /Last push (just now|.* ago) with the token scenario/);
  });

  test('say that nothing differs, and lead from a path that is not there back to the repository', async () => {
    assert.match(textOf(await page('/ada/engine/compare/main...main')), /No file differs/);
    const missing = await browser.get('/ada/engine/blob/main/no/such/file');
    assert.equal(missing.status, 404);
    assert.match(missing.html, /<a class="button" href="\/ada\/engine">Go to ada\/engine<\/a>/);
  });

  test('list branches with their distance, tags by version, and what pushes did to them', async () => {
    const branches = textOf(await page('/ada/engine/branches?sort=name'));
    assert.match(branches, /2 branches .* feature\/one 0 ahead , 1 behind .* main default/);
    assert.match(textOf(await page('/ada/engine/branches?q=FEAT')), /1 branch .*feature\/one/);
    assert.match(textOf(await page('/ada/engine/branches?q=(')), /0 branches Nothing matches “\(” Show all branches/);
    assert.match(textOf(await page('/ada/engine/tags?q=(')), /0 tags Nothing matches “\(” Show all tags/);
    const tags = await page('/ada/engine/tags');
    assert.match(tags.html, /<a href="\/ada\/engine\/tree\/refs\/tags\/v1\.0"><bdi>v1\.0<\/bdi><\/a>/);
    assert.match(textOf(tags), /1 tag Tag Message Leads to When v1\.0 one/);
    const activity = textOf(await page('/ada/engine/activity'));
    assert.match(
      activity,
      /Created 2 branches and 1 tag .*Created the branch main [0-9a-f]{7} .*with the token scenario/,
    );
    assert.match(activity, /Created the tag v1\.0/);
  });

  test('find a ref whose name holds slashes, and lead to the one meant where two could be', async () => {
    assert.match(textOf(await page('/ada/engine/tree/feature/one')), /große Datei/);
    assert.match(textOf(await page('/ada/engine/blob/feature/one/src/lib/index.ts')), /answer/);
    assert.match(textOf(await page('/ada/engine/tree/feature%2Fone/src')), /lib/);
    assert.match(textOf(await page(`/ada/engine/tree/${tip}/src`)), /lib/);
    // The tag `main/src` is longer than the branch `main`, and holds another folder at the same address.
    const source = (await git(work, ['log', '-1', '--format=%H', tip, '--', 'src/lib/index.ts'])).trim();
    await git(work, ['tag', 'main/src', `${source}^`]);
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'engine'), 'main/src']);
    assert.doesNotMatch(textOf(await page('/ada/engine/tree/main/src')), /lib/);
    const home = await page('/ada/engine');
    assert.match(home.html, /href="\/ada\/engine\/tree\/refs\/heads\/main\/src"/);
    assert.match(home.html, /href="\/ada\/engine\/tree\/main\/manual"/);
    assert.match(textOf(await page('/ada/engine/tree/refs/heads/main/src')), /lib/);
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'engine'), ':refs/tags/main/src']);
    for (const [ref, location] of [
      ['feature/one', '/ada/engine/tree/feature/one'],
      ['v1.0', '/ada/engine/tree/v1.0'],
      [tip, `/ada/engine/tree/${tip}`],
    ]) {
      assert.equal((await browser.get(`/ada/engine/switch?ref=${ref}&page=tree`)).location, location);
    }
    assert.equal(
      (await browser.get('/ada/engine/switch?ref=--output=x')).location,
      '/ada/engine/refs?q=--output%3Dx&page=tree',
    );
    const like = await page('/ada/engine/refs?q=FEATURE&page=commits');
    assert.match(like.html, /<h3>Branches<\/h3>.*href="\/ada\/engine\/commits\/feature\/one"/s);
    assert.doesNotMatch(like.html, /href="\/ada\/engine\/commits\/v1\.0"/);
    const none = await page('/ada/engine/refs?q=%3Cb%3E&page=tree');
    assert.match(textOf(none), /No branch and no tag has this in its name\./);
    assert.match(none.html, /<title>Files of a branch or tag with “&#60;b&#62;”/);
  });

  test('change the description and the default branch, and delete only when the name is typed', async () => {
    await createRepository(strata, ada, 'changing');
    const settings = '/ada/changing/settings';
    const refused = await browser.submit(settings, { description: 'kept', default_branch: '-x..y' });
    assert.equal(refused.status, 422);
    assert.match(refused.html, /<a href="#default_branch">Not a branch/);
    assert.match(refused.html, /value="kept"/);
    const saved = await browser.submit(settings, { description: 'New words', default_branch: 'trunk' });
    assert.deepEqual([saved.status, saved.location], [303, settings]);
    const { body } = await api(strata, ada.token, 'GET', '/v1/repos/ada/changing');
    assert.deepEqual((body as { description: string; default_branch: string }).description, 'New words');
    assert.deepEqual((body as { default_branch: string }).default_branch, 'trunk');
    const wrong = await browser.submit('/ada/changing/delete', { confirmation: 'engine' }, settings);
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /id="confirmation-error"/);
    const deleted = await browser.submit('/ada/changing/delete', { confirmation: 'changing' }, settings);
    assert.equal(deleted.location, '/ada');
    assert.equal((await browser.get('/ada/changing')).status, 404);
    assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/changing')).status, 404);
  });

  test('warn in the settings of a default branch that does not exist, where there are others', async () => {
    const settings = '/ada/engine/settings';
    const before = await page(settings);
    assert.doesNotMatch(textOf(before), /does not exist/);
    const { body } = await api(strata, ada.token, 'GET', '/v1/repos/ada/engine');
    const { description, default_branch } = body as { description: string | null; default_branch: string };
    await browser.submit(settings, { description: description ?? '', default_branch: 'gone' });
    assert.match(textOf(await page(settings)), /The branch gone does not exist\. Until it is pushed/);
    await browser.submit(settings, { description: description ?? '', default_branch });
  });

  test('rename a repository in its settings by a form of its own, and say what is wrong with a name', async () => {
    await createRepository(strata, ada, 'named');
    await createRepository(strata, ada, 'other-name');
    const [settings, form] = ['/ada/named/settings', '/ada/named/rename'];
    for (const [name, message] of [
      ['OTHER-name', /<a href="#name">A repository with this name exists already/],
      ['a..b', /<a href="#name">A repository name does not hold/],
      ['', /<a href="#name">A repository name has 1 to 100 characters/],
    ] as const) {
      const refused = await browser.submit(form, { name }, settings);
      assert.equal(refused.status, 422, name);
      assert.match(refused.html, message);
    }
    const renamed = await browser.submit(form, { name: ' Renamed ' }, settings);
    assert.deepEqual([renamed.status, renamed.location], [303, '/ada/Renamed/settings']);
    assert.match(textOf(await browser.follow(renamed)), /The repository is Renamed now\./);
    // A page that was open before the rename changes the description, and gives no old name back.
    const late = await browser.submit(
      settings,
      { description: 'late', default_branch: 'main' },
      '/ada/Renamed/settings',
    );
    assert.equal(late.location, '/ada/Renamed/settings');
    const { body } = await api(strata, ada.token, 'GET', '/v1/repos/ada/renamed');
    assert.equal((body as { description: string }).description, 'late');
  });

  test('make a repository, and keep what was entered when it is refused', async () => {
    const bad = await browser.submit('/new', { name: '.hidden', description: 'mine', default_branch: 'main' });
    assert.equal(bad.status, 422);
    assert.match(bad.html, /<a href="#name">A repository name does not start with/);
    assert.match(bad.html, /value="\.hidden"/);
    assert.match(bad.html, /value="mine"/);
    const both = await browser.submit('/new', {
      name: 'a..b',
      description: 'd'.repeat(2_000),
      default_branch: '-x..y',
    });
    assert.match(
      both.html,
      /autofocus role="alert" id="errors"><p><a href="#name">.*<a href="#description">.*<a href="#default_branch">/s,
    );
    const made = await browser.submit('/new', { name: 'made', description: '', default_branch: 'trunk' });
    assert.equal(made.location, '/ada/made');
    assert.match(textOf(await page('/ada/made')), /git push -u origin HEAD:trunk/);
    const taken = await browser.submit('/new', { name: 'MADE', default_branch: 'main' });
    assert.equal(taken.status, 422);
    assert.match(taken.html, /<a href="#name">A repository with this name exists already/);
  });

  test('make a repository with a README that git clones, by a push like any other', async (context) => {
    const made = await browser.submit('/new', {
      name: 'begun',
      description: 'With $HOME & <b>',
      readme: 'yes',
      default_branch: 'trunk',
    });
    assert.equal(made.location, '/ada/begun');
    assert.match(textOf(await page('/ada/begun')), /Add a README .* README.md/);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', gitUrl(strata, ada, 'begun'), 'begun']);
    const clone = path.join(clones, 'begun');
    assert.equal(await git(clone, ['show', 'HEAD:README.md']), '# begun\n\nWith $HOME & <b>\n');
    assert.equal((await git(clone, ['log', '-1', '--format=%an <%ae>'])).trim(), 'ada <ada@users.noreply.localhost>');
    await git(clone, ['fsck', '--full', '--strict']);
    await commitFile(clone, 'more', 'more');
    await git(clone, ['push', '--quiet', 'origin', 'trunk']);
    const again = await browser.submit('/ada/made/readme', {}, '/ada/made');
    assert.equal(again.location, '/ada/made');
    assert.match(textOf(await page('/ada/made')), /README.md/);
  });

  test('page folders and commits: as many as a page takes are on one, and one more begins the next', async (context) => {
    const url = await createRepository(strata, ada, 'wide');
    const wide = await newWorkTree(context);
    await git(wide, ['fast-import', '--quiet'], history(PAGE_COMMITS_MAX, PAGE_ENTRIES_MAX));
    await git(wide, ['push', '--quiet', url, 'even', 'odd']);
    const rows = ({ html }: SitePage, form: RegExp): number => html.match(form)?.length ?? 0;
    for (const [address, form, most] of [
      ['tree', /<tr>/g, PAGE_ENTRIES_MAX],
      ['commits', /<li>/g, PAGE_COMMITS_MAX],
    ] as const) {
      const even = await page(`/ada/wide/${address}/even`);
      const list = even.html.slice(even.html.lastIndexOf('</details>'));
      assert.equal(rows({ ...even, html: list }, form), most, address);
      assert.doesNotMatch(even.html, /rel="next"/, address);
      const odd = await page(`/ada/wide/${address}/odd`);
      assert.match(odd.html, new RegExp(`rel="next" href="/ada/wide/${address}/odd\\?page(=|&#61;)1"`));
      const next = await page(`/ada/wide/${address}/odd?page=1`);
      assert.equal(
        rows(
          { ...next, html: next.html.slice(next.html.lastIndexOf('</details>')) },
          address === 'tree' ? /file-\d+<\/a>/g : form,
        ),
        1,
        address,
      );
      assert.ok(odd.bytes.length < PAGE_BYTES_MAX, `${odd.bytes.length} bytes`);
    }
  });

  test('stay below their weight', async () => {
    for (const address of [
      '/ada',
      '/new',
      '/ada/engine',
      '/ada/engine/tree/main',
      '/ada/engine/commits/main',
      '/ada/engine/branches',
      '/ada/engine/tags',
      '/ada/engine/activity',
      '/ada/engine/settings',
    ]) {
      const { bytes } = await page(address);
      assert.ok(bytes.length < PAGE_BYTES_MAX, `${address} has ${bytes.length} bytes`);
    }
  });
});

/** Branches `even` and `odd` for git fast-import: `odd` has one commit and one file more. */
function history(commits: number, files: number): string {
  const commit = (branch: string, number: number, from: string, changes: string): string =>
    `commit refs/heads/${branch}\nmark :${number}\ncommitter C <c@example.org> ${1_700_000_000 + number} +0000\ndata 1\nx\n${from}${changes}\n`;
  const file = (number: number): string => `M 100644 inline file-${number}\ndata 1\nx\n`;
  const first = Array.from({ length: files }, (_, number) => file(number)).join('');
  const even = Array.from({ length: commits }, (_, n) =>
    commit('even', n + 1, n === 0 ? '' : `from :${n}\n`, n === 0 ? first : ''),
  );
  return even.join('') + commit('odd', commits + 1, `from :${commits}\n`, file(files));
}
