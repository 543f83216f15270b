/** Restorations of refs over REST. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { RESTORED_MOVES_COMPARED_MAX } from '../../../core/use-cases/undo/restore-refs.ts';
import { type ApiFixture, createApiFixture, type FixtureOptions, type TestToken } from '../../support/api-fixture.ts';

const ZERO = '0'.repeat(40);

interface Change {
  readonly id: string;
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  readonly kind: string;
}

describe('POST /v1/repos/{username}/{name}/restore', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let ids: ObjectId[];
  let beforeAppend: () => Promise<void>;

  async function start(options: FixtureOptions = {}): Promise<void> {
    fixture = await createApiFixture(options);
    account = await fixture.account('ada');
    token = await fixture.token(account);
    fixture.clock.advance(1_000);
    repository = await fixture.repository(account, 'project');
    const tree = fixture.objects.tree({});
    ids = [];
    for (let seconds = 1; seconds <= 3; seconds += 1) {
      ids.push(fixture.objects.commit({ tree, seconds, parents: ids.slice(-1) }));
    }
  }

  beforeEach(async () => {
    beforeAppend = async () => undefined;
    await start({
      wrapEvents: (events) => ({
        ...events,
        append: async (request) => {
          if (request.events[0]?.type === 'RefsUpdated' && request.events[0].actor.kind === 'token')
            await beforeAppend();
          return events.append(request);
        },
      }),
    });
  });
  afterEach(() => fixture.close());

  const id = (index: number): ObjectId => ids[index] as ObjectId;
  const restore = (body: object, by: TestToken = token, path = 'ada/project') =>
    fixture.request('POST', `/v1/repos/${path}/restore`, by, { body });
  const activity = async (): Promise<readonly Change[]> =>
    (await fixture.request('GET', '/v1/repos/ada/project/activity', token)).json().activity;
  const rows = (changes: readonly Omit<Change, 'id'>[]) =>
    changes.map(({ ref, before, after, kind }) => [ref, before, after, kind]);

  /** Three pushes: two refs; a move and a deletion; a new branch. */
  async function pushed(): Promise<readonly string[]> {
    await fixture.push(repository, { 'refs/heads/main': id(1), 'refs/tags/v1': id(0) });
    fixture.clock.advance(60_000);
    await fixture.push(repository, { 'refs/heads/main': id(2), 'refs/tags/v1': null });
    fixture.clock.advance(60_000);
    await fixture.push(repository, { 'refs/heads/later': id(0) });
    return [...new Set((await activity()).map((change) => change.id))].toReversed();
  }

  const BACK = (): readonly (readonly string[])[] => [
    ['refs/heads/later', id(0), ZERO, 'delete'],
    ['refs/heads/main', id(2), id(1), 'force-push'],
    ['refs/tags/v1', ZERO, id(0), 'create'],
  ];
  const sorted = (changes: readonly (readonly (string | undefined)[])[]) =>
    changes.toSorted((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));

  test('sets refs back, deletes those made later, and is one event of the kind restore', async () => {
    const [first] = await pushed();
    const answer = await restore({ event_id: first });
    assert.equal(answer.statusCode, 200, answer.body);
    const { event_id, updates } = answer.json();
    assert.deepEqual(sorted(rows(updates)), BACK());
    const listed = (await activity()).filter((change) => change.id === event_id);
    assert.deepEqual(
      sorted(rows(listed)),
      BACK().map((row) => [...row.slice(0, 3), 'restore']),
    );
  });

  test('of a dry run tells what it then does, and changes nothing', async () => {
    const [first] = await pushed();
    const before = await activity();
    const planned = (await restore({ event_id: first, dry_run: true })).json();
    assert.deepEqual(await activity(), before);
    assert.equal(planned.event_id, null);
    assert.deepEqual(planned.updates, (await restore({ event_id: first })).json().updates);
  });

  test('is undone by a restoration to before it', async () => {
    const [first] = await pushed();
    const { event_id } = (await restore({ event_id: first })).json();
    const undone = (await restore({ before_event_id: event_id })).json();
    assert.deepEqual(sorted(rows(undone.updates)), [
      ['refs/heads/later', ZERO, id(0), 'create'],
      ['refs/heads/main', id(1), id(2), 'fast-forward'],
      ['refs/tags/v1', id(0), ZERO, 'delete'],
    ]);
  });

  test('takes a time with any offset, and the named refs only', async () => {
    const made = Date.parse(fixture.clock.now());
    await pushed();
    const at = new Date(made + 30_000).toISOString().replace('Z', '+00:00');
    const one = (await restore({ at, refs: ['refs/heads/main'] })).json();
    assert.deepEqual(rows(one.updates), [['refs/heads/main', id(2), id(1), 'force-push']]);
    const rest = (await restore({ at })).json();
    assert.deepEqual(
      sorted(rows(rest.updates)),
      BACK().filter(([ref]) => ref !== 'refs/heads/main'),
    );
  });

  test('to before the first push deletes all refs', async () => {
    const [first] = await pushed();
    const { updates, event_id } = (await restore({ before_event_id: first })).json();
    assert.deepEqual([updates.length, typeof event_id], [2, 'string']);
    const at = fixture.clock.now();
    assert.deepEqual((await restore({ at })).json(), { event_id: null, updates: [], left_out: [] });
  });

  test('without anything to change makes no event', async () => {
    const events = await pushed();
    const before = await activity();
    assert.deepEqual((await restore({ event_id: events.at(-1) })).json(), {
      event_id: null,
      updates: [],
      left_out: [],
    });
    assert.deepEqual(await activity(), before);
  });

  // The attack: a client restores while another pushes, to overwrite what nobody has seen.
  test('is refused if a push is faster, and leaves what was pushed', async () => {
    const [first] = await pushed();
    beforeAppend = async () => {
      beforeAppend = async () => undefined;
      await fixture.push(repository, { 'refs/heads/main': id(0) });
    };
    const answer = await restore({ event_id: first });
    assert.equal(answer.statusCode, 409, answer.body);
    const [newest] = await activity();
    assert.deepEqual([newest?.ref, newest?.after], ['refs/heads/main', id(0)]);
  });

  test('is decided again if what was faster changed no ref', async () => {
    const [first] = await pushed();
    beforeAppend = async () => {
      beforeAppend = async () => undefined;
      const body = { default_branch: 'later' };
      assert.equal((await fixture.request('PATCH', '/v1/repos/ada/project', token, { body })).statusCode, 200);
    };
    const answer = await restore({ event_id: first });
    assert.equal(answer.statusCode, 200, answer.body);
    assert.deepEqual(sorted(rows(answer.json().updates)), BACK());
    const read = (await fixture.request('GET', '/v1/repos/ada/project', token)).json();
    assert.equal(read.default_branch, 'later', 'the default branch is left alone');
  });

  test('of one ref is refused where it cannot exist beside another', async () => {
    await fixture.push(repository, { 'refs/heads/a': id(0) });
    await fixture.push(repository, { 'refs/heads/a': null });
    await fixture.push(repository, { 'refs/heads/a/b': id(0) });
    const [, , first] = await activity();
    const answer = await restore({ event_id: first?.id, refs: ['refs/heads/a'] });
    assert.equal(answer.statusCode, 409, answer.body);
    assert.equal((await restore({ event_id: first?.id })).statusCode, 200, 'all refs together fit');
  });

  test('answers what it does not know, and invalid moments', async () => {
    const [first] = await pushed();
    await fixture.repository(account, 'other');
    const statuses = [
      [{ event_id: '01890000-0000-7000-8000-000000000000' }, 404],
      [{ event_id: first, refs: ['refs/heads/nothing'] }, 404],
      [{ event_id: first, refs: ['main'] }, 404],
      [{ at: '2999-01-01T00:00:00Z' }, 422],
      [{ at: '2001-01-01T00:00:00Z' }, 404],
      [{}, 422],
      [{ event_id: first, at: fixture.clock.now() }, 422],
      [{ event_id: first, refs: [] }, 422],
      [{ at: 'yesterday' }, 422],
    ] as const;
    for (const [body, status] of statuses) {
      assert.equal((await restore(body)).statusCode, status, JSON.stringify(body));
    }
    assert.equal(
      (await restore({ event_id: first }, token, 'ada/other')).statusCode,
      404,
      "another repository's event",
    );
  });

  test(`finds out of ${RESTORED_MOVES_COMPARED_MAX} moves whether they are forced, and takes further ones for it`, async () => {
    const tree = fixture.objects.tree({});
    const old = id(0);
    const refs = Array.from({ length: RESTORED_MOVES_COMPARED_MAX + 1 }, (_, index) => `refs/heads/b${index}`);
    const fresh = refs.map((_, index) => fixture.objects.commit({ tree, seconds: 100 + index, parents: [old] }));
    await fixture.push(repository, Object.fromEntries(refs.map((ref, index) => [ref, fresh[index] ?? null])));
    const at = fixture.clock.now();
    fixture.clock.advance(1);
    await fixture.push(repository, Object.fromEntries(refs.map((ref) => [ref, old])));
    const { updates } = (await restore({ at, dry_run: true })).json();
    const forward = rows(updates).filter(([, , , kind]) => kind === 'fast-forward');
    assert.deepEqual([updates.length, forward.length], [refs.length, RESTORED_MOVES_COMPARED_MAX]);
  });
});
