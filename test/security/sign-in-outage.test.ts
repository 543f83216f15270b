/**
 * Somebody who guesses passwords while the counts of rate limits cannot be reached: PostgreSQL is gone, or it answers
 * nothing any more.
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresRateLimits } from '../../adapters/postgres/rate-limits.ts';
import { LOG_START } from '../../core/kernel/envelope.ts';
import { keepLog } from '../support/log.ts';
import { enrolTotp } from '../support/mfa.ts';
import { testDatabase } from '../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import { codeAt } from '../support/totp-app.ts';
import { type Browser, createWebsiteFixture, PASSWORD, type Page, type WebsiteFixture } from '../support/website.ts';

const STATEMENT_SPAN_MS = 500;
/** The client waits two seconds longer than the server may take, and connecting takes up to five. */
const ANSWER_MS_MAX = 9_000;

const OUTAGES = {
  gone: (proxy: PostgresProxy) => proxy.close(),
  frozen: async (proxy: PostgresProxy) => {
    proxy.onAnswer = () => null;
  },
};

for (const [kind, breakDown] of Object.entries(OUTAGES))
  describe(`While PostgreSQL is ${kind}`, () => {
    let fixture: WebsiteFixture;
    const closing: (() => Promise<unknown>)[] = [];
    let waitsForCode: Browser;
    let code = '';

    beforeAll(async () => {
      const database = await testDatabase();
      const proxy = await startPostgresProxy(database.connectionString);
      closing.push(() => proxy.close());
      const pool = createPool({
        connectionString: proxy.connectionString,
        log: keepLog(),
        statementSpanMs: STATEMENT_SPAN_MS,
      });
      closing.unshift(() => pool.end());
      const digestOf = async (key: string): Promise<string> => digest.hmacSha256('a secret', key);
      fixture = await createWebsiteFixture({ context: { rateLimits: createPostgresRateLimits({ pool, digestOf }) } });
      closing.unshift(() => fixture.close());
      await fixture.account('ada');
      const grace = await fixture.account('grace');
      const { seed } = await enrolTotp({ ...fixture.context, clock: fixture.api.clock }, grace);
      fixture.api.clock.advance(30_000);
      code = codeAt(seed, fixture.api.clock.now());
      waitsForCode = fixture.browser();
      const half = await waitsForCode.submit('/sign-in', { login: 'grace', password: PASSWORD });
      assert.equal(half.location, '/sign-in/verify-mfa');
      await breakDown(proxy);
    });
    afterAll(async () => {
      for (const close of closing) await close();
    });

    /** The answer says when to come back, arrives in bounded time, and nobody is let in. */
    async function isRefused(browser: Browser, send: () => Promise<Page>): Promise<void> {
      const events = await fixture.context.events.readAll(LOG_START, 1_000);
      const start = performance.now();
      const answer = await send();
      assert.ok(performance.now() - start < ANSWER_MS_MAX, `${performance.now() - start} ms`);
      assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5']);
      assert.match(answer.html, /<h1>Not available now<\/h1>.*cannot reach its storage/s);
      assert.doesNotMatch(answer.html, /5432|PostgreSQL|127\.0\.0\.1/);
      assert.deepEqual(await fixture.context.events.readAll(LOG_START, 1_000), events);
      assert.equal((await browser.get('/settings')).status, 303);
    }

    test.concurrent('nobody signs in, with the right password or a wrong one', async () => {
      const tried = [PASSWORD, 'wrong horse battery'].map((password) => {
        const browser = fixture.browser();
        return isRefused(browser, () => browser.submit('/sign-in', { login: 'ada', password }));
      });
      await Promise.all(tried);
    });

    test.concurrent('nobody signs up', async () => {
      const browser = fixture.browser();
      const wanted = { username: 'eve', email: 'eve@example.org', password: 'a secret of eve' };
      await isRefused(browser, () => browser.submit('/sign-up', wanted));
    });

    test.concurrent('no second factor is taken, and the right one counts as unused', async () => {
      await isRefused(waitsForCode, () => waitsForCode.submit('/sign-in/verify-mfa', { code }));
    });

    test('the log names the outage, and no secret, name or address', () => {
      const lines = fixture.api.logged.join('\n');
      assert.match(lines, /rate-limits-unavailable/);
      for (const secret of [PASSWORD, 'wrong horse', 'a secret of eve', 'eve@example.org', code, 'a secret']) {
        assert.ok(!lines.includes(secret), secret);
      }
    });
  });
