/** Snapshots of every aggregate that has them: a state is unchanged after writing, storing as JSON and reading. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import type { Account } from '../../../core/account/state.ts';
import type { SnapshotCodec } from '../../../core/kernel/decider.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../../core/kernel/json.ts';
import { PersistentMap } from '../../../core/kernel/persistent-map.ts';
import { decideRefs } from '../../../core/repository/decide.ts';
import type { RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { refRuns } from '../../../core/repository/ref-runs.ts';
import type { Repository } from '../../../core/repository/state.ts';
import {
  emailChanged,
  mfaTokenId,
  passkeyActivated,
  passkeyBegun,
  totpActivated,
  totpBegun,
} from '../../support/account-history.ts';
import { given } from '../../support/fold.ts';
import { branch, layer, moved, oid, pushed, tag, wanted } from '../../support/repository-history.ts';

async function throughJson<State>(codec: SnapshotCodec<State> | null, state: State): Promise<State | null> {
  const written = codec?.write(state) ?? null;
  if (codec === null || written === null) return null;
  const read = codec.read(JSON.parse(canonicalJson(written)) as JsonObject);
  if (codec.parts === undefined) return read;
  const parts = Array.from(codec.parts.write(state), (part) => JSON.parse(canonicalJson(part)) as JsonValue);
  return codec.parts.read(read, parts);
}

/** Converts a state's maps and lists to a form that can be compared. */
function plain(value: unknown): unknown {
  if (value instanceof PersistentMap) {
    return { weight: value.weight, entries: new Map([...value.entries()].map(([key, item]) => [key, plain(item)])) };
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Symbol.iterator in value) return Array.from(value as Iterable<unknown>, plain);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

function repositoryId(n: number): string {
  return `0190f3e2-7c1a-7b4e-9a35-${String(n).padStart(12, '0')}`;
}

/** Accounts that created repositories, webhooks and MFA tokens, and changed and deleted some of them. */
const anyAccount = fc
  .array(
    fc.tuple(
      fc.constantFrom(
        ...([
          'create',
          'describe',
          'delete',
          'hook',
          'rotate',
          'silence',
          'password',
          'email',
          'enrol',
          'use',
        ] as const),
      ),
      fc.nat(9),
      fc.option(fc.string({ unit: 'grapheme' })),
    ),
  )
  .map((steps): Account => {
    const existing = new Set<number>();
    const hooks = new Set<number>();
    const enrolled = new Set<number>();
    const history: AccountEvent[] = [
      {
        type: 'AccountCreated',
        data: { username: 'ada', email_ref: 'e'.repeat(64), password_hash_ref: 'a'.repeat(64), plan: 'FREE' },
      },
    ];
    for (const [step, n, description] of steps) {
      const repository_id = repositoryId(n);
      if (step === 'create' && !existing.has(n)) {
        const data = { repository_id, name: `Repo${n}`, description, default_branch: n % 2 === 0 ? 'trunk' : null };
        history.push({
          type: 'RepositoryCreated',
          data: { ...data, storage_bucket_id: n % 3 === 0 ? repositoryId(99) : null },
        });
        existing.add(n);
      } else if (step === 'describe' && existing.has(n)) {
        history.push({ type: 'RepositoryDescribed', data: { repository_id, description } });
      } else if (step === 'delete' && existing.delete(n)) {
        history.push({ type: 'RepositoryDeleted', data: { repository_id, name: `Repo${n}` } });
      } else if (step === 'hook' && !hooks.has(n)) {
        const data = { webhook_id: repository_id, url_ref: '1'.repeat(64), secret_ref: '2'.repeat(64), active: true };
        const selected = n % 2 === 0;
        history.push({
          type: 'WebhookCreated',
          data: {
            ...data,
            events: ['push'],
            scope: selected ? 'SELECTED_REPO' : 'ALL_REPO',
            repository_ids: selected ? [repositoryId(n), repositoryId(98)] : [],
          },
        });
        hooks.add(n);
      } else if (step === 'rotate' && hooks.has(n)) {
        const previous_valid_until = '2026-11-22T10:00:00.000Z';
        const data = { webhook_id: repository_id, secret_ref: '3'.repeat(64), previous_valid_until };
        history.push({ type: 'WebhookSecretRotated', data });
      } else if (step === 'silence' && hooks.has(n)) {
        history.push({ type: 'WebhookDeactivated', data: { webhook_id: repository_id } });
      } else if (step === 'enrol' && !enrolled.has(n)) {
        history.push(n % 2 === 0 ? totpBegun(n) : passkeyBegun(n));
        if (n > 3) history.push(n % 2 === 0 ? totpActivated(n, 7) : passkeyActivated(n, 7));
        enrolled.add(n);
      } else if (step === 'use' && n > 3 && enrolled.has(n)) {
        const token_id = mfaTokenId(n);
        if (n % 2 === 0) history.push({ type: 'TotpCodeUsed', data: { token_id, step: 8 } });
        else if (description === null) history.push({ type: 'PasskeyUsed', data: { token_id, sign_count: 8 } });
        else
          history.push({ type: 'PasskeyCounterRegressed', data: { token_id, sign_count: 6, recorded_sign_count: 7 } });
      } else if (step === 'password') {
        history.push({ type: 'PasswordChanged', data: { password_hash_ref: String(n).repeat(64) } });
      } else if (step === 'email') {
        history.push(emailChanged(String(n), description));
      }
    }
    return given(accounts, ...history);
  });

/** Repositories after pushes that created, moved, forced and deleted branches and annotated tags. */
const anyRepository = fc
  .array(fc.tuple(fc.nat(5), fc.option(fc.nat(9)), fc.boolean(), fc.boolean()), { maxLength: 30 })
  .map((steps): Repository => {
    let state = repositories.initial;
    const history: RepositoryEvent[] = [];
    for (const [n, target, fastForward, withLayer] of steps) {
      assert.ok(state.status === 'open');
      const ref = n === 5 ? tag('v1') : branch(`b${n}`);
      const before = state.refs.get(ref)?.id ?? null;
      const after = target === null ? null : oid(`a${target}`);
      if (before === null && after === null) continue;
      const peeled = { id: oid('f'), type: 'commit' } as const;
      const tip = n === 5 && after !== null ? { tip: { id: after, type: 'tag', peeled } as const } : {};
      const update = wanted(ref, before, after, { fastForward, ...tip });
      const command = { updates: [update], atomic: false, initialDefaultBranch: null, commitSeconds: new Map() };
      const decision = decideRefs(state, command);
      if (decision.updates.length === 0) continue;
      history.push(pushed(decision.updates, { layer: withLayer ? layer(history.length) : null }));
      if (decision.defaultBranch !== null) {
        history.push({ type: 'DefaultBranchChanged', data: { default_branch: decision.defaultBranch } });
      }
      state = given(repositories, ...history);
    }
    return state;
  });

describe('A snapshot', () => {
  test('of an account gives the same account', async () => {
    await fc.assert(
      fc.asyncProperty(anyAccount, async (state) => {
        const read = await throughJson(accounts.snapshots, state);
        assert.deepEqual(plain(read), plain(state));
        assert.equal(read === null ? null : accounts.sizeBytes(read), accounts.sizeBytes(state));
      }),
    );
  });

  test('of a repository gives the same repository', async () => {
    await fc.assert(
      fc.asyncProperty(anyRepository, async (state) => {
        const read = await throughJson(repositories.snapshots, state);
        assert.deepEqual(plain(read), plain(state));
        assert.equal(read === null ? null : repositories.sizeBytes(read), repositories.sizeBytes(state));
      }),
    );
  });

  test('of many refs holds them in small parts, in their order, which need no sorting', async () => {
    const updates = Array.from({ length: 5_000 }, (_, n) =>
      moved(branch(`b${(n * 7_919) % 10_007}`), null, oid(`a${n % 10}`)),
    );
    const state = given(repositories, pushed(updates));
    assert.ok(state.status === 'open');
    const parts = [...(repositories.snapshots?.parts?.write(state) ?? [])];
    assert.ok(parts.length > 5);
    for (const part of parts) assert.ok(canonicalJson(part).length < 64 * 1024);
    assert.ok(canonicalJson(repositories.snapshots?.write(state) ?? null).length < 2_000);
    const read = await throughJson(repositories.snapshots, state);
    assert.ok(read?.status === 'open');
    assert.deepEqual(refRuns(read.refs), refRuns(state.refs));
    const again = [...(repositories.snapshots?.parts?.write(read) ?? [])];
    assert.equal(canonicalJson(again), canonicalJson(parts));
  });

  test('is not made of an absent or abandoned account, nor of a closed repository', async () => {
    assert.equal(await throughJson(accounts.snapshots, { status: 'absent' }), null);
    assert.equal(await throughJson(accounts.snapshots, { status: 'abandoned' }), null);
    assert.equal(
      await throughJson(repositories.snapshots, given(repositories, { type: 'RepositoryClosed', data: {} })),
      null,
    );
  });
});
