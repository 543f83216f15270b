/** The account's log over the API: pages, filters and openings. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ENTRIES_PAGE_LIMIT_MAX } from '../../../apps/api/limits.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { ENTRIES_PAGE_LENGTH_MAX } from '../../../core/use-cases/auditing/list-entries.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { verifyText } from '../../support/exported-log.ts';

interface Line {
  readonly entry: { readonly sequence: number; readonly type: string; readonly stream: string; readonly data: object };
  readonly leaf: string;
  readonly openings: Readonly<Record<string, { readonly nonce: string; readonly value: string }>>;
}

interface Page {
  readonly events: readonly Line[];
  readonly pagination: { readonly next_after: number | null; readonly has_more: boolean };
}

const MEMBERS = [
  'sequence',
  'id',
  'stream',
  'revision',
  'type',
  'version',
  'occurred_at',
  'actor',
  'request_id',
].concat(...['source_address_ref', 'causation_id', 'data']);

describe('GET /v1/account/events', () => {
  let fixture: ApiFixture;
  let ada: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    ada = await fixture.account('ada');
    token = await fixture.token(ada);
    await fixture.account('bob');
    await fixture.repository(ada, 'engine');
    fixture.clock.advance(60_000);
    await fixture.repository(ada, 'second');
    await fixture.webhook(ada);
  });
  afterAll(() => fixture.close());

  async function read(query = '', by = token): Promise<Page> {
    const answer = await fixture.request('GET', `/v1/account/events${query}`, by);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json<Page>();
  }

  const types = ({ events }: Page) => events.map(({ entry }) => entry.type);

  test('shows every entry of the account and of nobody else, with twelve members each, oldest first', async () => {
    const page = await read();
    assert.deepEqual(
      page.events.map(({ entry }) => entry.sequence),
      page.events.map((_, index) => index),
    );
    for (const { entry } of page.events) assert.deepEqual(Object.keys(entry).toSorted(), MEMBERS.toSorted());
    assert.ok(types(page).includes('WebhookCreated') && types(page).includes('AccessTokenCreated'));
    assert.ok(!JSON.stringify(page).includes('"bob"'));
    assert.deepEqual(page.pagination, { next_after: page.events.length - 1, has_more: false });
  });

  test('goes on after a sequence, in pages of the length asked for', async () => {
    const all = await read();
    const seen: number[] = [];
    for (let query = '?limit=2'; ; ) {
      const page = await read(query);
      seen.push(...page.events.map(({ entry }) => entry.sequence));
      assert.ok(page.events.length <= 2);
      if (!page.pagination.has_more) break;
      query = `?limit=2&after=${page.pagination.next_after}`;
    }
    assert.deepEqual(
      seen,
      all.events.map(({ entry }) => entry.sequence),
    );
    const end = all.events.length - 1;
    const behind = { events: [], pagination: { next_after: end, has_more: false } };
    assert.deepEqual(await read(`?after=${end}`), behind);
    assert.deepEqual(await read(`?after=999999999999999`), {
      ...behind,
      pagination: { next_after: 999999999999999, has_more: false },
    });
  });

  test('reads one entry by the id of its event, and none of another account', async () => {
    const all = (await read()).events;
    for (const line of all) {
      const { id } = line.entry as unknown as { readonly id: string };
      const answer = await fixture.request('GET', `/v1/account/events/${id.toUpperCase()}`, token);
      assert.deepEqual([answer.statusCode, answer.json()], [200, line]);
    }
    const stranger = await fixture.token(await fixture.account('carol'));
    const { id } = (all[0] ?? assert.fail('no entry')).entry as unknown as { readonly id: string };
    for (const [path, by] of [
      [id, stranger],
      ['0190f3e2-7c1a-7b4e-9a35-0000000000ff', token],
      ['nothing', token],
    ] as const) {
      const answer = await fixture.request('GET', `/v1/account/events/${path}`, by);
      const missing = { detail: 'The log of this account has no such event' };
      assert.deepEqual([answer.statusCode, answer.json()], [404, missing], path);
    }
  });

  test('selects by type, stream, repository, actor and log time', async () => {
    const all = (await read()).events;
    assert.deepEqual(types(await read('?type=WebhookCreated')), ['WebhookCreated']);
    assert.deepEqual(types(await read('?type=WebhookDeleted')), []);
    const stream = `accessToken-${token.id}`;
    assert.deepEqual(types(await read(`?stream=${stream}`)), ['AccessTokenCreated']);
    const repository = (await read('?type=RepositoryCreated')).events[0]?.entry.data as { repository_id: string };
    assert.deepEqual(types(await read(`?repository_id=${repository.repository_id.toUpperCase()}`)), [
      'RepositoryCreated',
    ]);
    assert.deepEqual(types(await read('?actor_id=nobody')), []);
    assert.equal((await read('?actor_id=test')).events.length, all.length);
    const late = fixture.clock.now();
    const since = (await read(`?since=${late}`)).events.length;
    const until = (await read(`?until=${encodeURIComponent('2026-11-21T11:01:00+01:00')}`)).events.length;
    assert.ok(since > 0 && until > 0);
    assert.equal(since + until, all.length, 'since is included, until is not');
  });

  test('selects what one request appended, by the id that its answer had', async () => {
    const made = await fixture.request('POST', '/v1/repositories', token, { body: { name: 'by-request' } });
    assert.equal(made.statusCode, 201, made.body);
    const request = String(made.headers['x-request-id']);
    const { events } = await read(`?request_id=${request}`);
    assert.ok(events.length > 0);
    for (const { entry } of events) {
      assert.equal((entry as unknown as { readonly request_id: string }).request_id, request);
    }
    assert.ok(events.some(({ entry }) => entry.type === 'RepositoryCreated'));
    assert.deepEqual(types(await read('?request_id=none')), []);
  });

  test('opens personal data beside the entry, each by its commitment, and no secret', async () => {
    const { events } = await read();
    const values = events.flatMap(({ openings }) =>
      Object.entries(openings).map(([ref, { nonce, value }]) => {
        assert.match(nonce, /^[0-9a-f]{64}$/);
        assert.equal(createHash('sha256').update(Buffer.from(nonce, 'hex')).update(value).digest('hex'), ref);
        return value;
      }),
    );
    assert.ok(values.some((value) => value.includes('https://receiver.example/hook')));
    assert.ok(
      values.some((value) => value.includes('@')),
      'the email address',
    );
    const webhook = events.find(({ entry }) => entry.type === 'WebhookCreated');
    assert.ok(webhook !== undefined);
    const { secret_ref } = webhook.entry.data as { readonly secret_ref: string };
    assert.ok(secret_ref.length === 64 && events.every(({ openings }) => openings[secret_ref] === undefined));
    assert.ok(!values.some((value) => value.startsWith('$argon2')), 'no hash of a password');
  });

  test('ends a page of large entries early, so that a short request does not make an answer without bounds', async () => {
    const owner = await fixture.account('large');
    const by = await fixture.token(owner);
    const data = { text: 'x'.repeat(1024 * 900) };
    const template = (await fixture.context.events.readAll(0n as never, 1))[0];
    assert.ok(template !== undefined);
    for (let n = 0; n < 6; n += 1) {
      const event = { ...template, id: fixture.context.ids.next(), accountId: owner, type: 'RefUpdatesPart', data };
      await fixture.context.events.append({
        stream: `refUpdates-${event.id}` as never,
        expected: 'none',
        events: [event as never],
      });
    }
    const first = await read('?type=RefUpdatesPart', by);
    assert.equal(first.events.length, Math.floor(ENTRIES_PAGE_LENGTH_MAX / (900 * 1024)));
    assert.equal(first.pagination.has_more, true);
    const rest = await read(`?type=RefUpdatesPart&after=${first.pagination.next_after}`, by);
    assert.equal(first.events.length + rest.events.length, 6);
  });

  test('serves no entry that is not what its leaf was made of: a page ends before it, and the next one names it', async () => {
    const changed = await createApiFixture({
      wrapEvents: (events) => ({
        ...events,
        readStream: async (name, options) =>
          (await events.readStream(name, options)).map((event) =>
            event.type === 'WebhookCreated' && isChanged ? { ...event, data: { ...event.data, forged: true } } : event,
          ),
      }),
    });
    let isChanged = false;
    try {
      const owner = await changed.account('ada');
      const by = await changed.token(owner);
      await changed.webhook(owner);
      await changed.repository(owner, 'behind');
      isChanged = true;
      const answer = await changed.request('GET', '/v1/account/events', by);
      const page = answer.json<Page>();
      assert.equal(answer.statusCode, 200);
      assert.ok(page.events.length > 0 && !types(page).includes('WebhookCreated'));
      const after = page.events.length - 1;
      assert.deepEqual(page.pagination, { next_after: after, has_more: true });
      const next = await changed.request('GET', `/v1/account/events?after=${after}`, by);
      assert.equal(next.statusCode, 500);
      const [, stream = ''] =
        /^Entry \d+, revision \d+ of (\S+), was changed/.exec(next.json<{ detail: string }>().detail) ?? [];
      const [told = '', ...others] = changed.logged.filter((line) => line.includes('not what its leaf was made of'));
      assert.deepEqual(others, []);
      assert.ok(stream !== '' && told.includes(stream) && told.includes('requestId') && told.includes('eventId'), told);
      const rest = await changed.request('GET', `/v1/account/events?after=${after + 1}`, by);
      assert.equal(rest.statusCode, 200, 'what stands behind it is shown');
      const whole = await changed.request('GET', '/v1/account/events/export', by);
      assert.match(whole.body, /"forged":true.*\{"checkpoint":/s);
      await assert.rejects(verifyText(whole.body), new RegExp(`line ${after + 2}: its leaf is not the hash`));
    } finally {
      await changed.close();
    }
  });

  test('refuses what is no filter, and pages past the limit', async () => {
    const refused = ['limit=0', `limit=${ENTRIES_PAGE_LIMIT_MAX + 1}`, 'after=-1', 'after=1e3', 'since=yesterday'];
    for (const query of [
      ...refused,
      'stream=plain',
      // An auditor who mistypes a filter must not read that nothing happened.
      'type=RefUpdated',
      'type=refsUpdated',
      'type=constructor',
      `stream=repositories-${token.id}`,
      `stream=webhookDelivery-${token.id}`,
      // An event of this type is in no account's record.
      'type=WebhookDeliveryAttempted',
      'type=%00',
      'type=',
      'repository_id=x',
      'what=ever',
      'actor_id=a%20%20b',
      'actor_id=%20a',
      'actor_id=a%0Ab',
      'request_id=',
      'request_id=a%0Ab',
    ]) {
      assert.equal((await fixture.request('GET', `/v1/account/events?${query}`, token)).statusCode, 422, query);
    }
    assert.equal((await read(`?limit=${ENTRIES_PAGE_LIMIT_MAX}`)).pagination.has_more, false);
  });
});
