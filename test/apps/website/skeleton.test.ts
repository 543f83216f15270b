/** What every page of the website has: its headers, its assets, its faults, and who may see it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { redirectTo, showContent, showPage } from '../../../apps/website/layout/answer.ts';
import { postForm, textField } from '../../../apps/website/layout/forms.ts';
import { html } from '../../../apps/website/layout/html.ts';
import { page } from '../../../apps/website/layout/page.ts';
import type { Room } from '../../../apps/website/layout/room.ts';
import { ROOMS } from '../../../apps/website/rooms.ts';
import { FLASH_LENGTH_MAX } from '../../../apps/website/sessions/flash.ts';
import { type SessionStore, SessionStoreError } from '../../../core/ports/session-store.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { csrfTokenOf } from '../../support/form-browser.ts';
import { createMemorySessionStore } from '../../support/memory/session-store.ts';
import { createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

/** A room with a page and a form for people, and a page that fails. */
const SAMPLE: Room = {
  navigation: ({ username }) => ({ label: 'Notes', path: `/notes/${username}` }),
  routes(site) {
    site.page('/notes', async (visit) => {
      const form = postForm({ csrf: visit.csrf() }, textField({ name: 'text', label: 'Text' }));
      return showPage(page(visit, { title: 'Notes' }, html`<h1>Notes of ${visit.person.username}</h1>${form}`));
    });
    site.form('/notes', async (_visit, fields) => redirectTo('/notes', `Kept ${fields.text('text')}`));
    site.publicPage('/raw', async () =>
      showContent(Buffer.from('<script>'), {
        'content-type': 'text/plain; charset=utf-8',
        'content-security-policy': "default-src 'none'; sandbox",
      }),
    );
    site.publicPage('/broken', async () => {
      throw new Error('the password is hunter2');
    });
  },
};

describe('The website', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture({ rooms: [...ROOMS, SAMPLE] });
  });
  afterAll(() => fixture.close());

  test('shows a person their page, with their links and a button to sign out', async () => {
    const ada = await fixture.signedIn(await fixture.api.account('ada'));
    const notes = await ada.get('/notes');
    assert.equal(notes.status, 200);
    assert.match(notes.html, /<h1>Notes of ada<\/h1>/);
    assert.match(notes.html, /<a href="\/notes\/ada">Notes<\/a>/);
    assert.match(notes.html, /action="\/sign-out"/);
  });

  test('takes a form, and shows its message once', async () => {
    const bob = await fixture.signedIn(await fixture.api.account('bob'));
    const sent = await bob.submit('/notes', { text: '<b>x</b>' });
    assert.equal(sent.status, 303);
    assert.match((await bob.follow(sent)).html, /Kept &#60;b&#62;x&#60;\/b&#62;/);
    assert.doesNotMatch((await bob.get('/notes')).html, /Kept/);
  });

  test('signs a person out', async () => {
    const cyd = await fixture.signedIn(await fixture.api.account('cyd'));
    const stolen = fixture.browser();
    for (const [name, value] of cyd.cookies) stolen.cookies.set(name, value);
    const left = await cyd.submit('/sign-out', {}, '/notes');
    assert.equal(left.location, '/');
    assert.match((await cyd.follow(left)).html, /You are signed out/);
    assert.equal((await stolen.get('/notes')).status, 303);
  });

  test('sends a stranger to the sign-in page, and from there back', async () => {
    const answer = await fixture.browser().get('/notes?a=1&b=2');
    assert.deepEqual([answer.status, answer.location], [303, '/sign-in?next=%2Fnotes%3Fa%3D1%26b%3D2']);
  });

  test('shows content that is no page under a policy of its own', async () => {
    const raw = await fixture.browser().get('/raw');
    assert.equal(raw.html, '<script>');
    assert.equal(raw.headers['content-security-policy'], "default-src 'none'; sandbox");
    assert.equal(raw.headers['x-content-type-options'], 'nosniff');
  });

  test('names the request and nothing of the fault when a page fails', async () => {
    const broken = await fixture.browser().get('/broken');
    assert.equal(broken.status, 500);
    assert.doesNotMatch(broken.html, /hunter2/);
    assert.match(broken.html, new RegExp(`<code>${String(broken.headers['x-request-id'])}</code>`));
  });

  test('answers an unknown address with a page that leads on', async () => {
    for (const target of ['/nothing/of/this/kind', '/%ff', '/..%2f..', '/assets/none.css']) {
      const missing = await fixture.browser().get(target);
      assert.equal(missing.status, 404, target);
      assert.match(missing.html, /<h1>Page not found<\/h1>/);
    }
  });

  test('answers another method than those of an address with 405, and names them', async () => {
    const ann = await fixture.signedIn(await fixture.api.account('ann'));
    const cookie = [...ann.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const ask = (method: 'DELETE' | 'GET' | 'PATCH' | 'POST' | 'PUT', url: string) =>
      fixture.site.inject({ method, url, headers: { host: 'strata.test', cookie } });
    for (const [method, path, allow] of [
      ['DELETE', '/settings', 'GET, HEAD'],
      ['POST', '/usage', 'GET, HEAD'],
      ['PUT', '/sign-in', 'GET, HEAD, POST'],
      ['PATCH', '/ann/engine/tree/main/src', 'GET, HEAD'],
      ['GET', '/sign-out', 'POST'],
      ['GET', '/ann/engine/delete', 'POST'],
    ] as const) {
      const answer = await ask(method, path);
      assert.deepEqual([answer.statusCode, answer.headers['allow']], [405, allow], `${method} ${path}`);
      assert.match(answer.body, /<h1>Method not allowed<\/h1>/);
    }
    assert.equal((await ann.get('/settings')).status, 200, 'a GET of /sign-out signs nobody out');
    assert.equal((await ask('POST', '/robots.txt')).statusCode, 404, 'no account can have the name');
  });

  // The attack: a form without end to an address that takes none.
  test('does not wait for the body of a request that it refuses for its path or method', async (context) => {
    const { site, close } = await createWebsiteFixture();
    cleanUp(context, close);
    const { port } = new URL(await site.listen({ port: 0, host: '127.0.0.1' }));
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'transfer-encoding': 'chunked' };
    for (const [path, status] of [
      ['/docs', 405],
      ['/no/such/page', 404],
    ] as const) {
      const sent = request({ port, method: 'POST', path, headers });
      sent.write('x=');
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      assert.deepEqual([answer.statusCode, answer.headers.connection], [status, 'close'], path);
      sent.destroy();
    }
  });

  test('leads on when its storage is away, and shows nobody as signed in', async () => {
    const sessions = createMemorySessionStore();
    let isAway = false;
    const find: SessionStore['find'] = async (idHash, now) => {
      if (isAway) throw new SessionStoreError('session-store-unavailable', 'connect ECONNREFUSED 10.0.0.7');
      return sessions.find(idHash, now);
    };
    const away = await createWebsiteFixture({ sessions: { ...sessions, find } });
    const ada = await away.signedIn(await away.account('ada'));
    isAway = true;
    const page = await ada.get('/settings');
    assert.deepEqual([page.status, page.headers['retry-after']], [503, '5']);
    assert.match(page.html, /<h1>Not available now<\/h1><p>The service cannot reach its storage, try again\.<\/p>/);
    assert.doesNotMatch(page.html, /10\.0\.0\.7|Sign out/);
    isAway = false;
    assert.equal((await ada.get('/settings')).status, 200);
    await away.close();
  });

  test('ends the connection of a form that takes too long to arrive', async (context) => {
    const slow = await createWebsiteFixture({ bodySpanMs: 50 });
    cleanUp(context, () => slow.close());
    const port = Number(new URL(await slow.site.listen({ port: 0, host: '127.0.0.1' })).port);
    const socket = connect(port, '127.0.0.1');
    const head = 'POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n';
    socket.write(`${head}Content-Length: 100\r\n\r\nlogin=`);
    socket.on('error', () => undefined);
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
    });
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 408 /);
  });

  test('cuts the message of a page to its bound', async () => {
    const { length } = 'Kept ';
    const dora = await fixture.signedIn(await fixture.account('dora'));
    for (const [sent, shown] of [
      [FLASH_LENGTH_MAX - length, FLASH_LENGTH_MAX - length],
      [FLASH_LENGTH_MAX - length + 1, FLASH_LENGTH_MAX - length],
    ] as const) {
      const page = await dora.follow(await dora.submit('/notes', { text: 'x'.repeat(sent) }));
      assert.match(page.html, new RegExp(`Kept x{${shown}}<`));
    }
  });

  test('answers HEAD as GET, without a body', async () => {
    const answer = await fixture.site.inject({ method: 'HEAD', url: '/' });
    assert.deepEqual([answer.statusCode, answer.body], [200, '']);
  });

  test('serves each asset permanently under the digest of its content', async () => {
    const { html: start } = await fixture.browser().get('/');
    const assets = [...start.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
    assert.equal(assets.length, 3);
    for (const path of assets) {
      assert.match(path, /^\/assets\/[a-z]+\.[\w-]{16}\.(css|js|svg)$/);
      const asset = await fixture.browser().get(path);
      assert.equal(asset.status, 200);
      assert.equal(asset.headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(asset.headers['x-content-type-options'], 'nosniff');
    }
  });

  // The attack (BREACH): of a page that holds a secret and a text of the attacker's, the length tells what they share.
  test('compresses a page only where it shows no secret and no text that the request brought', async () => {
    const gzipped = { 'accept-encoding': 'gzip, deflate, br, zstd' };
    const browser = await fixture.signedIn(await fixture.account('breached'));
    const plain = await browser.get('/docs/git');
    const small = await browser.get('/docs/git', gzipped);
    assert.deepEqual([plain.headers['content-encoding'], plain.headers['vary']], [undefined, 'accept-encoding']);
    assert.deepEqual([small.headers['content-encoding'], small.headers['vary']], ['gzip', 'accept-encoding']);
    assert.equal(small.headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(small.headers['content-security-policy'], plain.headers['content-security-policy']);
    const tokenless = (markup: string) => markup.replaceAll(/name="_csrf" value="[^"]+"/g, '');
    assert.equal(tokenless(gunzipSync(small.bytes).toString()), tokenless(plain.html));
    assert.ok(small.bytes.length < plain.bytes.length / 2);
    const tokens = [];
    for (const { bytes } of [await browser.get('/settings', gzipped), await browser.get('/settings', gzipped)]) {
      tokens.push(/name="_csrf" value="([^"]+)"/.exec(gunzipSync(bytes).toString())?.[1]);
    }
    assert.ok(tokens[0] !== undefined && tokens[0] !== tokens[1], 'each answer has a token of its own');
    const isPlain = async (path: string) =>
      (await browser.get(path, gzipped)).headers['content-encoding'] === undefined;
    for (const path of ['/breached?search=x', '/docs/git?x', '/breached/none', '/nothing/of/this/kind']) {
      assert.ok(await isPlain(path), path);
    }
    browser.cookies.set('strata_flash', encodeURIComponent('+A message'));
    assert.ok(await isPlain('/settings'));
    const secret = await browser.post(
      '/access-tokens/create',
      { _csrf: csrfTokenOf(await browser.get('/access-tokens/create')), name: 'x' },
      { origin: 'http://localhost:8080', ...gzipped },
    );
    assert.equal(secret.headers['content-encoding'], undefined);
    assert.match(secret.html, /<h1>/);
  });

  test('sends assets in the coding that the browser takes', async () => {
    const { html: start } = await fixture.browser().get('/');
    const [sheet = '', mark = ''] = [...start.matchAll(/"(\/assets\/(?:site|mark)\.[^"]+)"/g)].map(([, path]) => path);
    const plain = await fixture.browser().get(sheet);
    const sent = (accepted: string, path = sheet) => fixture.browser().get(path, { 'accept-encoding': accepted });
    for (const [accepted, coding, decoded] of [
      // What Chromium and Firefox send to https and localhost, and elsewhere.
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['gzip, deflate', 'gzip', gunzipSync],
      ['br;q=0, GZIP', 'gzip', gunzipSync],
      ['br;q=0.5, gzip', 'gzip', gunzipSync],
      ['*', 'br', brotliDecompressSync],
    ] as const) {
      for (const answer of [await sent(accepted), await sent(accepted)]) {
        assert.deepEqual([answer.status, answer.headers['content-encoding']], [200, coding], accepted);
        assert.deepEqual(decoded(answer.bytes), plain.bytes);
        assert.ok(answer.bytes.length < plain.bytes.length / 2);
        assert.equal(answer.headers['vary'], 'accept-encoding');
        assert.equal(answer.headers['content-type'], 'text/css; charset=utf-8');
      }
    }
    for (const accepted of ['identity', 'deflate, zstd', 'br;q=0, gzip;q=0', '']) {
      const answer = await sent(accepted);
      assert.deepEqual([answer.headers['content-encoding'], answer.bytes], [undefined, plain.bytes], accepted);
    }
    assert.equal((await sent('br', mark)).headers['content-encoding'], undefined, 'too short');
    assert.equal(plain.headers['vary'], 'accept-encoding');
  });
});
