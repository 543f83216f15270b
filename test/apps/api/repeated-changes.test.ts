/** Changes of refs that are sent again under their `Idempotency-Key`. */
import assert from 'node:assert/strict';
import type { LightMyRequestResponse } from 'fastify';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { createApi } from '../../../apps/api/app.ts';
import { IDEMPOTENCY_KEY_LENGTH_MAX } from '../../../apps/api/http/idempotency-key.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { CHANGES_KEPT_FOR_PERSON } from '../../../core/usage/changes.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type FixtureOptions, type TestToken } from '../../support/api-fixture.ts';

const ZERO = '0'.repeat(40);
const MAIN = 'refs/heads/main';
const REFS = '/v1/repos/ada/project/refs';
const TAGS = '/v1/repos/ada/project/tags';

describe('A change of refs with an Idempotency-Key', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let ids: ObjectId[];
  let beforeAppend: () => Promise<void>;

  async function start(options: FixtureOptions = {}): Promise<void> {
    beforeAppend = async () => undefined;
    fixture = await createApiFixture({
      wrapEvents: (events) => ({
        ...events,
        append: async (request) => {
          const [event] = request.events;
          if (event?.type === 'RefsUpdated' && event.actor.kind === 'token') await beforeAppend();
          return events.append(request);
        },
      }),
      ...options,
    });
    account = await fixture.account('ada', 'FREE');
    token = await fixture.token(account, { grants: ['GIT_HTTP_WRITE'] });
    repository = await fixture.repository(account, 'project');
    const tree = fixture.objects.tree({});
    ids = [1, 2, 3].map((seconds) => fixture.objects.commit({ tree, seconds }));
    await fixture.push(repository, { [MAIN]: id(0) });
  }

  beforeEach(() => start());
  afterEach(() => fixture.close());

  const id = (index: number): ObjectId => ids[index] as ObjectId;
  const send = (key: string, body: unknown, { url = REFS, by = token } = {}) =>
    fixture.request('POST', url, by, { body, headers: { 'idempotency-key': key } });
  const moved = (after: ObjectId, expected: string = 'any') => ({ updates: [{ ref: MAIN, expected, after }] });
  const head = async (): Promise<string> => {
    const owner = await fixture.token(account);
    const { refs } = (await fixture.request('GET', REFS, owner)).json();
    return refs.find(({ name }: { readonly name: string }) => name === MAIN).target;
  };
  const pushes = async (): Promise<number> => {
    const { stream } = repository.entity;
    return (await fixture.context.events.readStream(stream, { direction: 'forwards', limit: 1_000 })).length;
  };
  const changed = (answer: LightMyRequestResponse, status = 200) => {
    assert.deepEqual([answer.statusCode, answer.headers['idempotent-replayed']], [status, undefined], answer.body);
    return answer.json();
  };
  const repeated = (answer: LightMyRequestResponse, status = 200) => {
    assert.deepEqual([answer.statusCode, answer.headers['idempotent-replayed']], [status, 'true'], answer.body);
    return answer.json();
  };

  test('is made once, and a repeat answers what it changed, wherever the refs are now', async () => {
    const first = changed(await send('key', moved(id(1), id(0))));
    await fixture.push(repository, { [MAIN]: id(2) });
    const count = await pushes();
    assert.deepEqual(repeated(await send('key', moved(id(1), id(0)))), first);
    assert.deepEqual(repeated(await send('"key"', { atomic: true, ...moved(id(1), id(0)) })), first);
    assert.deepEqual([await head(), await pushes()], [id(2), count]);
  });

  test('is refused if another request has used the key', async () => {
    changed(await send('key', moved(id(1))));
    const refused = await send('key', moved(id(2)));
    assert.equal(refused.statusCode, 422);
    assert.match(refused.json().detail, /another body/);
    assert.equal(await head(), id(1));
  });

  test('has a key of its token, its repository and its route', async () => {
    const other = await fixture.token(account);
    const elsewhere = await fixture.repository(account, 'elsewhere');
    await fixture.push(elsewhere, { [MAIN]: id(0) });
    changed(await send('key', moved(id(1))));
    changed(await send('key', moved(id(2)), { by: other }));
    changed(await send('key', moved(id(1)), { by: other, url: '/v1/repos/ada/elsewhere/refs' }));
    changed(await send('key', { name: 'v1', target: id(1), expected: ZERO }, { url: TAGS }), 201);
  });

  // The attack: who may not change a repository any more asks what a key has changed.
  test('is told only to whom the repository is open', async () => {
    changed(await send('key', moved(id(1))));
    const reader = await fixture.token(account, { grants: ['GIT_HTTP_READ'] });
    assert.equal((await send('key', moved(id(1)), { by: reader })).statusCode, 403);
    const owner = await fixture.token(account);
    assert.equal((await fixture.request('DELETE', `/v1/access-tokens/${token.id}`, owner)).statusCode, 204);
    assert.equal((await send('key', moved(id(1)))).statusCode, 401);
  });

  test('is decided as if it were new if it was refused, or changed nothing', async () => {
    const refused = await send('key', moved(id(2), id(1)));
    assert.deepEqual([refused.statusCode, refused.json().code], [409, 'head-moved']);
    assert.equal((await send('so', moved(id(0)))).json().event_id, null);
    await fixture.push(repository, { [MAIN]: id(1) });
    changed(await send('key', moved(id(2), id(1))));
    assert.equal(typeof changed(await send('so', moved(id(0)))).event_id, 'string');
  });

  test('says of a ref that was refused at first only that it was not changed', async () => {
    const updates = [
      { ref: 'refs/heads/new', expected: ZERO, after: id(1) },
      { ref: MAIN, expected: id(2), after: id(1) },
      { ref: 'main', expected: 'any', after: id(1) },
    ];
    const first = changed(await send('key', { updates, atomic: false }));
    const { refused, ...others } = repeated(await send('key', { updates, atomic: false }));
    assert.deepEqual({ ...others, refused: first.refused }, first);
    assert.deepEqual(
      refused.map(({ ref, code }: { readonly ref: string; readonly code: string }) => [ref, code]),
      [
        [MAIN, 'not-changed'],
        ['main', 'not-changed'],
      ],
    );
    const same = [{ ref: MAIN, expected: 'any', after: id(0) }, ...updates.slice(0, 1)];
    const again = same.map((update) => ({ ...update, expected: 'any' }));
    await fixture.push(repository, { 'refs/heads/new': null });
    const partly = changed(await send('other', { updates: again, atomic: false }));
    assert.deepEqual([partly.updates.length, partly.refused], [1, []]);
    assert.deepEqual(repeated(await send('other', { updates: again, atomic: false })), partly);
  });

  test('is refused while one with its key is under way', async () => {
    let meanwhile: LightMyRequestResponse | null = null;
    beforeAppend = async () => {
      beforeAppend = async () => undefined;
      meanwhile = await send('key', moved(id(1)));
    };
    const first = changed(await send('key', moved(id(1))));
    const { statusCode, headers, body } = meanwhile ?? assert.fail('no other request');
    assert.deepEqual([statusCode, headers['retry-after'], JSON.parse(body).code], [409, '1', 'key-in-use']);
    assert.deepEqual(repeated(await send('key', moved(id(1)))), first);
  });

  test('is refused if another node was faster with its key, and the repeat answers what that changed', async () => {
    const node = createApi(fixture.context);
    const there = async () =>
      node.inject({
        ...{ method: 'POST', url: REFS, payload: JSON.stringify(moved(id(1))) },
        headers: {
          authorization: `Bearer ${token.secret}`,
          'content-type': 'application/json',
          'idempotency-key': 'key',
        },
      });
    let other: LightMyRequestResponse | null = null;
    beforeAppend = async () => {
      beforeAppend = async () => undefined;
      other = await there();
    };
    const late = await send('key', moved(id(1)));
    assert.deepEqual([late.statusCode, late.json().code, late.headers['retry-after']], [409, 'key-in-use', '1']);
    const first = changed(other ?? assert.fail('no other request'));
    assert.deepEqual(repeated(await send('key', moved(id(1)))), first);
    assert.equal(await pushes(), 2);
    await node.close();
  });

  test('counts as no change if it is a repeat', async () => {
    await fixture.close();
    await start({
      plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, changes_per_month: CHANGES_KEPT_FOR_PERSON + 5 } },
    });
    let made = 0;
    while ((await send(`key-${made}`, moved(id((made + 1) % 2)))).statusCode === 200) made += 1;
    assert.ok(made > 0);
    assert.equal((await send(`key-${made}`, moved(id((made + 1) % 2)))).statusCode, 429);
    for (let key = 0; key < made; key += 1) repeated(await send(`key-${key}`, moved(id((key + 1) % 2))));
  });

  test(`has a key of 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} printable characters, quoted or not`, async () => {
    const longest = 'k'.repeat(IDEMPOTENCY_KEY_LENGTH_MAX);
    for (const key of ['""', '"', '"a', 'a\tb', 'é', '"a"b', '"\\x"', `${longest}k`, `"${longest}k"`]) {
      const refused = await send(key, moved(id(1)));
      assert.deepEqual([refused.statusCode, await head()], [400, id(0)], key);
      assert.match(refused.json().detail, /Idempotency-Key/);
    }
    changed(await send(longest, moved(id(1))));
    repeated(await send(`"${longest}"`, moved(id(1))));
    changed(await send('a "b" \\c', moved(id(2))));
    repeated(await send('"a \\"b\\" \\\\c"', moved(id(2))));
  });
});

describe('A new tag with an Idempotency-Key', () => {
  let fixture: ApiFixture;
  afterEach(() => fixture.close());

  test('is made once, and a repeat shows it as it was made, also when it has moved', async () => {
    fixture = await createApiFixture();
    const account = await fixture.account('ada');
    const token = await fixture.token(account);
    const repository = await fixture.repository(account, 'project');
    const tree = fixture.objects.tree({});
    const [first, second] = [1, 2].map((seconds) => fixture.objects.commit({ tree, seconds }));
    assert.ok(first !== undefined && second !== undefined);
    await fixture.push(repository, { [MAIN]: first });
    const create = () =>
      fixture.request('POST', TAGS, token, {
        body: { name: 'v1', target: first, expected: ZERO },
        headers: { 'idempotency-key': 'key' },
      });
    const made = await create();
    assert.equal(made.statusCode, 201, made.body);
    await fixture.push(repository, { 'refs/tags/v1': second });
    const again = await create();
    assert.deepEqual([again.statusCode, again.headers['idempotent-replayed']], [201, 'true']);
    assert.deepEqual(again.json(), made.json());
    const { objects } = fixture.context;
    const emptied: typeof objects.open = async (committed) => {
      return { ...(await objects.open(committed)), tips: async (ids) => ids.map(() => null) };
    };
    const node = createApi({ ...fixture.context, objects: { ...objects, open: emptied } });
    const { statusCode, headers } = await node.inject({
      ...{ method: 'POST', url: TAGS, payload: JSON.stringify({ name: 'v1', target: first, expected: ZERO }) },
      headers: {
        authorization: `Bearer ${token.secret}`,
        'content-type': 'application/json',
        'idempotency-key': 'key',
      },
    });
    assert.deepEqual([statusCode, headers['idempotent-replayed']], [410, undefined], 'its target has left storage');
    await node.close();
  });
});
