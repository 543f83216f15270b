/** Exports of the account's log: how they are streamed, bounded and ended. What they hold is in test/apps/verifier. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import type { StreamName } from '../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { LOG_EXPORTS_OF_ACCOUNT_MAX } from '../../../core/kernel/limits.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { openExport } from '../../../core/use-cases/auditing/export-account-log.ts';
import { createExportSlots, LOG_EXPORTS_AT_ONCE_MAX } from '../../../core/use-cases/auditing/export-slots.ts';
import { ENTRIES_READ_AT_ONCE_MAX } from '../../../core/use-cases/auditing/read-entries.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { newAccount, newEvent } from '../../support/events.ts';
import { verifyText } from '../../support/exported-log.ts';
import { until } from '../../support/read-models.ts';

const URL = '/v1/account/events/export';
const PARTS = 2 * ENTRIES_READ_AT_ONCE_MAX + 1;

describe('GET /v1/account/events/export', () => {
  let fixture: ApiFixture;
  let ada: AccountId;
  let token: TestToken;
  let port: number;
  /** While it is pending, exports wait at the events of `stream`. */
  let gate = Promise.resolve();
  let stream: StreamName;
  let reads = 0;
  let waiting = 0;
  /** Reads that are not held. */
  let free = 0;

  beforeAll(async () => {
    fixture = await createApiFixture({ wrapEvents: held });
    ada = await fixture.account('ada');
    token = await fixture.token(ada);
    port = await fixture.listen();
    stream = `refUpdates-${fixture.context.ids.next()}` as StreamName;
    for (let revision = 0; revision < PARTS; revision += 1) {
      // Each takes more than a chunk of the answer.
      const event = newEvent({ accountId: ada, data: { text: 'x'.repeat(70_000) } });
      await fixture.context.events.append({
        stream,
        expected: revision === 0 ? 'none' : revision - 1,
        events: [event],
      });
    }
  });
  beforeEach(() => {
    [reads, waiting, free] = [0, 0, 0];
    gate = Promise.resolve();
  });
  afterAll(() => fixture.close());

  function held(events: EventStore): EventStore {
    return {
      ...events,
      readStream: async (name, options) => {
        if (name === stream) waiting += 1;
        if (name === stream && waiting > free) await gate;
        if (name === stream) reads += options.limit;
        return events.readStream(name, options);
      },
    };
  }

  /** Holds every export at its first events; returns what lets it go on, or fail. */
  function hold(): { release: () => void; fail: (error: Error) => void } {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => undefined);
    gate = promise;
    return { release: resolve, fail: reject };
  }

  /** Begins an export; its answer comes with the first bytes. */
  function begin(by: TestToken) {
    const headers = { authorization: `Bearer ${by.secret}` };
    const request = get({ port, host: '127.0.0.1', path: URL, headers, agent: false });
    request.on('error', () => undefined);
    const answer = once(request, 'response').then(([response]) => response as IncomingMessage);
    answer.catch(() => undefined);
    return { answer, leave: () => request.destroy() };
  }

  const statusOf = async (by: TestToken): Promise<number> => (await fixture.request('GET', URL, by)).statusCode;

  test('is canonical JSON by lines, for nobody to store', async () => {
    const answer = await fixture.request('GET', URL, token);
    assert.equal(answer.headers['content-type'], 'application/x-ndjson');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal((await verifyText(answer.body)).checkpoint.account, ada);
  });

  test('answers HEAD without an export', async () => {
    const answer = await fixture.request('HEAD', URL, token);
    assert.deepEqual(
      [answer.statusCode, answer.headers['content-type'], answer.body],
      [200, 'application/x-ndjson', ''],
    );
    assert.equal(reads, 0);
  });

  test('is of the tree that its checkpoint signs, whatever is appended while it is read', async () => {
    const { release } = hold();
    const answer = fixture.request('GET', URL, token);
    await until(async () => waiting === 1);
    await fixture.repository(ada, 'meanwhile');
    release();
    const { body } = await answer;
    assert.equal((await verifyText(body)).isWhole, true);
    assert.ok(!body.includes('meanwhile'));
  });

  test('reads no further than it is read: whoever reads slowly holds one batch of events in memory', async () => {
    const { context } = fixture;
    const opened = await openExport(context, {
      account: ada,
      seen: await context.events.head(),
      since: null,
      until: null,
    });
    assert.ok('chunks' in opened);
    const chunks = opened.chunks();
    assert.equal((await chunks.next()).done, false);
    assert.ok(reads <= ENTRIES_READ_AT_ONCE_MAX, `read ${reads}`);
    let rest = 0;
    for await (const chunk of chunks) rest += chunk.length;
    assert.ok(reads === PARTS && rest > 60_000 * PARTS);
    opened.close();
  });

  test('is refused beside two others of the account, until a client has left', async () => {
    const { release } = hold();
    const [first, second] = [begin(token), begin(token)];
    const other = await fixture.token(ada);
    await until(async () => waiting === 2);
    const refused = await fixture.request('GET', URL, other);
    assert.match(refused.json<{ detail: string }>().detail, /at most 2 of an account/);
    const bob = await fixture.token(await fixture.account('bob'));
    assert.equal(await statusOf(bob), 200, 'of another account');
    first.leave();
    release();
    await until(async () => (await statusOf(other)) === 200);
    second.leave();
  });

  test('is cut off, never ended, when the log fails', async () => {
    const { fail } = hold();
    free = 1;
    const { answer } = begin(token);
    await until(async () => waiting === 2);
    fail(new Error('The log is down'));
    let text = '';
    await assert.rejects(async () => {
      for await (const chunk of (await answer).setEncoding('utf8')) text += String(chunk);
    });
    assert.ok(text.length > 0 && !text.includes('"checkpoint"'));
    gate = Promise.resolve();
    await until(async () => (await statusOf(token)) === 200);
  });
});

describe('the slots of exports', () => {
  test('are bounded in all and for an account, and are freed once', () => {
    const slots = createExportSlots();
    const [ada, others] = [newAccount(), Array.from({ length: LOG_EXPORTS_AT_ONCE_MAX }, newAccount)];
    const own = Array.from({ length: LOG_EXPORTS_OF_ACCOUNT_MAX }, () => slots.take(ada));
    assert.ok(own.every((release) => release !== null));
    assert.equal(slots.take(ada), null);
    const rest = others.slice(LOG_EXPORTS_OF_ACCOUNT_MAX).map((account) => slots.take(account));
    assert.ok(rest.every((release) => release !== null));
    assert.equal(slots.take(newAccount()), null, 'one past all');
    own[0]?.();
    own[0]?.();
    assert.notEqual(slots.take(ada), null);
    assert.equal(slots.take(newAccount()), null, 'the slot was freed once');
  });
});
