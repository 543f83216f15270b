/** Attacks on and through the pages of repositories (docs/interface.md, Website). */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { CONTENTS_BUFFERED_BYTES_MAX } from '../../core/use-cases/reading/read-contents.ts';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../support/form-browser.ts';
import { browserOf, signIn } from '../support/site-browser.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const SCRIPT = '<script>alert(1)</script>';
const IMAGE = '"><img src=x onerror=alert(1)>';
const FILE = `${IMAGE.replaceAll('/', '')}.txt`;
const FOLDER = '<svg onload=alert(1)>';
const BRANCH = `x"'><img-src=x-onerror=alert(1)>`;
const REVERSED = 'invoice\u202Etxt.exe';

const ending = suiteEnding();
let strata: Strata;
let ada: Account;

beforeAll(async () => {
  strata = await startNode(ending, await sharedParts(ending));
  ada = await createAccount(strata, 'ada');
});

describe('A hostile repository', () => {
  let browser: SiteBrowser;
  let tip: string;
  /** When it was there, and nothing was pushed yet. */
  let created: string;

  beforeAll(async () => {
    browser = await signIn(strata, ada);
    const work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'hostile');
    created = new Date().toISOString();
    await api(strata, ada.token, 'PATCH', '/v1/repos/ada/hostile', { description: `${IMAGE}${SCRIPT}` });
    await commitFile(work, FILE, `${SCRIPT}\n</pre></section></main>\n\u202Ereversed`);
    await commitFile(work, `${FOLDER}/${FILE}`, IMAGE);
    await commitFile(work, REVERSED, 'x');
    await commitFile(work, 'drawing.svg', `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">${SCRIPT}</svg>`);
    await commitFile(work, 'page.html', SCRIPT);
    for (const name of ['page.png', 'page.mp4', 'page.pdf']) await commitFile(work, name, SCRIPT);
    await commitFile(
      work,
      'README.md',
      `# ${SCRIPT}\n\n${IMAGE}\n\n[x](javascript:alert(1)) <!-- ${SCRIPT} --> ![x](data:text/html,x)\n`,
    );
    await commitFile(work, 'code.js', `"${SCRIPT}"; // ${IMAGE}\n`);
    await commitFile(work, 'large.bin', 'x'.repeat(CONTENTS_BUFFERED_BYTES_MAX + 1));
    const link = (await git(work, ['hash-object', '-w', '--stdin'], `javascript:alert(1)${IMAGE}`)).trim();
    await git(work, ['update-index', '--add', '--cacheinfo', `120000,${link},link`]);
    await git(work, [
      '-c',
      `user.name=${SCRIPT}`,
      '-c',
      `user.email=${IMAGE}`,
      'commit',
      '--quiet',
      '--author',
      `a${IMAGE.replaceAll(/[<>]/g, '')} <b@example.org>`,
      '-m',
      `${IMAGE}${SCRIPT}\n\n</pre>${SCRIPT}\u202E <!-- x`,
    ]);
    tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['branch', BRANCH]);
    await git(work, ['push', '--quiet', url, 'refs/heads/*']);
  });

  const encoded = (text: string): string => encodeURIComponent(text);
  const addresses = (): readonly string[] => [
    '/ada',
    '/ada/hostile',
    `/ada/hostile/tree/${encoded(BRANCH)}`,
    `/ada/hostile/tree/main/${encoded(FOLDER)}`,
    `/ada/hostile/blob/main/${encoded(FILE)}`,
    `/ada/hostile/blob/main/${encoded(FOLDER)}/${encoded(FILE)}`,
    `/ada/hostile/blob/main/${encoded(REVERSED)}`,
    '/ada/hostile/blob/main/README.md',
    '/ada/hostile/blob/main/README.md?view=source',
    '/ada/hostile/blob/main/code.js',
    '/ada/hostile/blob/main/link',
    `/ada/hostile/blame/main/${encoded(FILE)}`,
    `/ada/hostile/blame/main/${encoded(FOLDER)}/${encoded(FILE)}`,
    '/ada/hostile/blame/main/code.js',
    '/ada/hostile/blame/main/link',
    '/ada/hostile/blame/main/large.bin',
    '/ada/hostile/blob/main/drawing.svg',
    '/ada/hostile/blob/main/drawing.svg?view=source',
    '/ada/hostile/blob/main/large.bin',
    `/ada/hostile/commits/${encoded(BRANCH)}`,
    `/ada/hostile/commits/main/${encoded(FILE)}`,
    `/ada/hostile/commit/${tip}`,
    '/ada/hostile/branches',
    `/ada/hostile/branches?q=${encoded(IMAGE)}`,
    '/ada/hostile/tags',
    '/ada/hostile/activity',
    '/ada/hostile/settings',
    `/ada/hostile/refs?q=${encoded(IMAGE)}`,
    '/ada/hostile/files',
    `/ada/hostile/files?q=${encoded(IMAGE)}`,
    '/ada/hostile/search?q=alert',
    `/ada/hostile/search?q=${encoded(IMAGE)}`,
    `/ada/hostile/commits/main?text=${encoded(IMAGE)}`,
    '/ada/hostile/compare',
    `/ada/hostile/compare/main...${encoded(BRANCH)}`,
    '/ada/hostile/moments',
    `/ada/hostile/changes?since=${encoded(created)}`,
    `/ada?q=${encoded(IMAGE)}`,
    `/new?name=${encoded(IMAGE)}`,
  ];

  test('has nothing that runs: every name, message and content comes out as text', async () => {
    for (const address of addresses()) {
      const { html, status, headers } = await browser.get(address);
      assert.equal(status, 200, `${address}: ${html.slice(0, 500)}`);
      assert.deepEqual(dangers(html), [], address);
      assert.match(headers['content-security-policy'] ?? '', /default-src 'none';.*script-src 'self'/, address);
      assert.doesNotMatch(headers['content-security-policy'] ?? '', /unsafe/, address);
    }
  });

  test('is shown all the same: the payloads are on the pages', async () => {
    const home = (await browser.get('/ada/hostile')).html;
    assert.match(home, /&#34;&#62;&#60;img src&#61;x onerror&#61;alert\(1\)&#62;.txt<\/a>/);
    assert.match(home, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/, 'the README');
    const commit = (await browser.get(`/ada/hostile/commit/${tip}`)).html;
    assert.match(commit, /&#60;\/pre&#62;&#60;script&#62;alert\(1\)/);
    assert.match((await browser.get(`/ada/hostile/tree/${encoded(BRANCH)}`)).html, /x&#34;&#39;&#62;&#60;img-src/);
  });

  test('cannot turn around what is read: marks of direction are shown as what they are', async () => {
    for (const address of addresses()) {
      assert.doesNotMatch((await browser.get(address)).html, /[\u202A-\u202E\u2066-\u2069]/, address);
    }
    assert.match((await browser.get('/ada/hostile')).html, /invoice⟨U\+202E⟩txt\.exe/);
    assert.match((await browser.get(`/ada/hostile/blob/main/${encoded(FILE)}`)).html, /⟨U\+202E⟩reversed/);
  });

  test('serves HTML as plain text and SVG as an attachment, in a sandbox', async () => {
    const html = await browser.get('/ada/hostile/raw/main/page.html');
    assert.equal(html.headers['content-type'], 'text/plain; charset=utf-8');
    const svg = await browser.get('/ada/hostile/raw/main/drawing.svg');
    assert.match(svg.headers['content-disposition'] ?? '', /^attachment;/);
    for (const { headers } of [html, svg]) {
      assert.match(headers['content-security-policy'] ?? '', /default-src 'none'.*sandbox$/);
      assert.doesNotMatch(headers['content-security-policy'] ?? '', /allow-scripts/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  test('is shown by browsers by the names of its files alone, and nothing in them runs', async () => {
    for (const [name, type, isAttachment] of [
      ['page.png', 'image/png', false],
      ['page.mp4', 'video/mp4', false],
      ['page.pdf', 'text/plain; charset=utf-8', false],
      ['drawing.svg', 'image/svg+xml', true],
    ] as const) {
      const { headers } = await browser.get(`/ada/hostile/raw/main/${name}`);
      assert.equal(headers['content-type'], type, name);
      assert.equal(headers['content-disposition'] !== undefined, isAttachment, name);
      // Chromium loads audio and video for a page of their own only from its own origin, where nothing runs either.
      assert.match(headers['content-security-policy'] ?? '', /default-src 'none'.*sandbox( allow-same-origin)?$/);
      assert.equal(
        /allow-same-origin/.test(headers['content-security-policy'] ?? '') && !type.startsWith('video/'),
        false,
      );
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  test('cannot lead outside with its paths', async () => {
    for (const path of [
      '../../settings',
      '%2e%2e/x',
      '..%2f..%2fetc%2fpasswd',
      '%00',
      'a%00b',
      '%ff%fe',
      '-x',
      '--output=x',
      '%zz',
      '.',
      'main/..',
      'main/%2e%2e/README.md',
      'main//README.md',
    ]) {
      for (const kind of ['tree', 'blob', 'raw', 'commits']) {
        const { status, html } = await browser.get(`/ada/hostile/${kind}/${path}`);
        assert.ok([404, 400].includes(status), `${kind}/${path} answers ${status}`);
        assert.deepEqual(dangers(html), [], path);
      }
    }
  });
});

describe('Somebody who does not own a repository', () => {
  let mallory: SiteBrowser;
  let tip: string;

  beforeAll(async () => {
    mallory = await signIn(strata, await createAccount(strata, 'mallory'));
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'secret'), 'main']);
    tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
  });

  const PAGES = [
    '',
    '/tree/main',
    '/blob/main/README',
    '/raw/main/README',
    '/commits',
    '/commits/main',
    '/branches',
    '/tags',
    '/activity',
    '/settings',
    '/switch?ref=main',
    '/refs?q=main',
    '/files?q=README',
    '/search?q=x',
    '/blame/main/README',
    '/compare',
    '/compare/main...main',
    '/archive/main.zip',
    '/moments',
    '/changes?since=2026-01-01T00:00:00Z',
  ];

  /** What differs between any two answers. */
  const comparable = ({ status, html, headers }: SitePage): unknown => {
    const { 'x-request-id': requestId = 'none', date: _date, 'set-cookie': _cookie, ...others } = headers;
    return { status, html: html.replaceAll(requestId, '').replaceAll(/name="_csrf" value="[^"]*"/g, ''), others };
  };

  test('gets the page of a repository that does not exist, to the last byte', async () => {
    for (const page of [...PAGES, `/commit/${tip}`, `/commit/${tip}.diff`, `/commit/${tip.slice(0, 10)}`]) {
      const hidden = await mallory.get(`/ada/secret${page}`);
      assert.equal(hidden.status, 404, page);
      assert.deepEqual(comparable(hidden), comparable(await mallory.get(`/ada/nothing${page}`)), page);
      assert.deepEqual(comparable(hidden), comparable(await mallory.get(`/nobody/secret${page}`)), page);
    }
    assert.deepEqual(comparable(await mallory.get('/ada')), comparable(await mallory.get('/nobody')));
  });

  test('changes nothing with forms: not the settings, not by a README, not by a deletion', async () => {
    for (const form of ['settings', 'readme', 'delete']) {
      const fields = { description: 'mine', default_branch: 'mine', confirmation: 'secret' };
      const hidden = await mallory.submit(`/ada/secret/${form}`, fields, '/new');
      assert.equal(hidden.status, 404, form);
      assert.deepEqual(comparable(hidden), comparable(await mallory.submit(`/ada/nothing/${form}`, fields, '/new')));
    }
    const { body } = await api(strata, ada.token, 'GET', '/v1/repos/ada/secret');
    assert.equal((body as { description: null }).description, null);
  });

  test('is sent to the sign-in page when nobody is signed in, whether or not something is there', async () => {
    const stranger = browserOf(strata.url);
    for (const page of PAGES) {
      const there = await stranger.get(`/ada/secret${page}`);
      const nowhere = await stranger.get(`/ada/nothing${page}`);
      assert.equal(there.status, 303, page);
      assert.match(there.location ?? '', /^\/sign-in\?next=/, page);
      assert.equal(there.location?.replace('secret', ''), nowhere.location?.replace('nothing', ''), page);
    }
  });

  test('deletes nothing from another site, nor with a form that lacks its token', async () => {
    const owner = await signIn(strata, ada);
    for (const headers of [
      {},
      { origin: 'https://evil.example' },
      { origin: strata.url, 'sec-fetch-site': 'cross-site' },
    ]) {
      const sent = await owner.post('/ada/secret/delete', { confirmation: 'secret' }, headers);
      assert.equal(sent.status, 403);
    }
    assert.equal((await owner.get('/ada/secret')).status, 200);
  });
});

/** Returns what a browser would run, load or take for the page's own, that a repository could have brought in. */
function dangers(html: string): readonly string[] {
  const tags = html.match(/<[a-z!][^>]*>/gi) ?? [];
  return tags.filter(
    (tag) =>
      /^<(iframe|object|embed|base|style|link(?! rel="(stylesheet|icon)"))/i.test(tag) ||
      (/^<script/i.test(tag) && !/^<script type="module" src="\/assets\/[\w.-]+"$/.test(tag.slice(0, -1))) ||
      /\s(on\w+|style|srcdoc)\s*=/i.test(tag) ||
      /(href|src|action|formaction)\s*=\s*["']?\s*(javascript|data|vbscript):/i.test(tag) ||
      (/^<img/i.test(tag) && !/ src="\/ada\//.test(tag)) ||
      /^<svg(?! (class="icons"|aria-hidden="true"|viewBox=))/i.test(tag) ||
      tag.startsWith('<!--'),
  );
}
