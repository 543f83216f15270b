/** The bodies that receivers get, byte for byte, and the events and ids that they are made of. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import type { CommitRow } from '../../../core/git/commit-row.ts';
import { REF_COMPONENT_BYTES_MAX } from '../../../core/git/ref-name.ts';
import { type EventId, objectId, timestamp, uuid, type WebhookId, ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import {
  REF_NAME_BYTES_MAX,
  WEBHOOK_PAYLOAD_BYTES_MAX,
  WEBHOOK_PAYLOAD_COMMITS_MAX,
} from '../../../core/kernel/limits.ts';
import type { StoredRefUpdate } from '../../../core/repository/events.ts';
import { WEBHOOK_PUSH_PAYLOADS_BYTES_MAX } from '../../../core/use-cases/webhooks/notify-webhooks.ts';
import {
  deliveryIdOf,
  eventIdOf,
  eventsOfUpdate,
  WEBHOOK_PUSH_REFS_MAX,
} from '../../../core/webhook-delivery/notifications.ts';
import {
  type PayloadOwner,
  type PayloadRepository,
  pingPayload,
  type RefEvent,
  refEventPayload,
  TEXT_LENGTH_MIN,
} from '../../../core/webhook-delivery/payload.ts';
import {
  payloadCommit,
  payloadTag,
  WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX,
  WEBHOOK_PAYLOAD_NAME_LENGTH_MAX,
  WEBHOOK_PAYLOAD_PARENTS_MAX,
} from '../../../core/webhook-delivery/payload-texts.ts';

const id = (n: number) => objectId(n.toString(16).padStart(40, '0'));
const person = (name: string) => ({ name, email: `${name}@example.org` });

function commit(n: number): CommitRow {
  const author = person('ada');
  const parents = n === 1 ? [] : [id(n - 1)];
  const times = { authoredAt: 1_700_000_000, committedAt: 1_700_000_000 + n };
  return { id: id(n), message: `Commit ${n}\n\n“quoted” 😀`, author, committer: person('bob'), ...times, parents };
}

const owner: PayloadOwner = { id: uuid('0190f3e2-7c1a-7b4e-9a35-000000000100'), username: 'ada' };
const repository: PayloadRepository = {
  id: uuid('0190f3e2-7c1a-7b4e-9a35-000000000200'),
  name: 'Engine',
  defaultBranch: 'main',
  owner,
  webUrl: 'https://git.example.org',
};
const eventId: EventId = uuid('6d1c1f3e-4c5b-5d0e-9a35-2b8f5f0f7a12');

function update(more: Partial<StoredRefUpdate>): StoredRefUpdate {
  const move = { ref: 'refs/heads/feature/x', before: id(1), after: id(3), kind: 'fast-forward' } as const;
  return { ...move, type: 'commit', peeled: null, ...more };
}

function payload(more: Partial<RefEvent>): { readonly [name: string]: unknown } {
  const facts: RefEvent = {
    eventId,
    kind: 'push',
    update: update({}),
    newCommits: [commit(3), commit(2)],
    headCommit: id(3),
    annotation: null,
    repository,
    ...more,
  };
  const text = refEventPayload(facts, WEBHOOK_PAYLOAD_BYTES_MAX);
  assert.equal(
    refEventPayload(structuredClone(facts), WEBHOOK_PAYLOAD_BYTES_MAX),
    text,
    'the same facts, the same bytes',
  );
  return JSON.parse(text);
}

const REPOSITORY = {
  id: repository.id,
  name: 'Engine',
  full_name: 'ada/Engine',
  default_branch: 'main',
  html_url: 'https://git.example.org/ada/Engine',
  clone_url: 'https://git.example.org/r/ada/Engine.git',
  owner: { id: owner.id, username: 'ada' },
};

describe("A push's payload", () => {
  test('has exactly these bytes', () => {
    const facts: RefEvent = {
      eventId,
      kind: 'push',
      update: update({ before: ZERO_OBJECT_ID, after: id(1), kind: 'create' }),
      newCommits: [commit(1)],
      headCommit: id(1),
      annotation: null,
      repository,
    };
    const text = refEventPayload(facts, WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.equal(
      text,
      `{"id":"${eventId}","type":"push","ref":"refs/heads/feature/x","ref_name":"feature/x","ref_type":"branch",` +
        `"before":"${'0'.repeat(40)}","after":"${id(1)}","created":true,"deleted":false,"commits":[{"id":"${id(1)}",` +
        `"message":"Commit 1\\n\\n“quoted” 😀","timestamp":"2023-11-14T22:13:21.000Z",` +
        `"url":"https://git.example.org/ada/Engine/commit/${id(1)}","author":{"name":"ada","email":"ada@example.org"},` +
        `"committer":{"name":"bob","email":"bob@example.org"},"parents":[]}],"head_commit":{"id":"${id(1)}"},"tag":null,` +
        `"repository":${JSON.stringify(REPOSITORY)}}`,
    );
  });

  test('lists new commits oldest first, and only the newest of very many', () => {
    const listed = (count: number): unknown[] => {
      const newCommits = Array.from({ length: count }, (_, n) => commit(count - n));
      const { commits } = payload({ newCommits });
      return (commits as { readonly id: string }[]).map((one) => one.id);
    };
    assert.deepEqual(listed(3), [id(1), id(2), id(3)]);
    assert.deepEqual(
      listed(WEBHOOK_PAYLOAD_COMMITS_MAX),
      Array.from({ length: WEBHOOK_PAYLOAD_COMMITS_MAX }, (_, n) => id(n + 1)),
    );
    const over = listed(WEBHOOK_PAYLOAD_COMMITS_MAX + 1);
    assert.deepEqual([over.length, over[0]], [WEBHOOK_PAYLOAD_COMMITS_MAX, id(2)]);
  });

  test('states whether the ref was created, moved or forced', () => {
    assert.deepEqual([payload({})['created'], payload({})['deleted']], [false, false]);
    const forced = payload({ update: update({ kind: 'force-push' }), newCommits: [] });
    assert.deepEqual([forced['created'], forced['commits'], forced['before']], [false, [], id(1)]);
  });

  test('holds the tag object of an annotated tag, its peeled commit and its message', () => {
    const tagged = update({
      ref: 'refs/tags/v1',
      before: ZERO_OBJECT_ID,
      after: id(9),
      type: 'tag',
      peeled: id(3),
      kind: 'create',
    });
    const annotation = { message: 'One\n', tagger: person('eve') };
    const body = payload({ update: tagged, annotation, newCommits: [] });
    assert.deepEqual(
      [body['ref_name'], body['ref_type'], body['after'], body['head_commit']],
      ['v1', 'tag', id(9), { id: id(3) }],
    );
    const tag = { name: 'v1', target: id(3), annotated: true, message: 'One\n', tagger: person('eve') };
    assert.deepEqual(body['tag'], tag);
    const unsigned = payload({ update: tagged, annotation: { ...annotation, tagger: null } });
    assert.deepEqual(unsigned['tag'], { ...tag, tagger: null });
  });

  test('holds the target of a lightweight tag, whether or not it is a commit', () => {
    const light = update({ ref: 'refs/tags/v2', after: id(3), kind: 'force-push' });
    const tag = { name: 'v2', target: id(3), annotated: false, message: null, tagger: null };
    assert.deepEqual(payload({ update: light })['tag'], tag);
    const blob = payload({ update: { ...light, type: 'blob' }, headCommit: null, newCommits: [] });
    assert.deepEqual([blob['head_commit'], blob['tag']], [null, tag]);
  });

  test('formats the time of any commit', () => {
    for (const [committedAt, text] of [
      [0, '1970-01-01T00:00:00.000Z'],
      [-5, '1970-01-01T00:00:00.000Z'],
      [2 ** 31, '2038-01-19T03:14:08.000Z'],
      [253_402_300_799, '9999-12-31T23:59:59.000Z'],
      [2 ** 53 - 1, '9999-12-31T23:59:59.000Z'],
    ] as const) {
      const [listed] = payload({ newCommits: [{ ...commit(1), committedAt }] })['commits'] as [{ timestamp: string }];
      assert.equal(listed.timestamp, text);
    }
  });
});

describe('A payload of a hostile history', () => {
  /** The share of one payload in a push of the most refs that webhooks are notified of. */
  const SHARE_BYTES = Math.floor(WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / (2 * WEBHOOK_PUSH_REFS_MAX));
  const signature = (text: string) => ({ name: text, email: text, seconds: 1_700_000_000, offsetMinutes: 0 });
  /** Every text in it has the greatest length, in characters that take six bytes each in JSON. */
  const hostile = (n: number): CommitRow => {
    const text = '\u0001'.repeat(100_000);
    const parents = Array.from({ length: 1_000 }, (_, at) => id(at));
    return payloadCommit({
      id: id(n),
      tree: id(0),
      parents,
      author: signature(text),
      committer: signature(text),
      message: text,
    });
  };
  const HOSTILE = Array.from({ length: WEBHOOK_PAYLOAD_COMMITS_MAX }, (_, n) => hostile(1_000 - n));

  function made(more: Partial<RefEvent>, bytesMax: number) {
    const facts = { eventId, kind: 'push', update: update({}), newCommits: HOSTILE, headCommit: id(3) } as const;
    const text = refEventPayload({ ...facts, annotation: null, repository, ...more }, bytesMax);
    const body = JSON.parse(text) as {
      readonly commits: readonly {
        readonly id: string;
        readonly message: string;
        readonly author: { readonly name: string };
      }[];
      readonly tag: { readonly message: string } | null;
    };
    return { text, body, sizeBytes: Buffer.byteLength(text) };
  }

  test('holds commits, tags and people at bounded length', () => {
    const { message, author, committer, parents } = hostile(1);
    const lengths = [author.name, author.email, committer.name, committer.email].map((text) => text.length);
    assert.deepEqual(lengths, Array(4).fill(WEBHOOK_PAYLOAD_NAME_LENGTH_MAX));
    assert.deepEqual([message.length, message.at(-1)], [WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX, '…']);
    assert.equal(parents.length, WEBHOOK_PAYLOAD_PARENTS_MAX);
    const tag = payloadTag({ id: id(1), tagger: null, message: 'x'.repeat(WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX + 1) });
    assert.equal(tag.message.length, WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX);
    const whole = 'x'.repeat(WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX);
    const name = 'x'.repeat(WEBHOOK_PAYLOAD_NAME_LENGTH_MAX);
    const limit = payloadCommit({
      ...hostile(1),
      tree: id(0),
      author: signature(name),
      committer: signature(`${name}x`),
      message: whole,
    });
    assert.deepEqual([limit.message, limit.author.name], [whole, name]);
    assert.notEqual(limit.committer.name, name);
    const parentsOf = (count: number) => {
      const of = { ...hostile(1), tree: id(0), author: signature(''), committer: signature('') };
      return payloadCommit({ ...of, parents: Array.from({ length: count }, (_, at) => id(at)) }).parents.length;
    };
    const most = WEBHOOK_PAYLOAD_PARENTS_MAX;
    assert.deepEqual([parentsOf(most - 1), parentsOf(most), parentsOf(most + 1)], [most - 1, most, most]);
  });

  test('stays within its bound, lists all commits, and cuts their texts to one length', () => {
    const newCommits = HOSTILE.map((one) => ({ ...one, parents: one.parents.slice(0, 2) }));
    const { body, sizeBytes } = made({ newCommits }, WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.ok(sizeBytes <= WEBHOOK_PAYLOAD_BYTES_MAX, String(sizeBytes));
    assert.equal(body.commits.length, WEBHOOK_PAYLOAD_COMMITS_MAX);
    const [{ message, author }] = body.commits as [(typeof body.commits)[0]];
    assert.match(message, /^\u0001+…$/);
    assert.ok(message.length >= 64 && author.name.length === message.length, 'all texts have the same length');
  });

  test('is not cut while it fits, and is cut if it is one byte too long', () => {
    const facts = { newCommits: [commit(2), { ...commit(1), message: 'long '.repeat(10_000) }] };
    const { text, sizeBytes } = made(facts, WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.equal(made(facts, sizeBytes).text, text);
    const { body, ...cut } = made(facts, sizeBytes - 1);
    assert.ok(cut.sizeBytes < sizeBytes);
    assert.deepEqual(
      body.commits.map(({ message }) => message.length),
      [25_000, commit(2).message.length],
      'the short text is not cut',
    );
  });

  test('has as many bytes as the limit, and has a text cut with one more', () => {
    const textOf = (length: number) => 'x'.repeat(length);
    const listed = (length: number) => ({ newCommits: [{ ...commit(1), message: textOf(length) }] });
    const free = WEBHOOK_PAYLOAD_BYTES_MAX - made(listed(1), WEBHOOK_PAYLOAD_BYTES_MAX).sizeBytes;
    const whole = made(listed(1 + free), WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.equal(whole.sizeBytes, WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.equal(whole.body.commits[0]?.message, textOf(1 + free));
    const cut = made(listed(2 + free), WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.ok(cut.sizeBytes < WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.match(cut.body.commits[0]?.message ?? '', /^x+…$/);
  });

  test('has texts cut to the least length, and commits left out before any text is cut further', () => {
    const COUNT = 20;
    const cut = (length: number) => {
      const message = 'x'.repeat(length);
      const facts = { newCommits: Array.from({ length: COUNT }, (_, n) => ({ ...commit(n + 1), message })) };
      const { commits } = made(facts, made(facts, WEBHOOK_PAYLOAD_BYTES_MAX).sizeBytes - 1).body;
      return { count: commits.length, lengths: [...new Set(commits.map((one) => one.message.length))] };
    };
    // A cut halves the length that texts may have.
    assert.deepEqual(cut(2 * TEXT_LENGTH_MIN), { count: COUNT, lengths: [TEXT_LENGTH_MIN] });
    assert.deepEqual(cut(2 * TEXT_LENGTH_MIN - 1), { count: COUNT / 2, lengths: [TEXT_LENGTH_MIN] });
    assert.deepEqual(cut(TEXT_LENGTH_MIN), { count: COUNT / 2, lengths: [TEXT_LENGTH_MIN] });
  });

  test('leaves out its oldest commits if even short texts do not fit', () => {
    const { body, sizeBytes } = made({}, SHARE_BYTES);
    assert.ok(sizeBytes <= SHARE_BYTES, String(sizeBytes));
    assert.ok(body.commits.length > 0 && body.commits.length < WEBHOOK_PAYLOAD_COMMITS_MAX);
    assert.equal(body.commits.at(-1)?.id, id(1_000), 'the newest commit is listed');
  });

  test("fits with the longest names into the smallest share, including a tag's texts", () => {
    const component = '"'.repeat(REF_COMPONENT_BYTES_MAX);
    const name = Array(40)
      .fill(component)
      .join('/')
      .slice(0, REF_NAME_BYTES_MAX - 11);
    const annotation = payloadTag({
      id: id(1),
      tagger: signature('\u0001'.repeat(300)),
      message: '\u0001'.repeat(100_000),
    });
    const tagged = update({ ref: `refs/tags/${name}`, type: 'tag', peeled: id(3) });
    const facts = { update: tagged, annotation, repository: { ...repository, defaultBranch: name } };
    const { body, sizeBytes } = made(facts, SHARE_BYTES);
    assert.ok(sizeBytes <= SHARE_BYTES && body.tag?.message.endsWith('…'), String(sizeBytes));
    assert.ok(made(facts, 48 * 1024).sizeBytes <= 48 * 1024);
    assert.throws(() => made(facts, 1_000), RangeError);
  });
});

describe('Other payloads', () => {
  test('a creation has the same members as its push, under another event id', () => {
    const created = update({ before: ZERO_OBJECT_ID, kind: 'create' });
    const { type, ...rest } = payload({ kind: 'create', update: created });
    assert.equal(type, 'create');
    const { type: _, ...push } = payload({ kind: 'push', update: created });
    assert.deepEqual(rest, push);
  });

  test('a deletion names the old value, and lists no commits', () => {
    const gone = { after: ZERO_OBJECT_ID, type: null, kind: 'delete' } as const;
    const branch = payload({ kind: 'delete', update: update(gone), newCommits: [], headCommit: null });
    assert.deepEqual(
      [branch['deleted'], branch['before'], branch['after'], branch['commits'], branch['head_commit'], branch['tag']],
      [true, id(1), ZERO_OBJECT_ID, [], null, null],
    );
    assert.deepEqual(branch['repository'], REPOSITORY);
    const tag = payload({ kind: 'delete', update: update({ ...gone, ref: 'refs/tags/v1' }), headCommit: null });
    assert.deepEqual(tag['tag'], { name: 'v1', target: null, annotated: false, message: null, tagger: null });
  });

  test('a ping has exactly these bytes', () => {
    const webhook = {
      id: uuid<WebhookId>('0190f3e2-7c1a-7b4e-9a35-000000000400'),
      url: 'https://r.example/',
      active: false,
    } as const;
    const text = pingPayload({
      eventId,
      createdAt: timestamp('2026-11-21T10:00:00.000Z'),
      webhook: { ...webhook, events: ['push', 'delete'] },
      owner,
    });
    assert.equal(
      text,
      `{"id":"${eventId}","type":"ping","created_at":"2026-11-21T10:00:00.000Z","webhook":{"id":"${webhook.id}",` +
        `"url":"https://r.example/","events":["push","delete"],"active":false},"owner":{"id":"${owner.id}","username":"ada"}}`,
    );
  });

  test('a note has no payload', () => {
    assert.throws(() => payload({ update: update({ ref: 'refs/notes/commits' }) }), TypeError);
  });
});

describe('The events of a ref update', () => {
  test('are a creation and a push, a push, or a deletion, and only for branches and tags', () => {
    for (const ref of ['refs/heads/main', 'refs/tags/v1']) {
      assert.deepEqual(eventsOfUpdate({ ref, kind: 'create' }), ['create', 'push']);
      assert.deepEqual(eventsOfUpdate({ ref, kind: 'fast-forward' }), ['push']);
      assert.deepEqual(eventsOfUpdate({ ref, kind: 'force-push' }), ['push']);
      assert.deepEqual(eventsOfUpdate({ ref, kind: 'delete' }), ['delete']);
    }
    assert.deepEqual(eventsOfUpdate({ ref: 'refs/notes/commits', kind: 'create' }), []);
  });

  test('have ids, as their deliveries do, that are derived from their facts and never change', () => {
    const refsUpdated: EventId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000015');
    const webhook: WebhookId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000400');
    const another: WebhookId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000401');
    const push = eventIdOf(uuids, refsUpdated, 'push', 'refs/heads/main');
    assert.equal(push, '9dd6fc95-9fcd-579b-a1eb-8dac6e689772');
    assert.equal(deliveryIdOf(uuids, push, webhook, 'push'), '170413b6-99fc-5c02-b8c9-27d15f43509f');
    const all = [
      push,
      eventIdOf(uuids, refsUpdated, 'create', 'refs/heads/main'),
      eventIdOf(uuids, refsUpdated, 'push', 'refs/heads/other'),
      deliveryIdOf(uuids, push, webhook, 'push'),
      deliveryIdOf(uuids, push, webhook, 'ping'),
      deliveryIdOf(uuids, push, another, 'push'),
    ];
    assert.equal(new Set(all).size, all.length);
  });
});
