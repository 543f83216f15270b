/** The policy that notifies webhooks of pushes: which webhooks, of what, once, and in which order. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { RETENTION_MS_MIN } from '../../../../apps/server/settings.ts';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { DEFAULT_PLANS, type Plans } from '../../../../core/account/plans.ts';
import { categoryOf, LOG_START, type RecordedEvent, streamName } from '../../../../core/kernel/envelope.ts';
import {
  type AccountId,
  type EventId,
  type ObjectId,
  uuid,
  type WebhookId,
  ZERO_OBJECT_ID,
} from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import {
  BUCKET_BACKGROUND_REST_MS,
  PENDING_DELIVERY_KEPT_MS,
  WEBHOOK_PAYLOAD_COMMITS_MAX,
} from '../../../../core/kernel/limits.ts';
import { createRecentCounts } from '../../../../core/kernel/recent-counts.ts';
import type { WebhookEventKind } from '../../../../core/kernel/webhook-events.ts';
import { EventStoreError } from '../../../../core/ports/event-store.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import type { StoredRefUpdate } from '../../../../core/repository/events.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { withUpdatesInPlace } from '../../../../core/use-cases/pushing/restore-wide-updates.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { WEBHOOK_BUDGET_PAYLOAD_BYTES } from '../../../../core/use-cases/webhooks/delivery-budget.ts';
import {
  type FollowPushesContext,
  followPushes,
  TRIES_MAX,
} from '../../../../core/use-cases/webhooks/follow-pushes.ts';
import { WEBHOOK_ROOM_LOOK_FIRST_MS } from '../../../../core/use-cases/webhooks/limits.ts';
import { BUCKET_BACKGROUND_TRIES_MAX } from '../../../../core/use-cases/webhooks/push-context.ts';
import { changeWebhook, createWebhook, deleteWebhook } from '../../../../core/use-cases/webhooks/webhooks.ts';
import { WEBHOOK_PUSH_REFS_MAX } from '../../../../core/webhook-delivery/notifications.ts';
import { accepted, newAccount, newRepository } from '../../../support/accounts.ts';
import { createMemoryDeliveries } from '../../../support/memory/deliveries.ts';
import { createMemoryDeliveryStore, createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryNotifiedPushes } from '../../../support/memory/notified-pushes.ts';
import { createMemoryObjects } from '../../../support/memory/object-database.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { createMemoryWaitingPushes } from '../../../support/memory/webhook-budgets.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { newBucket, newRepositoryIn } from '../../../support/stored-buckets.ts';
import { eventually } from '../../../support/test-timers.ts';
import { settle, watchLog } from '../../../support/watched-log.ts';

function eventIdIn({ event_id: id }: JsonObject): EventId {
  assert.ok(typeof id === 'string');
  return uuid<EventId>(id);
}

function plansWith(deliveries_per_hour: number | null): Plans {
  const plan = { ...DEFAULT_PLANS.FREE, deliveries_per_hour };
  return { FREE: plan, PRO: plan, PLATFORM: plan };
}

async function following() {
  const log = watchLog();
  const node = await startNode(log);
  const objects = createMemoryObjects();
  const faults: unknown[] = [];
  const complete = (event: RecordedEvent) => withUpdatesInPlace(node, event);
  const outgoing = { check: async () => null, send: () => Promise.reject(new Error('Nothing is sent here')) };
  const notified = createMemoryNotifiedPushes();
  const context: FollowPushesContext = {
    ...{ ...node, objects: objects.database, webUrl: 'https://git.example', complete, retentionMs: 86_400_000 },
    deliveries: createMemoryDeliveryStore(),
    pushes: createMemoryWaitingPushes(),
    due: createMemoryDeliveries(log),
    pendingBounds: { pendingMax: 1_000_000, resumed: 1_000_000 },
    marks: createMemoryPolicyMarks(),
    notified,
    past: createPastEntities({
      ...{ events: log, entities: node.entities, complete, snapshots: createMemorySnapshots() },
      onFault: () => undefined,
    }),
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    inTime: (work) => Promise.race([work, new Promise<null>((resolve) => setImmediate(() => resolve(null)))]),
    bucketFailures: createRecentCounts({
      ...{ spanMs: BUCKET_BACKGROUND_REST_MS, keysMax: 10 },
      monotonicMs: () => node.clock.monotonicMs(),
    }),
    onFault: (cause) => faults.push(cause),
  };
  const tree = objects.tree({});
  let seconds = 0;
  const commit = (...parents: ObjectId[]): ObjectId => {
    seconds += 1;
    return objects.commit({ tree, parents, seconds });
  };

  async function push({ id, accountId }: FoundRepository, changes: Readonly<Record<string, ObjectId | null>>) {
    const entity = await node.entities.reload(repositories, id);
    assert.ok(entity.state.status === 'open');
    const before = new Map([...entity.state.refs.entries()].map(([name, ref]) => [String(name), ref.id]));
    const updates = Object.entries(changes).map(
      ([ref, after]): StoredRefUpdate => ({
        ...{ ref, before: before.get(ref) ?? ZERO_OBJECT_ID, after: after ?? ZERO_OBJECT_ID, peeled: null },
        type: after === null ? null : 'commit',
        kind: after === null ? 'delete' : before.has(ref) ? 'force-push' : 'create',
      }),
    );
    const data = { push_id: node.ids.next(), updates, parts: null, layer: null, push_options: [], refused: 0 };
    const event = { ...CAUSE, id: node.ids.next<EventId>(), type: 'RefsUpdated', version: 1, accountId };
    const result = await log.append({
      stream: streamName('repository', id),
      expected: entity.revision,
      events: [{ ...event, isRecord: true, occurredAt: node.clock.now(), data: { ...data, received_bytes: 0 } }],
    });
    assert.equal(result.outcome, 'appended');
  }

  const requested = async () => {
    const all = await log.readAll(LOG_START, 1_000_000);
    return all.filter(
      ({ stream, type }) => categoryOf(stream) === 'webhookDelivery' && type === 'WebhookDeliveryRequested',
    );
  };
  /** Returns the type and the ref of each payload, in the order of the log. */
  const payloads = async (): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const { data } of await requested()) {
      const id = eventIdIn(data);
      const body = (await context.deliveries.payloads([id])).get(id) ?? '{}';
      const { type, ref } = JSON.parse(body) as { readonly type: string; readonly ref: string };
      found.push(`${type} ${ref}`);
    }
    return found;
  };
  /** Follows the log until `count` deliveries were requested and the mark is at the last relevant event. */
  const follow = async (count: number, as = context): Promise<void> => {
    const ending = new AbortController();
    const done = followPushes(as, ending.signal);
    const all = await log.readAll(LOG_START, 1_000_000);
    const last = all.findLast(({ stream }) => ['account', 'repository'].includes(categoryOf(stream)));
    await eventually(async () => {
      const mark = await context.marks.read('webhook-notifications');
      return (await requested()).length >= count && mark !== null && mark.position === last?.position;
    });
    ending.abort();
    await done;
  };
  const webhook = async (
    account: AccountId,
    events: readonly WebhookEventKind[] = ['push', 'create', 'delete'],
    selection = ALL_REPOSITORIES,
  ) => {
    const wanted = { url: 'https://receiver.example/', events, active: true };
    const origin = { account, cause: CAUSE, selection };
    return accepted(await createWebhook({ ...node, outgoing }, origin, wanted, newWebhookSecret())).webhook.id;
  };
  return {
    ...{ log, node, context, notified, objects, faults, outgoing, commit, push, requested, payloads, follow, webhook },
  };
}

describe('Webhooks are notified of a push', () => {
  test('and it is known of each account how far, while the push of another one goes on', async () => {
    const on = await following();
    const [ada, bob] = [await newAccount(on.node, 'ada'), await newAccount(on.node, 'bob')];
    const [slow, quick] = [await newRepository(on.node, ada, 'slow'), await newRepository(on.node, bob, 'quick')];
    for (const account of [ada, bob]) await on.webhook(account);
    await on.push(slow, { 'refs/heads/main': on.commit() });
    const first = await on.log.head();
    await on.push(quick, { 'refs/heads/main': on.commit() });
    const second = await on.log.head();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const objects: FollowPushesContext['objects'] = {
      open: async (opened) => {
        if (opened.repository === slow.id) await held;
        return on.context.objects.open(opened);
      },
    };
    const ending = new AbortController();
    const done = followPushes({ ...on.context, objects }, ending.signal);
    await eventually(async () => ((await on.notified.reachedFor(bob)) ?? LOG_START) >= second);
    assert.equal(await on.notified.reachedFor(ada), first - 1n);
    const mark = await on.context.marks.read('webhook-notifications');
    assert.ok(mark === null || mark.position < first, 'a restart would begin before the slow one');
    release();
    await eventually(async () => ((await on.notified.reachedFor(ada)) ?? LOG_START) >= second);
    ending.abort();
    await done;
  });

  test('as they were when it was made, whatever changed since', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    const origin = { account: ada, cause: CAUSE, selection: ALL_REPOSITORIES };
    const context = { ...on.node, outgoing: on.outgoing };
    const main = (tip: ObjectId) => on.push(engine, { 'refs/heads/main': tip });
    const first = on.commit();
    await main(first);
    const hook: WebhookId = await on.webhook(ada);
    const idle = await on.webhook(ada);
    accepted(await changeWebhook(context, origin, idle, { active: false }, 'unused'));
    const second = on.commit(first);
    await main(second);
    accepted(await changeWebhook(context, origin, hook, { events: ['delete'] }, 'unused'));
    await main(on.commit(second));
    accepted(await deleteWebhook(context, origin, hook));
    await on.follow(1);
    assert.deepEqual(await on.payloads(), ['push refs/heads/main']);
    const [delivery] = await on.requested();
    assert.equal(delivery?.data['webhook_id'], hook);
    const id = eventIdIn(delivery?.data ?? {});
    const payload = JSON.parse((await on.context.deliveries.payloads([id])).get(id) ?? '') as {
      readonly commits: readonly { readonly id: string }[];
    };
    assert.deepEqual(
      payload.commits.map((one) => one.id),
      [second],
    );
  });

  test('if they select its repository, and not of any other push', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    const secret = accepted(await newRepository(on.node, ada, 'secret'));
    const selected = { scope: 'SELECTED_REPO', repositoryIds: [engine.id] } as const;
    const narrow = await on.webhook(ada, ['push'], selected);
    const wide = await on.webhook(ada, ['push']);
    await on.push(secret, { 'refs/heads/main': on.commit() });
    await on.push(engine, { 'refs/heads/main': on.commit() });
    await on.follow(3);
    const notified = (await on.requested()).map(({ data }) => [data['webhook_id'], data['repository_id']]);
    assert.deepEqual(notified, [
      [wide, secret.id],
      [narrow, engine.id],
      [wide, engine.id],
    ]);
  });

  test('once, however often the log is followed from its start, and with the stored bytes', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada);
    await on.push(engine, {
      'refs/heads/main': on.commit(),
      'refs/heads/next': on.commit(),
      'refs/notes/x': on.commit(),
    });
    await on.push(engine, { 'refs/heads/next': null });
    await on.follow(5);
    const notified = await on.payloads();
    assert.deepEqual(notified, [
      ...['create refs/heads/main', 'push refs/heads/main', 'create refs/heads/next', 'push refs/heads/next'],
      'delete refs/heads/next',
    ]);
    const before = await on.log.head();
    const mark = await on.context.marks.read('webhook-notifications');
    assert.ok(mark !== null);
    // With the mark of another log, the whole log is followed again.
    const record = { ...mark.record, eventId: on.node.ids.next<EventId>() };
    await on.context.marks.save('webhook-notifications', { ...mark, record });
    await on.follow(5);
    assert.equal(await on.log.head(), before);
  });

  test("from the log's end on while nobody has a webhook, and from its start on if somebody has one", async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    const delivered: string[] = [];
    on.log.on.deliver = (events) => {
      for (const { type, stream } of events) if (categoryOf(stream) === 'repository') delivered.push(type);
    };
    const idle = async (): Promise<void> => {
      const ending = new AbortController();
      const done = followPushes(on.context, ending.signal);
      await settle();
      ending.abort();
      await done;
    };
    await on.push(engine, { 'refs/heads/before': on.commit() });
    await settle();
    delivered.length = 0;
    await idle();
    assert.deepEqual(delivered, [], 'nothing is read');
    assert.equal(await on.context.marks.read('webhook-notifications'), null);
    await on.webhook(ada, ['push']);
    await on.push(engine, { 'refs/heads/after': on.commit() });
    // The state after a crash before any mark was saved.
    await on.follow(1);
    assert.deepEqual(await on.payloads(), ['push refs/heads/after']);
  });

  test('beyond the budget of the hour as one row for a push and webhook, which becomes deliveries when its hour comes', async () => {
    const on = await following();
    Object.assign(on.context, { plans: plansWith(4) });
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    const hooks = [await on.webhook(ada, ['push', 'create']), await on.webhook(ada, ['push', 'create'])];
    const tip = on.commit();
    // At 10:00 in the clock of this test: two refs with two events and two webhooks each, and one more.
    await on.push(engine, { 'refs/heads/a': tip, 'refs/heads/b': tip });
    await on.push(engine, { 'refs/heads/a': on.commit(tip) });
    await on.follow(4);
    const rows = async () => {
      const all = await Promise.all(hooks.map((hook) => on.context.waiting.newest(ada, hook, 10)));
      return all.map((found) =>
        found.map(({ passed, waiting, ahead, webhooks }) => [passed, waiting, ahead, webhooks]),
      );
    };
    const left = [
      [0, 1, 4, 2],
      [2, 2, 0, 2],
    ];
    assert.deepEqual(await rows(), [left, left]);
    const { pending, oldestAt } = await on.context.waiting.backlog();
    assert.deepEqual([pending, oldestAt], [6, on.node.clock.now()]);
    const events = (await on.requested()).map(({ data }) => eventIdIn(data));
    assert.equal((await on.context.deliveries.payloads(events)).size, 2, 'no payload is made for a row');
    // Following the log again changes nothing, and takes nothing of the budget.
    await on.context.marks.save('webhook-notifications', {
      ...((await on.context.marks.read('webhook-notifications')) ?? assert.fail()),
      position: LOG_START,
    });
    await on.follow(4);
    assert.deepEqual([(await on.requested()).length, await rows()], [4, [left, left]]);
    const HOUR_MS = 60 * 60_000;
    on.node.clock.advance(HOUR_MS);
    await on.follow(8);
    assert.deepEqual(await on.payloads(), [
      ...['create refs/heads/a', 'create refs/heads/a', 'push refs/heads/a', 'push refs/heads/a'],
      ...['create refs/heads/b', 'create refs/heads/b', 'push refs/heads/b', 'push refs/heads/b'],
    ]);
    assert.deepEqual(await rows(), [[[0, 1, 0, 2]], [[0, 1, 0, 2]]]);
    on.node.clock.advance(HOUR_MS);
    await on.follow(10);
    await eventually(async () => (await on.context.waiting.accounts()).length === 0);
    const ids = (await on.requested()).map(({ stream }) => stream);
    assert.equal(new Set(ids).size, 10);
    assert.ok((await on.requested()).every(({ data }) => data['not_before'] === null));
    await on.push(engine, { 'refs/heads/a': on.commit(tip) });
    await on.follow(12);
    assert.equal((await on.requested()).length, 12, 'nothing waits any more, so a push goes out immediately');
  });

  test('that an older version stored when some were made, but none of a webhook that is deleted by then', async () => {
    const on = await following();
    Object.assign(on.context, { plans: plansWith(2) });
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    const [kept, gone] = [await on.webhook(ada, ['push']), await on.webhook(ada, ['push'])];
    const tip = on.commit();
    await on.push(engine, { 'refs/heads/a': tip, 'refs/heads/b': tip, 'refs/heads/c': tip });
    const push = (await on.log.readAll(LOG_START, 1_000_000)).findLast(({ type }) => type === 'RefsUpdated');
    assert.ok(push !== undefined);
    const { id, stream, revision, position } = push;
    await on.context.pushes.put({ id, account: ada, stream, revision, position, refsDone: 1 });
    const origin = { account: ada, cause: CAUSE, selection: ALL_REPOSITORIES };
    accepted(await deleteWebhook(on.node, origin, gone));
    await on.follow(2);
    assert.deepEqual(await on.payloads(), ['push refs/heads/b', 'push refs/heads/c']);
    assert.ok((await on.requested()).every(({ data }) => data['webhook_id'] === kept));
    assert.deepEqual(await on.context.waiting.backlog(), { pending: 0, oldestAt: null });
  });

  test('fewer of them in an hour where their payloads are long, since these are stored for the retention', async () => {
    // The attack: pushes of 20 KB that force a thousand refs between long histories, with 128 MiB of payloads each.
    const on = await following();
    Object.assign(on.context, { plans: plansWith(4) });
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    const message = `Long\n\n${'x'.repeat(2 * WEBHOOK_BUDGET_PAYLOAD_BYTES)}`;
    const long = on.objects.commit({ tree: on.objects.tree({}), seconds: 1, message });
    await on.push(engine, { 'refs/heads/long': long });
    await on.push(engine, { 'refs/heads/short': on.commit() });
    await on.push(engine, { 'refs/heads/last': on.commit() });
    // The long one counts three times, the short one once.
    await on.follow(2);
    assert.deepEqual(await on.payloads(), ['push refs/heads/long', 'push refs/heads/short']);
    assert.equal((await on.context.waiting.backlog()).pending, 1);
  });

  test('later, when the account has room for more deliveries, in order, also after a restart; others in between', async () => {
    const on = await following();
    Object.assign(on.context, {
      ...{ plans: plansWith(null), pendingBounds: { pendingMax: 5, resumed: 2 } },
      pause: async (ms: number) => {
        await new Promise((resolve) => setImmediate(resolve));
        // Time passes only for the looks at accounts without room.
        if (ms >= WEBHOOK_ROOM_LOOK_FIRST_MS) on.node.clock.advance(ms);
      },
    });
    const [ada, bob] = [await newAccount(on.node, 'ada'), await newAccount(on.node, 'bob')];
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    const other = accepted(await newRepository(on.node, bob, 'other'));
    for (const account of [ada, ada, bob]) await on.webhook(account, ['create']);
    const tip = on.commit();
    const refs = (...names: readonly string[]) =>
      Object.fromEntries(names.map((name): [string, ObjectId] => [`refs/heads/${name}`, tip]));
    await on.push(engine, refs('a', 'b', 'c', 'd'));
    await on.push(engine, refs('e'));
    await on.push(other, refs('x'));
    const refsOfAda = async () =>
      (await on.payloads()).filter((text) => !text.endsWith('/x')).map((text) => text.at(-1));
    const ended = new Set<string>();
    /** Ends deliveries of ada, the oldest first. */
    const end = async (count: number): Promise<void> => {
      const all = (await on.requested()).filter(({ accountId, stream }) => accountId === ada && !ended.has(stream));
      for (const { stream } of all.slice(0, count)) {
        ended.add(stream);
        const event = { ...CAUSE, id: on.node.ids.next<EventId>(), type: 'WebhookDeliveryFailed', version: 1 };
        const failed = {
          ...event,
          accountId: ada,
          isRecord: false,
          occurredAt: on.node.clock.now(),
          data: { series: 1 },
        };
        assert.equal((await on.log.append({ stream, expected: 0, events: [failed] })).outcome, 'appended');
      }
    };
    // The fifth delivery would be one of the two of a ref: its push waits, and the mark passes it all the same.
    await on.follow(5);
    assert.deepEqual(await refsOfAda(), ['a', 'a', 'b', 'b']);
    assert.ok((await on.payloads()).includes('create refs/heads/x'), "somebody else's went on");
    assert.deepEqual(
      (await on.context.waiting.earliest(ada)).map(({ passed, waiting }) => [passed, waiting]),
      [
        [4, 2],
        [4, 2],
      ],
    );
    assert.deepEqual((await on.context.waiting.backlog()).pending, 6);
    await end(1);
    await on.follow(5);
    assert.equal((await on.requested()).length, 5, 'three are more than those with which it goes on');
    await end(1);
    await on.follow(7);
    assert.deepEqual((await refsOfAda()).slice(4), ['c', 'c'], 'four are pending, and two more are too many');
    await end(4);
    await on.follow(11);
    assert.deepEqual((await refsOfAda()).slice(6), ['d', 'd', 'e', 'e']);
    await end(4);
    await on.push(engine, refs('f'));
    await on.follow(13);
    assert.deepEqual((await refsOfAda()).slice(10), ['f', 'f']);
    assert.deepEqual(await on.context.waiting.accounts(), []);
  });

  test('of at most a thousand refs, each with its own commits only', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['create']);
    const tip = on.commit();
    const names = Array.from({ length: WEBHOOK_PUSH_REFS_MAX + 1 }, (_, at) => `refs/tags/${at}`);
    await on.push(engine, Object.fromEntries(names.map((name) => [name, tip])));
    await on.follow(WEBHOOK_PUSH_REFS_MAX);
    assert.deepEqual(
      await on.payloads(),
      names.slice(0, WEBHOOK_PUSH_REFS_MAX).map((name) => `create ${name}`),
    );
    assert.equal(on.objects.openReaders(), 0);
  });

  test('whose commits are too large to hold, with the newest of each ref, which are read once for all', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    let read = 0;
    const open: FollowPushesContext['objects']['open'] = async (committed) => {
      const reader = await on.objects.database.open(committed);
      const commits: typeof reader.commits = (ids) => {
        read += ids.length;
        return reader.commits(ids);
      };
      return { ...reader, commits };
    };
    Object.assign(on.context, { objects: { open } });
    const message = 'long '.repeat(20_000);
    const tree = on.objects.tree({});
    const chain: ObjectId[] = [];
    for (let seconds = 1; seconds <= 600; seconds += 1) {
      chain.push(on.objects.commit({ tree, parents: chain.slice(-1), message, seconds }));
    }
    const [before, tip] = chain.slice(-2);
    assert.ok(before !== undefined && tip !== undefined);
    await on.push(engine, { 'refs/heads/a': tip, 'refs/heads/b': before, 'refs/heads/c': tip });
    await on.follow(3);
    const ids = (await on.requested()).map(({ data }) => eventIdIn(data));
    const bodies = [...(await on.context.deliveries.payloads(ids)).values()];
    for (const [index, newest] of [tip, before, tip].entries()) {
      const { commits } = JSON.parse(bodies[index] ?? '') as { readonly commits: readonly { readonly id: ObjectId }[] };
      const end = chain.indexOf(newest) + 1;
      assert.deepEqual(
        commits.map(({ id }) => id),
        chain.slice(end - WEBHOOK_PAYLOAD_COMMITS_MAX, end),
      );
    }
    assert.ok(read < chain.length + WEBHOOK_PAYLOAD_COMMITS_MAX + 10, `${read} were read`);
    assert.equal(on.objects.openReaders(), 0);
  });

  test("while the deliveries of another account's wide push are being requested", async () => {
    const on = await following();
    const [ada, bob] = [await newAccount(on.node, 'ada'), await newAccount(on.node, 'bob')];
    const wide = accepted(await newRepository(on.node, ada, 'wide'));
    const small = accepted(await newRepository(on.node, bob, 'small'));
    await on.webhook(ada, ['create']);
    const hook = await on.webhook(bob, ['push']);
    const tip = on.commit();
    const names = Array.from({ length: 500 }, (_, at) => `refs/heads/${at}`);
    await on.push(wide, Object.fromEntries(names.map((name) => [name, tip])));
    await on.push(small, { 'refs/heads/main': tip });
    await on.follow(501);
    const place = (await on.requested()).findIndex(({ data }) => data['webhook_id'] === hook);
    assert.ok(place < 100, `it came after ${place} others`);
  });

  test('after an outage, and without commits if the objects stay unavailable', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    let outages = 20;
    on.log.on.append = ({ stream }) => {
      if (categoryOf(stream) !== 'webhookDelivery' || outages === 0) return;
      outages -= 1;
      throw new EventStoreError('log-unavailable', 'away');
    };
    await on.push(engine, { 'refs/heads/main': on.commit() });
    await on.follow(1);
    assert.equal(outages, 0);
    let openings = 0;
    const away = (): never => {
      openings += 1;
      throw new ObjectDatabaseError('layer-missing', 'gone');
    };
    const objects = on.context.objects;
    Object.assign(on.context, { objects: { open: away } });
    await on.push(engine, { 'refs/heads/next': on.commit() });
    await on.follow(2);
    Object.assign(on.context, { objects });
    assert.deepEqual(await on.payloads(), ['push refs/heads/main', 'push refs/heads/next']);
    assert.equal(openings, TRIES_MAX, 'from then on it is tried without them');
  });

  test('and the mark is saved even if saving fails for a while and no other push follows', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    await on.push(engine, { 'refs/heads/main': on.commit() });
    const last = (await on.log.readAll(LOG_START, 1_000_000)).at(-1);
    const { marks } = on.context;
    let failures = 3;
    const save: typeof marks.save = async (policy, mark) => {
      if (mark.position === last?.position && failures > 0) {
        failures -= 1;
        throw new Error('away');
      }
      await marks.save(policy, mark);
    };
    Object.assign(on.context, { marks: { ...marks, save } });
    await on.follow(1);
    assert.equal(failures, 0);
    assert.equal(on.faults.length, 3);
  });

  test('even if one of its objects is too large to be read', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    const open: FollowPushesContext['objects']['open'] = async (committed) => {
      const reader = await on.objects.database.open(committed);
      return { ...reader, commits: () => Promise.reject(new RangeError('Too large to be read whole')) };
    };
    Object.assign(on.context, { objects: { open } });
    const tip = on.commit();
    await on.push(engine, { 'refs/heads/main': tip });
    await on.follow(1);
    const [delivery] = await on.requested();
    const id = eventIdIn(delivery?.data ?? {});
    const payload = JSON.parse((await on.context.deliveries.payloads([id])).get(id) ?? '');
    assert.deepEqual([payload.after, payload.head_commit, payload.commits], [tip, { id: tip }, []]);
    assert.equal(on.objects.openReaders(), 0);
  });

  test('immediately, without its objects, if they exceed the limits of reading', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    let openings = 0;
    const open = (): never => {
      openings += 1;
      throw new ObjectDatabaseError('object-too-large', 'commit 00 has 2 bytes, at most 1 are allowed');
    };
    Object.assign(on.context, { objects: { open } });
    await on.push(engine, { 'refs/heads/main': on.commit() });
    await on.follow(1);
    assert.deepEqual(await on.payloads(), ['push refs/heads/main']);
    assert.equal(openings, 1);
  });

  test('without the objects of a bucket that never answers, for which nobody else waits', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = await newRepositoryIn(on.node, ada, await newBucket(on.node, ada, 'silent'), 'engine');
    const bob = await newAccount(on.node, 'bob');
    const plain = accepted(await newRepository(on.node, bob, 'plain'));
    for (const account of [ada, bob]) await on.webhook(account, ['push']);
    const { open } = on.context.objects;
    let openings = 0;
    const objects: typeof on.context.objects = {
      open: (committed) => {
        if (committed.repository !== engine.id) return open(committed);
        openings += 1;
        return new Promise(() => undefined);
      },
    };
    Object.assign(on.context, { objects });
    // More than there are turns.
    for (let number = 0; number < 5; number += 1) await on.push(engine, { [`refs/heads/b${number}`]: on.commit() });
    await on.push(plain, { 'refs/heads/main': on.commit() });
    await on.follow(6);
    assert.equal((await on.payloads()).length, 6);
    assert.equal(openings, BUCKET_BACKGROUND_TRIES_MAX);
    on.node.clock.advance(2 * BUCKET_BACKGROUND_REST_MS);
    await on.push(engine, { 'refs/heads/later': on.commit() });
    await on.follow(7);
    assert.equal(openings, 2 * BUCKET_BACKGROUND_TRIES_MAX, 'later it is tried again');
  });

  test('a day later as well, if nobody followed the log till then, however short the retention', async () => {
    const on = await following();
    const brief = { ...on.context, retentionMs: RETENTION_MS_MIN };
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    await on.push(engine, { 'refs/heads/old': on.commit() });
    on.node.clock.advance(1);
    await on.push(engine, { 'refs/heads/late': on.commit() });
    on.node.clock.advance(PENDING_DELIVERY_KEPT_MS);
    await on.follow(1, brief);
    assert.deepEqual(await on.payloads(), ['push refs/heads/late']);
  });

  test('unless it is older than retention; and the bodies of an erased account are removed', async () => {
    const on = await following();
    const ada = await newAccount(on.node, 'ada');
    const engine = accepted(await newRepository(on.node, ada, 'engine'));
    await on.webhook(ada, ['push']);
    await on.push(engine, { 'refs/heads/old': on.commit() });
    on.node.clock.advance(2 * 86_400_000);
    await on.push(engine, { 'refs/heads/new': on.commit() });
    await on.follow(1);
    assert.deepEqual(await on.payloads(), ['push refs/heads/new']);
    await eraseAccount(on.node, CAUSE, ada);
    await on.follow(1);
    assert.deepEqual(await on.payloads(), ['undefined undefined']);
  });
});
