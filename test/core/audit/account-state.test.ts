/** The state of an account, folded from the entries of its log. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { accessTokens } from '../../../core/access-token/evolve.ts';
import type { AccessToken } from '../../../core/access-token/state.ts';
import { accounts } from '../../../core/account/evolve.ts';
import type { Account } from '../../../core/account/state.ts';
import { subjectsOf } from '../../../core/audit/account-access.ts';
import {
  type AccountStateFold,
  foldEntry,
  isFolded,
  leaveOutManyRefs,
  newAccountFold,
  passEntry,
} from '../../../core/audit/account-fold.ts';
import { readAccountFold, writeAccountFold } from '../../../core/audit/account-fold-snapshot.ts';
import { accountStateText, madeAccount } from '../../../core/audit/account-state.ts';
import { entryOf } from '../../../core/audit/entry.ts';
import { replayExport } from '../../../core/audit/replay.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, LOG_START, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import { later, type RepositoryId, type Timestamp, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../../../core/kernel/json.ts';
import { ACCOUNT_FOLD_REFS_MAX } from '../../../core/kernel/limits.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import type { Repository } from '../../../core/repository/state.ts';
import { isEntryOf } from '../../../core/runtime/log-time.ts';
import { withUpdatesInPlace } from '../../../core/use-cases/pushing/restore-wide-updates.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { appendRandomAccount } from '../../support/random-account.ts';
import { Appender } from '../../support/read-models.ts';
import { branch, moved, oid } from '../../support/repository-history.ts';
import { createDice } from '../../support/seeded.ts';

/** The entries of a random account, as the log has them and with the updates of wide pushes in place. */
async function randomEntries(seed: number, steps: number) {
  const events = createMemoryEventStore();
  const append = new Appender(events);
  const account = await appendRandomAccount(append, createDice(seed), steps);
  const all = await events.readAll(LOG_START, 1_000_000);
  const entries = all.filter((event) => isEntryOf(account, event));
  const complete: RecordedEvent[] = [];
  for (const entry of entries) complete.push(await withUpdatesInPlace({ events, digest }, entry));
  return { account, entries, complete };
}

async function folded(entries: readonly RecordedEvent[], start = newAccountFold()): Promise<AccountStateFold> {
  for (const entry of entries) {
    if (isFolded(entry.stream)) await foldEntry(start, entry, nextTurn);
    else passEntry(start, entry);
  }
  return start;
}

const noRefs = async (): Promise<never> => {
  throw new Error('The fold left no refs out');
};

async function textOf(fold: AccountStateFold): Promise<string> {
  let text = '';
  for await (const piece of accountStateText(fold, { digest, nextTurn, refsOf: noRefs })) text += piece;
  return text;
}

/** What the deciders of the service make of the same entries, each stream by itself. */
function modelOf(entries: readonly RecordedEvent[]) {
  let account: Account = accounts.initial;
  let logTime: Timestamp | null = null;
  const byRepository = new Map<RepositoryId, Repository>();
  const tokens = new Map<string, AccessToken>();
  const pushes: { readonly at: Timestamp; readonly bytes: number }[] = [];
  const buckets = new Map<string, JsonValue>();
  const sums: JsonObject[] = [];
  for (const entry of entries) {
    const { occurredAt: at } = entry;
    const id = entityIdOf(entry.stream);
    logTime = later(at, logTime);
    if (entry.type === 'RepositoryCreated') {
      buckets.set(entry.data['repository_id'] as string, entry.data['storage_bucket_id'] ?? null);
    }
    if (entry.type === 'RefsUpdated') pushes.push({ at, bytes: Number(entry.data['received_bytes']) });
    if (entry.type === 'UsageRecorded') sums.push(...(entry.data['transfer'] as readonly JsonObject[]));
    const category = categoryOf(entry.stream);
    if (category === 'account') account = accounts.evolve(account, readEvent(accounts.kinds, entry), at);
    if (category === 'repository') {
      const before = byRepository.get(uuid(id)) ?? repositories.initial;
      byRepository.set(uuid(id), repositories.evolve(before, readEvent(repositories.kinds, entry), at));
    }
    if (category === 'accessToken') {
      const before = tokens.get(id) ?? accessTokens.initial;
      tokens.set(id, accessTokens.evolve(before, readEvent(accessTokens.kinds, entry), at));
    }
  }
  assert.ok(account.status === 'open' && logTime !== null);
  const month = logTime.slice(0, 7);
  const openOf = (id: RepositoryId) => {
    const state = byRepository.get(id) ?? repositories.initial;
    return state.status === 'open' ? state : null;
  };
  return {
    plan: account.plan,
    email: account.emailRef,
    repositories: [...account.repositories.entries()]
      .flatMap(([, { id, name, description, initialDefaultBranch }]) => {
        const state = openOf(id);
        if (state === null) return [];
        const refs = [...state.refs.entries()].map(([ref, { id: target, peeled }]) => [ref, target, peeled]);
        const default_branch = state.defaultBranch ?? initialDefaultBranch ?? 'master';
        return [
          {
            id,
            name,
            description,
            default_branch,
            size_bytes: state.layersSizeBytes,
            refs: refs.sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
          },
        ];
      })
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    tokens: [...tokens].flatMap(([id, token]) => (token.status === 'active' ? [`${id} ${token.name}`] : [])).sort(),
    webhooks: [...account.webhooks.values()].map(({ id, secretRef }) => `${id} ${secretRef}`).sort(),
    buckets: [...account.storageBuckets.values()].map(({ id, status }) => `${id} ${status}`).sort(),
    rules: [...account.trustRules.values()].map(({ id, name }) => `${id} ${name}`).sort(),
    mfa: [...account.mfaTokens.values()].map(({ id, status }) => `${id} ${status}`).sort(),
    usage: {
      repos: account.repositories.size,
      storage: [...byRepository]
        .filter(([id]) => buckets.get(id) === null)
        .reduce((sum, [, state]) => sum + (state.status === 'open' ? state : state.before).layersSizeBytes, 0),
      ingress:
        pushes.filter(({ at }) => at.startsWith(month)).reduce((sum, { bytes }) => sum + bytes, 0) +
        sums
          .filter(({ day }) => typeof day === 'string' && day.startsWith(month))
          .reduce((sum, { received_bytes }) => sum + Number(received_bytes), 0),
    },
  };
}

/** The same members of the text. */
function shown(text: string) {
  const state = JSON.parse(text);
  const texts = (list: readonly JsonObject[], ...members: readonly string[]) =>
    list.map((item) => members.map((member) => item[member] as string).join(' '));
  return {
    plan: state.account.plan,
    email: state.account.email_ref,
    repositories: state.repositories.map((one: JsonObject) => ({
      ...{ id: one['id'], name: one['name'], description: one['description'] },
      ...{ default_branch: one['default_branch'], size_bytes: one['size_bytes'] },
      refs: (one['refs'] as readonly JsonObject[]).map(({ name, target, peeled }) => [name, target, peeled]),
    })),
    tokens: texts(state.access_tokens, 'id', 'name'),
    webhooks: texts(state.webhooks, 'id', 'secret_ref'),
    buckets: texts(state.storage_buckets, 'id', 'status'),
    rules: texts(state.oidc_trust_rules, 'id', 'name'),
    mfa: texts(state.account.mfa_tokens, 'id', 'status'),
    usage: {
      repos: state.usage.repos.used,
      storage: state.usage.storage_bytes.used,
      ingress: state.usage.ingress_bytes.used,
    },
  };
}

describe('The state of an account', () => {
  test('is at any entry of a random history what the aggregates are there', async () => {
    for (const seed of [1, 2, 3]) {
      const { entries, complete } = await randomEntries(seed, 300);
      const fold = newAccountFold();
      for (const [index, entry] of complete.entries()) {
        await folded([entry], fold);
        if (index % 7 !== 0 && index !== complete.length - 1) continue;
        const text = await textOf(fold);
        assert.deepEqual(shown(text), modelOf(complete.slice(0, index + 1)), `seed ${seed}, entry ${index}`);
        assert.equal(JSON.parse(text).sequence, index + 1);
      }
      assert.ok(entries.length > 200);
    }
  });

  test('is canonical, and its digest is that of the text before it', async () => {
    const { complete } = await randomEntries(4, 200);
    const text = await textOf(await folded(complete));
    const { digest: sum, ...others } = JSON.parse(text);
    const canonical = canonicalJson(others);
    assert.equal(sum, digest.sha256(canonical));
    assert.equal(text, `${canonical.slice(0, -1)},"digest":"${sum}"}`);
  });

  test('replayed from the lines of an export has the same digest, at every log time', async () => {
    const { entries, complete } = await randomEntries(5, 200);
    const lines = entries.map((entry, sequence) => canonicalJson({ entry: entryOf(entry, sequence), leaf: '' }));
    let logTime: Timestamp | null = null;
    const times = entries.map(({ occurredAt }) => (logTime = later(occurredAt, logTime)));
    for (const at of times.filter((_, index) => index % 11 === 0)) {
      const size = times.filter((time) => time <= at).length;
      const replayed = await replayExport(lines, at, { digest, nextTurn });
      assert.equal(await textOf(replayed), await textOf(await folded(complete.slice(0, size))), at);
    }
    const whole = await replayExport([...lines, '{"checkpoint":"x"}'], null, { digest, nextTurn });
    assert.equal(await textOf(whole), await textOf(await folded(complete)));
    const guards = lines.map((line) => line.replace(/"leaf":/, '"guard":true,"leaf":'));
    const slice = [...lines.slice(0, 50), ...guards.slice(50), '{"checkpoint":"x"}'];
    const replayed = await replayExport(slice, null, { digest, nextTurn });
    assert.equal(
      await textOf(replayed),
      await textOf(await folded(complete.slice(0, 50))),
      'up to the guards behind it',
    );
    await assert.rejects(
      replayExport([...guards.slice(0, 1), ...lines.slice(1)], null, { digest, nextTurn }),
      /a guard/,
    );
  });

  // The attack: an account pushes as many refs as it may, over and over, and lets each push lose its race.
  test('is replayed without reading parts of pushes that lost their race, so that memory does not grow with them', async () => {
    const { entries } = await randomEntries(1, 200);
    const wide = entries.flatMap(({ type, data }) => {
      const { parts = null } = data;
      return type === 'RefsUpdated' && isJsonObject(parts) ? [parts['stream']] : [];
    });
    const isLost = ({ stream, type }: RecordedEvent) => type === 'RefUpdatesPart' && !wide.includes(stream);
    assert.ok(wide.length > 0 && entries.some(isLost), 'the history has both');
    const lines = (unread: boolean) =>
      entries.map((entry, sequence) => {
        const data = unread && isLost(entry) ? {} : entry.data;
        return canonicalJson({ entry: entryOf({ ...entry, data }, sequence), leaf: '' });
      });
    const whole = await replayExport(lines(false), null, { digest, nextTurn });
    assert.equal(await textOf(await replayExport(lines(true), null, { digest, nextTurn })), await textOf(whole));
  });

  test('of a stored export always is the stored one', async () => {
    const golden = (file: string) =>
      readFileSync(path.join(import.meta.dirname, '../../golden/account-state', file), 'utf8').trimEnd();
    const replayed = await replayExport(golden('history.ndjson').split('\n'), null, { digest, nextTurn });
    assert.equal(await textOf(replayed), golden('state.ndjson'));
  });

  test('folded on from a snapshot is the same, and what was read is written as the same snapshot', async () => {
    const { complete } = await randomEntries(6, 200);
    const whole = await textOf(await folded(complete));
    for (const cut of [10, 77, 150]) {
      const snapshot = writeAccountFold(await folded(complete.slice(0, cut)));
      assert.ok(snapshot !== null);
      const start = readAccountFold(JSON.parse(canonicalJson(snapshot)));
      assert.equal(canonicalJson(writeAccountFold(start)), canonicalJson(snapshot), `at ${cut}`);
      assert.equal(await textOf(await folded(complete.slice(cut), start)), whole, `from ${cut}`);
    }
  });

  test('says who could read each repository, by events that it holds, the same from a snapshot', async () => {
    const { complete } = await randomEntries(6, 200);
    // The account is open at both places, as the test above shows.
    const whole = await folded(complete.slice(0, 150));
    const snapshot = writeAccountFold(await folded(complete.slice(0, 77)));
    assert.ok(snapshot !== null);
    const again = await folded(complete.slice(77, 150), readAccountFold(JSON.parse(canonicalJson(snapshot))));
    const ids = new Set(complete.map(({ id }) => id));
    const at = timestamp('2026-11-21T00:00:00.000Z');
    let subjects = 0;
    for (const repository of whole.repositories.keys()) {
      const told = subjectsOf(whole, repository, at);
      assert.deepEqual(subjectsOf(again, repository, at), told);
      for (const { eventId } of told ?? []) assert.ok(ids.has(eventId));
      subjects += told?.length ?? 0;
    }
    assert.ok(subjects > 0);
  });

  test('does not exist before the account, and says of an erased one no more than its pseudonym', async () => {
    const { account, complete } = await randomEntries(7, 30);
    assert.equal(madeAccount(newAccountFold()), null);
    const erased = { ...(complete.at(-1) as RecordedEvent), stream: complete[0]?.stream as RecordedEvent['stream'] };
    const fold = await folded([...complete, { ...erased, type: 'AccountErased', version: 1, data: {} }]);
    const { account: shownAccount, webhooks, storage_buckets, oidc_trust_rules } = JSON.parse(await textOf(fold));
    const { id, username, status, plan, created_at, mfa_tokens } = shownAccount;
    assert.deepEqual([id, username, status, plan, created_at], [account, 'ada', 'erased', null, null]);
    assert.deepEqual([mfa_tokens, webhooks, storage_buckets, oidc_trust_rules], [[], [], [], []]);
  });

  test('keeps the refs of its repositories up to the limit, and of the others knows the revision', async () => {
    const events = createMemoryEventStore();
    const append = new Appender(events);
    const account = await append.account('ada');
    const [large, small] = [await append.repository(account, 'large'), await append.repository(account, 'small')];
    const create = (count: number, of: string) =>
      Array.from({ length: count }, (_, n) => moved(branch(`${of}-${n}`), null, oid('a1')));
    const many = create(ACCOUNT_FOLD_REFS_MAX - 1, 'x');
    for (let at = 0; at < many.length; at += 2_000) {
      await append.push(account, large, { updates: many.slice(at, at + 2_000) });
    }
    await append.push(account, small, { updates: create(1, 'y') });
    const fold = await folded(await events.readAll(LOG_START, 100));
    leaveOutManyRefs(fold);
    const kept = () => [large, small].map((id) => fold.repositories.get(id)?.refs?.size ?? null);
    assert.deepEqual(kept(), [ACCOUNT_FOLD_REFS_MAX - 1, 1], 'at the limit');
    const before = await events.readAll(LOG_START, 100);
    await append.push(account, small, { updates: create(1, 'z') });
    await folded(await events.readAll(before.at(-1)?.position ?? LOG_START, 100), fold);
    leaveOutManyRefs(fold);
    assert.deepEqual(kept(), [null, 2], 'one past it');
    const asked: unknown[] = [];
    const refsOf = async (id: RepositoryId, revision: number) => {
      asked.push([id, revision]);
      return [[branch('from-its-stream'), { target: oid('b2'), peeled: null }]] as const;
    };
    let text = '';
    for await (const piece of accountStateText(fold, { digest, nextTurn, refsOf })) text += piece;
    assert.deepEqual(asked, [[large, Math.ceil(many.length / 2_000) - 1]]);
    assert.ok(text.includes('refs/heads/from-its-stream'));
  });
});
