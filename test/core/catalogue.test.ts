/** The catalogue of events against the golden files: every stored version of an event can always be read. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'vitest';
import { accessTokens } from '../../core/access-token/evolve.ts';
import { accounts } from '../../core/account/evolve.ts';
import { EVENT_CATALOGUE } from '../../core/catalogue.ts';
import { emailClaims, usernameClaims } from '../../core/claim/evolve.ts';
import { deviceSessions } from '../../core/device-session/evolve.ts';
import { type Decider, type DomainEvent, downcast, oldestWritten, readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { canonicalJson, type JsonObject } from '../../core/kernel/json.ts';
import { checkAppend } from '../../core/ports/append-check.ts';
import { repositories } from '../../core/repository/evolve.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import { goldenEvents } from '../support/golden.ts';
import { eventsOfOlderVersion, whyNoOlderVersion } from '../support/older-version.ts';
import { skippedFor } from '../support/skipped.ts';

const golden = goldenEvents();
const FORMS = path.join(import.meta.dirname, '..', '..', 'docs/event-forms.md');

/**
 * Folds the golden events of each stream of the decider's category, in the order of their revisions, except those of
 * the types `without`. Returns one state for each stream.
 */
function folded<State, Event extends DomainEvent<string, JsonObject>>(
  decider: Decider<State, Event>,
  ...without: readonly Event['type'][]
): State[] {
  const streams = new Map<string, RecordedEvent[]>();
  for (const { category, event } of golden) {
    if (category === decider.category && !without.some((type) => type === event.type))
      streams.set(event.stream, [...(streams.get(event.stream) ?? []), event]);
  }
  return [...streams.values()].map((events) =>
    events
      .sort((a, b) => a.revision - b.revision || a.version - b.version)
      .reduce(
        (state, event) => decider.evolve(state, readEvent(decider.kinds, event), event.occurredAt),
        decider.initial,
      ),
  );
}

describe('The catalogue of events', () => {
  test('has a golden file for every version of every type, and no golden file exists for anything else', () => {
    const expected = Object.entries(EVENT_CATALOGUE).flatMap(([category, kinds]) =>
      Object.entries(kinds).flatMap(([type, { version }]) =>
        Array.from({ length: version }, (_, n) => `${category}/${type}.v${n + 1}.json`),
      ),
    );
    assert.deepEqual(golden.map(({ file }) => file).sort(), expected.sort());
  });

  test('has an upcaster from every older version to the next', () => {
    for (const [category, kinds] of Object.entries(EVENT_CATALOGUE)) {
      for (const [type, { version, upcasters }] of Object.entries(kinds)) {
        assert.equal(upcasters.length, version - 1, `${category} ${type}`);
      }
    }
  });

  test('writes older versions in the form that they have always had', () => {
    for (const { category, event } of golden) {
      const kind = EVENT_CATALOGUE[category]?.[event.type];
      if (kind === undefined || event.version < oldestWritten(kind)) continue;
      const { version, data } = downcast(kind, readEvent(EVENT_CATALOGUE[category] ?? {}, event), event.version);
      assert.equal(version, event.version);
      assert.equal(canonicalJson(data), canonicalJson(event.data), `${category} ${event.type} ${version}`);
    }
  });

  // Otherwise a node of this version could write what one that runs beside it cannot read.
  test(
    'writes no event in a form that the oldest version beside it does not read',
    skippedFor(whyNoOlderVersion()),
    () => {
      const read = eventsOfOlderVersion();
      assert.ok(Object.keys(read).length > 70);
      const kinds = Object.values(EVENT_CATALOGUE).flatMap((ofCategory) => Object.entries(ofCategory));
      const unread = kinds.filter(([type, kind]) => oldestWritten(kind) > (read[type] ?? 0));
      assert.deepEqual(
        unread.map(([type]) => type),
        [],
      );
    },
  );

  test('is equal to docs/event-forms.md: each type of a stream, with its current version', () => {
    const documented: string[] = [];
    let categories: readonly string[] = [];
    for (const line of readFileSync(FORMS, 'utf8').split('\n')) {
      if (line.startsWith('## ')) categories = [...line.matchAll(/`([A-Za-z]+)-/g)].map(([, name = '']) => name);
      const [, type, version] = /^\| `(\w+)` +\| (\d+) /.exec(line) ?? [];
      if (type !== undefined) documented.push(...categories.map((category) => `${category} ${type} ${version}`));
    }
    const catalogued = Object.entries(EVENT_CATALOGUE).flatMap(([category, kinds]) =>
      Object.entries(kinds).map(([type, { version }]) => `${category} ${type} ${version}`),
    );
    assert.deepEqual(documented.sort(), catalogued.sort());
  });

  test('reads every golden event, each in a stream of its category and in a form that can be stored again', () => {
    for (const { file, category, event } of golden) {
      assert.equal(file, `${categoryOf(event.stream)}/${event.type}.v${event.version}.json`);
      const { type, data } = readEvent(EVENT_CATALOGUE[category] ?? {}, event);
      assert.equal(type, event.type);
      assert.equal(canonicalJson(data), canonicalJson(JSON.parse(canonicalJson(data)) as JsonObject));
      assert.ok(checkAppend({ stream: event.stream, expected: 'none', events: [event] }).sizeBytes > 0, file);
    }
  });

  test('makes every type a record event except sums of transfer, sign-ins, errors of buckets and deliveries', () => {
    const operational = Object.entries(EVENT_CATALOGUE).flatMap(([category, kinds]) =>
      Object.entries(kinds).flatMap(([type, { record }]) => (record ? [] : [`${category} ${type}`])),
    );
    const others = operational.filter((type) => !type.startsWith('webhookDelivery '));
    const signIns = ['SessionsRevoked', 'SignInFailed', 'SignedIn', 'SignedOut'].map((type) => `signIn ${type}`);
    const expected = ['bucketErrors BucketErrorRecorded', ...signIns, 'transfer TransferRecorded'];
    assert.deepEqual(others.sort(), expected);
    assert.equal(operational.length - others.length, Object.keys(EVENT_CATALOGUE['webhookDelivery'] ?? {}).length);
  });
});

describe('The golden events', () => {
  test('of name claims fold into free names', () => {
    assert.deepEqual(folded(usernameClaims), [{ status: 'free' }]);
    assert.deepEqual(folded(emailClaims), [{ status: 'free' }]);
  });

  test('of accounts fold into one erased and one abandoned account', () => {
    const statuses = folded(accounts).map((state) => state.status);
    assert.deepEqual(statuses.sort(), ['abandoned', 'erased']);
    const open = folded(accounts, 'AccountErased').find((state) => state.status === 'open');
    assert.ok(open?.status === 'open');
    assert.deepEqual(
      {
        ...open,
        repositories: open.repositories.size,
        repositoryNames: open.repositoryNames.size,
        formerNames: [...open.formerNames.keys()],
        webhooks: open.webhooks.size,
        mfaTokens: open.mfaTokens.size,
        storageBuckets: open.storageBuckets.size,
        trustRules: open.trustRules.size,
      },
      {
        status: 'open',
        username: 'ada',
        emailRef: '7'.repeat(64),
        passwordHashRef: 'b'.repeat(64),
        plan: 'PRO',
        createdAt: '2026-11-21T10:00:07.123Z',
        sessionsEnded: 2,
        formerEmail: { ref: 'e'.repeat(64), claim: '8'.repeat(64) },
        repositories: 1,
        repositoryNames: 1,
        formerNames: ['tools-again'],
        deletedFormerNames: [],
        webhooks: 0,
        mfaTokens: 0,
        storageBuckets: 0,
        defaultBucketId: null,
        trustRules: 0,
        mfaChanges: 4,
      },
    );
  });

  test('of a device login fold into each of its final states', () => {
    const whole = folded(deviceSessions, 'DeviceLoginDenied', 'DeviceLoginExpired');
    assert.deepEqual(
      whole.map((state) => (state.status === 'closed' ? state.after : state.status)),
      ['claimed', 'granted'],
    );
    const denied = folded(
      deviceSessions,
      ...(['DeviceLoginGranted', 'DeviceLoginClaimed', 'DeviceLoginExpired', 'DeviceLoginClosed'] as const),
    );
    assert.deepEqual(
      denied.map((state) => state.status === 'denied' && state.secretHash),
      ['a'.repeat(64), null],
    );
    const [expired] = folded(deviceSessions, 'DeviceLoginGranted', 'DeviceLoginClaimed', 'DeviceLoginDenied');
    assert.deepEqual(expired, { status: 'closed', after: 'expired', secretHash: 'a'.repeat(64), account: null });
  });

  test('of tokens fold into an exchanged and a revoked one', () => {
    assert.deepEqual(
      folded(accessTokens)
        .map((state) => state.status)
        .sort(),
      ['exchanged', 'revoked'],
    );
  });

  test('of a delivery fold into one that is made again in a later hour, and one whose claim has lapsed', () => {
    const [again] = folded(webhookDeliveries, 'WebhookDeliveryAttemptFellDue');
    assert.deepEqual(again?.status === 'pending' && [again.series, again.nextAttemptAt, again.next], [
      3,
      '2026-11-21T12:00:00.000Z',
      { status: 'waiting' },
    ]);
    const ends = ['WebhookDeliveryAttempted', 'WebhookDeliverySucceeded', 'WebhookDeliveryFailed'] as const;
    const [due] = folded(webhookDeliveries, ...ends, 'WebhookRedelivered');
    assert.deepEqual(due?.status === 'pending' && [due.attempts, due.next], [0, { status: 'due' }]);
  });

  test('of repositories fold into one that was compacted, closed and reopened, and one whose layers refs reached', () => {
    const [state, reached] = folded(repositories);
    assert.ok(state?.status === 'open' && reached?.status === 'open');
    assert.deepEqual([state.defaultBranch, state.shrinkEpoch, state.layersSizeBytes], ['trunk', 2, 31_000]);
    assert.deepEqual([reached.layersSizeBytes, reached.onceReached, state.onceReached], [1_000, true, false]);
    assert.deepEqual(
      folded(repositories, 'RepositoryReopened').map(({ status }) => status),
      ['closed', 'open'],
    );
  });
});
