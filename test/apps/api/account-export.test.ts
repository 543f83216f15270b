/** Exports of the account's log: how they are streamed, bounded and ended. What they hold is in test/apps/verifier. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createExportSlots } from '../../../core/use-cases/auditing/export-slots.ts';
import {
  ENTRIES_READ_AT_ONCE_MAX,
  LOG_EXPORTS_AT_ONCE_MAX,
  LOG_EXPORTS_OF_ACCOUNT_MAX,
} from '../../../core/kernel/limits.ts';
import type { StreamName } from '../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newAccount, newEvent } from '../../support/events.ts';
import { until } from '../../support/read-models.ts';
import { verifyText } from '../../support/exported-log.ts';

const URL = '/v1/account/events/export';

describe('GET /v1/account/events/export', () => {
  let fixture: ApiFixture;
  let ada: AccountId;
  let token: TestToken;
  let port: number;
  /** How many events each read of places asked for. */
  const reads: number[] = [];
  let readAll = 0;

  beforeAll(async () => {
    fixture = await createApiFixture({ wrapEvents: (events) => counting(events) });
    ada = await fixture.account('ada');
    token = await fixture.token(ada);
    port = await fixture.listen();
    // An export of some megabytes, which no buffer of the kernel takes whole.
    const stream = `refUpdates-${fixture.context.ids.next()}` as StreamName;
    for (let revision = 0; revision < 30; revision += 1) {
      const event = newEvent({ accountId: ada, data: { text: 'x'.repeat(900_000) } });
      await fixture.context.events.append({
        stream,
        expected: revision === 0 ? 'none' : revision - 1,
        events: [event],
      });
    }
    reads.length = 0;
  });
  afterAll(() => fixture.close());

  function counting(events: EventStore): EventStore {
    return {
      ...events,
      readStream: async (stream, options) => {
        reads.push(options.limit);
        readAll += options.limit;
        return events.readStream(stream, options);
      },
    };
  }

  async function begin(by: TestToken): Promise<IncomingMessage> {
    const request = get({
      port,
      host: '127.0.0.1',
      path: URL,
      headers: { authorization: `Bearer ${by.secret}` },
      agent: false,
    });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    answer.on('error', () => undefined);
    return answer;
  }

  test('is canonical JSON by lines, for nobody to store', async () => {
    const owner = await fixture.account('small');
    const answer = await fixture.request('GET', URL, await fixture.token(owner));
    assert.equal(answer.headers['content-type'], 'application/x-ndjson');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal((await verifyText(answer.body)).checkpoint.account, owner);
  });

  test('answers HEAD without an export', async () => {
    const answer = await fixture.request('HEAD', URL, token);
    assert.equal(answer.statusCode, 200);
    assert.equal(answer.headers['content-type'], 'application/x-ndjson');
    assert.equal(answer.body, '');
  });

  test('is of the tree that its checkpoint signs, whatever is appended while it is read', async () => {
    const answer = await begin(token);
    answer.pause();
    await fixture.repository(ada, 'meanwhile');
    let text = '';
    for await (const chunk of answer.setEncoding('utf8')) text += String(chunk);
    const verified = await verifyText(text);
    assert.equal(verified.isWhole, true);
    assert.ok(!text.includes('meanwhile'));
  });

  test('reads no further than its client does: a slow reader holds a few events and no more', async () => {
    readAll = 0;
    const answer = await begin(token);
    answer.pause();
    await until(async () => readAll > 0);
    await sleep(200);
    assert.ok(readAll <= 2 * ENTRIES_READ_AT_ONCE_MAX, `read ${readAll}`);
    assert.ok(reads.every((limit) => limit <= ENTRIES_READ_AT_ONCE_MAX));
    answer.destroy();
  });

  test('is refused beside two others of the account, until one of them has ended or its client has left', async (context) => {
    await until(async () => (await fixture.request('GET', URL, token)).statusCode === 200);
    const [first, second] = await Promise.all([begin(token), begin(token)]);
    for (const answer of [first, second]) answer.pause();
    const other = await fixture.token(ada);
    const refused = await fixture.request('GET', URL, other);
    assert.equal(refused.statusCode, 429);
    assert.match(refused.json<{ detail: string }>().detail, /at most 2 of an account/);
    const bob = await fixture.token(await fixture.account('bob'));
    assert.equal((await fixture.request('GET', URL, bob)).statusCode, 200, 'of another account');
    first.destroy();
    cleanUp(context, () => second.destroy());
    await until(async () => (await fixture.request('GET', URL, other)).statusCode === 200);
  });
});

describe('the slots of exports', () => {
  test('are so many in all and for an account, and are freed once', () => {
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
