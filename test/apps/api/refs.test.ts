/** Changes of refs over REST: each is a push. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { PUSH_BODY_VALUES_MAX } from '../../../apps/api/http/json-body.ts';
import { PUSH_BODY_BYTES_MAX } from '../../../apps/api/limits.ts';
import { REF_UPDATES_MAX } from '../../../apps/api/schemas/refs.ts';
import { ACCOUNT_REF_CHANGES_PER_HOUR_MAX } from '../../../apps/front-door/callers.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { BODY_CHUNK_HELD_BYTES, LEFT_TIP_SPAN_MS } from '../../../core/kernel/limits.ts';
import { REDECISIONS_MAX } from '../../../core/use-cases/pushing/push-refs.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type FixtureOptions, type TestToken } from '../../support/api-fixture.ts';

const ZERO = '0'.repeat(40);
const MAIN = 'refs/heads/main';

interface Update {
  readonly ref: string;
  readonly expected: string;
  readonly after: string | null;
}

describe('POST /v1/repos/{username}/{name}/refs', () => {
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
    ids = [];
    for (let seconds = 1; seconds <= 3; seconds += 1) {
      ids.push(fixture.objects.commit({ tree, seconds, parents: ids.slice(-1) }));
    }
    await fixture.push(repository, { [MAIN]: id(1) });
  }

  beforeEach(() => start());
  afterEach(() => fixture.close());

  const id = (index: number): ObjectId => ids[index] as ObjectId;
  const send = (body: unknown, headers = {}) =>
    fixture.request('POST', '/v1/repos/ada/project/refs', token, { body, headers });
  const change = (updates: readonly Update[], atomic?: boolean) =>
    send({ updates, ...(atomic === undefined ? {} : { atomic }) });
  const refs = async (): Promise<Readonly<Record<string, string>>> => {
    const owner = await fixture.token(account);
    const answer = await fixture.request('GET', '/v1/repos/ada/project/refs', owner);
    assert.equal(answer.statusCode, 200, answer.body);
    const listed: readonly { readonly name: string; readonly target: string }[] = answer.json().refs;
    return Object.fromEntries(listed.map(({ name, target }) => [name, target]));
  };
  /** Answers with one refused ref. */
  const refusal = async (update: Update) => {
    const answer = await change([update]);
    const { refused, event_id, updates } = answer.json();
    assert.deepEqual([event_id, updates], [null, []], answer.body);
    return [answer.statusCode, refused[0].code];
  };

  test('creates, moves and deletes refs by one push', async () => {
    await fixture.push(repository, { 'refs/heads/old': id(0), 'refs/tags/v1': id(0) });
    const answer = await change([
      { ref: 'refs/heads/new', expected: ZERO, after: id(2) },
      { ref: MAIN, expected: id(1), after: id(2) },
      { ref: 'refs/tags/v1', expected: id(0), after: id(1) },
      { ref: 'refs/heads/old', expected: id(0), after: null },
    ]);
    assert.equal(answer.statusCode, 200, answer.body);
    const { event_id, updates, refused } = answer.json();
    assert.deepEqual(updates, [
      { ref: 'refs/heads/new', before: ZERO, after: id(2), kind: 'create' },
      { ref: MAIN, before: id(1), after: id(2), kind: 'fast-forward' },
      { ref: 'refs/tags/v1', before: id(0), after: id(1), kind: 'force-push' },
      { ref: 'refs/heads/old', before: id(0), after: ZERO, kind: 'delete' },
    ]);
    assert.deepEqual(refused, []);
    assert.deepEqual(await refs(), { 'refs/heads/new': id(2), [MAIN]: id(2), 'refs/tags/v1': id(1) });
    const owner = await fixture.token(account);
    const { activity } = (await fixture.request('GET', '/v1/repos/ada/project/activity', owner)).json();
    const own = activity.filter((row: { readonly id: string }) => row.id === event_id);
    assert.deepEqual([own.length, own[0].actor], [4, { kind: 'token', id: token.id }]);
    const { stream } = repository.entity;
    const [pushed] = await fixture.context.events.readStream(stream, { direction: 'backwards', limit: 1 });
    assert.deepEqual([pushed?.id, pushed?.data['door']], [event_id, 'api']);
  });

  test('refuses a ref that is not as expected, tells its head, and changes nothing', async () => {
    const cases: readonly (readonly [Update, string, string])[] = [
      [{ ref: MAIN, expected: id(0), after: id(2) }, 'ref-moved', id(1)],
      [{ ref: MAIN, expected: ZERO, after: id(2) }, 'ref-exists', id(1)],
      [{ ref: MAIN, expected: id(2), after: null }, 'ref-moved', id(1)],
      [{ ref: 'refs/heads/absent', expected: id(0), after: id(2) }, 'ref-missing', ZERO],
    ];
    for (const [update, code, head] of cases) {
      const answer = await change([update]);
      assert.equal(answer.statusCode, 409, answer.body);
      const { detail, ...others } = answer.json();
      assert.match(detail, new RegExp(`^Nothing was changed. ${update.ref}: it `));
      const [reason] = others.refused;
      assert.deepEqual(others, {
        ...{ code: 'head-moved', head, event_id: null, updates: [] },
        refused: [{ ref: update.ref, code, detail: reason.detail, head }],
      });
    }
    assert.deepEqual(await refs(), { [MAIN]: id(1) });
  });

  test('takes any head where that is asked for, also for a ref that is not there', async () => {
    const updates = [
      { ref: MAIN, expected: 'any', after: id(0) },
      { ref: 'refs/heads/new', expected: 'any', after: id(0) },
      { ref: 'refs/heads/absent', expected: 'any', after: null },
    ];
    const answer = await change(updates);
    assert.equal(answer.statusCode, 200, answer.body);
    const kinds = answer.json().updates.map(({ kind }: { readonly kind: string }) => kind);
    assert.deepEqual(kinds, ['force-push', 'create']);
    const again = (await change(updates)).json();
    assert.deepEqual(again, { event_id: null, updates: [], refused: [] }, 'what is so already makes no event');
  });

  test('changes nothing if one ref is refused, unless the others may change without it', async () => {
    const updates = [
      { ref: 'refs/heads/new', expected: ZERO, after: id(2) },
      { ref: MAIN, expected: id(0), after: id(2) },
    ];
    const whole = await change(updates);
    assert.equal(whole.statusCode, 409);
    const codes = whole.json().refused.map(({ code }: { readonly code: string }) => code);
    assert.deepEqual(codes, ['atomic-push-refused', 'ref-moved']);
    assert.equal(whole.json().head, id(1));
    assert.deepEqual(await refs(), { [MAIN]: id(1) });
    const partly = await change(updates, false);
    assert.equal(partly.statusCode, 200, partly.body);
    const { event_id, refused } = partly.json();
    assert.deepEqual([typeof event_id, refused.length, refused[0].code], ['string', 1, 'ref-moved']);
    assert.deepEqual(await refs(), { 'refs/heads/new': id(2), [MAIN]: id(1) });
    assert.equal((await change(updates.slice(1), false)).statusCode, 409, 'all are refused');
  });

  test('refuses what a push would refuse, with the same code', async () => {
    const tree = fixture.objects.tree({});
    const cases: readonly (readonly [string, string, string])[] = [
      ['main', id(2), 'ref-name-malformed'],
      ['refs/heads/a..b', id(2), 'ref-name-malformed'],
      ['refs/stash', id(2), 'ref-outside-namespaces'],
      ['refs/replace/x', id(2), 'ref-replace'],
      ['refs/strata/x', id(2), 'ref-reserved'],
      ['refs/heads/-x', id(2), 'ref-component-starts-with-dash'],
      ['refs/heads/HEAD', id(2), 'name-ambiguous'],
      ['refs/heads/main/x', id(2), 'ref-collides'],
      ['refs/heads/x', tree, 'branch-needs-commit'],
      ['refs/heads/x', 'e'.repeat(40), 'object-missing'],
    ];
    for (const [ref, after, code] of cases) {
      assert.deepEqual(await refusal({ ref, expected: ZERO, after }), [422, code], ref);
    }
    const mixed = await change([
      { ref: 'main', expected: ZERO, after: id(2) },
      { ref: MAIN, expected: 'any', after: id(2) },
    ]);
    assert.equal(mixed.statusCode, 422);
    assert.match(mixed.json().detail, /^Nothing was changed. main: the name is not a full ref name/);
    assert.deepEqual(await refs(), { [MAIN]: id(1) });
  });

  // The attack: a writer names the id of an object that no ref reaches, to read it by a new ref.
  test('refuses an object that the caller could not fetch, as one that is not there', async () => {
    const secret = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 9 });
    await fixture.push(repository, { 'refs/heads/secret': secret }, 100);
    await fixture.push(repository, { 'refs/heads/secret': null });
    const update = { ref: 'refs/heads/new', expected: ZERO, after: secret };
    fixture.clock.advance(LEFT_TIP_SPAN_MS + 1);
    const hidden = await change([update]);
    const missing = await change([{ ...update, after: 'e'.repeat(40) }]);
    assert.deepEqual([hidden.statusCode, hidden.json()], [422, missing.json()]);
    // What else is refused beside it, or about it, tells no difference either.
    for (const [own, other] of [
      [ZERO, id(2)],
      [id(0), id(1)],
    ] as const) {
      const answers = [secret, 'e'.repeat(40)].map(async (after) => {
        const answer = await change([
          { ...update, expected: own, after },
          { ref: MAIN, expected: other, after: id(0) },
        ]);
        return [answer.statusCode, answer.json()];
      });
      const [one, two] = await Promise.all(answers);
      assert.deepEqual(one, two);
    }
    const partly = await change([update, { ref: MAIN, expected: 'any', after: id(0) }], false);
    assert.deepEqual([partly.statusCode, partly.json().refused.length], [200, 1]);
    assert.deepEqual(await refs(), { [MAIN]: id(0) });
  });

  test('is refused if a push is faster, and tells what that push left', async () => {
    beforeAppend = async () => {
      beforeAppend = async () => undefined;
      await fixture.push(repository, { [MAIN]: id(0) });
    };
    const answer = await change([{ ref: MAIN, expected: id(1), after: id(2) }]);
    assert.deepEqual([answer.statusCode, answer.json().head], [409, id(0)]);
    assert.deepEqual(await refs(), { [MAIN]: id(0) });
  });

  test('of any head is decided again on each new one, so often and no more', async () => {
    const rivals = Array.from({ length: REDECISIONS_MAX + 1 }, (_, index) =>
      fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 100 + index }),
    );
    const race = (times: number): void => {
      let races = 0;
      beforeAppend = async () => {
        races += 1;
        if (races <= times) await fixture.push(repository, { [MAIN]: rivals[races - 1] ?? null });
      };
    };
    const update = { ref: MAIN, expected: 'any', after: id(2) };
    race(REDECISIONS_MAX);
    const late = await change([update]);
    assert.equal(late.statusCode, 200, late.body);
    assert.equal(late.json().updates[0].before, rivals[REDECISIONS_MAX - 1]);
    race(REDECISIONS_MAX + 1);
    const tooLate = await change([{ ...update, after: id(1) }]);
    assert.deepEqual([tooLate.statusCode, tooLate.headers['retry-after']], [503, '1']);
    assert.deepEqual(await refs(), { [MAIN]: rivals[REDECISIONS_MAX] });
  });

  test('changes nothing if its token is revoked before the append', async () => {
    const owner = await fixture.token(account);
    beforeAppend = async () => {
      beforeAppend = async () => undefined;
      assert.equal((await fixture.request('DELETE', `/v1/access-tokens/${token.id}`, owner)).statusCode, 204);
    };
    assert.equal((await change([{ ref: MAIN, expected: id(1), after: id(2) }])).statusCode, 401);
    assert.deepEqual(await refs(), { [MAIN]: id(1) });
  });

  test('takes no If-Match, and names what takes its place', async () => {
    const answer = await send({ updates: [{ ref: MAIN, expected: id(1), after: id(2) }] }, { 'if-match': '*' });
    assert.equal(answer.statusCode, 400);
    assert.match(answer.json().detail, /`expected`/);
    assert.deepEqual(await refs(), { [MAIN]: id(1) });
  });

  test('takes well-formed updates of different refs only', async () => {
    const update = { ref: MAIN, expected: id(1), after: id(2) };
    const cases: readonly (readonly [unknown, readonly unknown[]])[] = [
      [{}, ['body', 'updates']],
      [{ updates: [] }, ['body', 'updates']],
      [{ updates: [update, update] }, ['body', 'updates']],
      [{ updates: [{ ref: MAIN, after: id(2) }] }, ['body', 'updates', 0, 'expected']],
      [{ updates: [{ ref: MAIN, expected: id(1) }] }, ['body', 'updates', 0, 'after']],
      [{ updates: [{ ...update, expected: 'main' }] }, ['body', 'updates', 0, 'expected']],
      [{ updates: [{ ...update, expected: null }] }, ['body', 'updates', 0, 'expected']],
      [{ updates: [{ ...update, after: ZERO }] }, ['body', 'updates', 0, 'after']],
      [{ updates: [{ ...update, after: id(2).slice(1) }] }, ['body', 'updates', 0, 'after']],
    ];
    for (const [body, loc] of cases) {
      const answer = await send(body);
      assert.equal(answer.statusCode, 422, answer.body);
      assert.deepEqual(answer.json().detail[0].loc, loc, answer.body);
    }
    assert.deepEqual(await refs(), { [MAIN]: id(1) });
  });

  test(`changes up to ${REF_UPDATES_MAX} refs`, async () => {
    const updates = Array.from({ length: REF_UPDATES_MAX + 1 }, (_, index) => {
      return { ref: `refs/heads/b${index}`, expected: ZERO, after: id(1) };
    });
    assert.equal((await change(updates)).statusCode, 422);
    const answer = await change(updates.slice(1));
    assert.deepEqual([answer.statusCode, answer.json().updates.length], [200, REF_UPDATES_MAX]);
  });

  test('has a body of 8 MiB and 100,000 values, and no more', async () => {
    const sized = (bytes: number) => {
      const text = JSON.stringify({ updates: [{ ref: MAIN, expected: 'any', after: id(1) }] });
      return fixture.app.inject({
        method: 'POST',
        url: '/v1/repos/ada/project/refs',
        headers: { authorization: `Bearer ${token.secret}`, 'content-type': 'application/json' },
        payload: `${' '.repeat(bytes - text.length)}${text}`,
      });
    };
    assert.equal((await sized(PUSH_BODY_BYTES_MAX)).statusCode, 200);
    assert.equal((await sized(PUSH_BODY_BYTES_MAX + 1)).statusCode, 413);
    // The body and its member are values too.
    const valued = (values: number) => send({ updates: Array(values - 2).fill(1) });
    assert.equal((await valued(PUSH_BODY_VALUES_MAX)).statusCode, 422);
    assert.equal((await valued(PUSH_BODY_VALUES_MAX + 1)).statusCode, 413);
  });

  test('holds four times the bytes of its body', async () => {
    let held = 0;
    beforeAppend = async () => {
      held = fixture.context.bodyBudget.heldBytes();
    };
    const body = { updates: [{ ref: MAIN, expected: 'any', after: id(2) }] };
    assert.equal((await send(body)).statusCode, 200);
    assert.equal(held, 4 * JSON.stringify(body).length + BODY_CHUNK_HELD_BYTES);
  });

  test('counts each ref against the refs that an account may change within an hour', async () => {
    await fixture.close();
    const factor = 0.04;
    await start({ rateFactor: factor });
    const updates = Array.from({ length: REF_UPDATES_MAX }, (_, index) => {
      return { ref: `refs/heads/b${index}`, expected: 'any', after: null };
    });
    for (let sent = 0; sent < ACCOUNT_REF_CHANGES_PER_HOUR_MAX * factor; sent += updates.length) {
      assert.equal((await change(updates)).statusCode, 200);
    }
    const refused = await change(updates.slice(1));
    assert.equal(refused.statusCode, 429);
    assert.match(refused.json().detail, /has changed as many refs/);
  });

  test('is refused when the changes of the month are used up, unless it only deletes', async () => {
    await fixture.close();
    await start({ plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, changes_per_month: 0 } } });
    const refused = await change([{ ref: MAIN, expected: id(1), after: id(2) }]);
    assert.equal(refused.statusCode, 429);
    assert.match(refused.json().detail, /changes_per_month/);
    assert.equal((await change([{ ref: MAIN, expected: id(1), after: null }])).statusCode, 200);
    assert.deepEqual(await refs(), {});
  });

  test('is refused when the quota of storage is used up, unless it only deletes', async () => {
    await fixture.close();
    await start({ plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, storage_bytes: 0 } } });
    const refused = await change([{ ref: MAIN, expected: id(1), after: id(2) }]);
    assert.deepEqual([refused.statusCode, refused.json().detail], [422, "The plan's quota of storage is reached"]);
    assert.equal((await change([{ ref: MAIN, expected: id(1), after: null }])).statusCode, 200);
  });
});
