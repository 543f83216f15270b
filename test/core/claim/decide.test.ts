/** Decisions about claims of names: pending, taken over, held and released. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ClaimCommand } from '../../../core/claim/commands.ts';
import { decideClaim } from '../../../core/claim/decide.ts';
import type { ClaimEvent } from '../../../core/claim/events.ts';
import { emailClaims, usernameClaims } from '../../../core/claim/evolve.ts';
import { type AccountId, plusMs, type Timestamp, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { given } from '../../support/fold.ts';

const ada: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const bob: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
const eve: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000e');
const until = timestamp('2026-11-21T10:10:00.000Z');
const before = plusMs(until, -1);
const after = plusMs(until, 1);

const claimed = (account: AccountId): ClaimEvent => ({ type: 'Claimed', data: { account, until } });
const confirmed = (account: AccountId): ClaimEvent => ({ type: 'Confirmed', data: { account } });
const released = (account: AccountId): ClaimEvent => ({ type: 'Released', data: { account } });

function claim(account: AccountId, now: Timestamp, abandoned: AccountId | null = null): ClaimCommand {
  return { type: 'Claim', account, now, until: plusMs(now, 600_000), abandoned };
}

function history(...events: readonly ClaimEvent[]) {
  return (command: ClaimCommand) => {
    const decision = decideClaim(given(usernameClaims, ...events), command);
    return 'taken' in decision ? 'taken' : decision.events;
  };
}

describe('A name', () => {
  test('can be claimed for ten minutes while it is free', () => {
    assert.deepEqual(history()(claim(ada, before)), [
      { type: 'Claimed', data: { account: ada, until: plusMs(before, 600_000) } },
    ]);
  });

  test('cannot be claimed by another account while its claim is pending and has not lapsed, abandoned or not', () => {
    const decide = history(claimed(ada));
    for (const now of [before, until]) {
      assert.equal(decide(claim(bob, now)), 'taken');
      assert.equal(decide(claim(bob, now, ada)), 'taken');
    }
  });

  test('can be taken over after its claim has lapsed, but only from the account that was abandoned for it', () => {
    const decide = history(claimed(ada));
    assert.equal(decide(claim(bob, after)), 'taken');
    assert.equal(decide(claim(bob, after, eve)), 'taken');
    assert.deepEqual(decide(claim(bob, after, ada)), [
      { type: 'Claimed', data: { account: bob, until: plusMs(after, 600_000) } },
    ]);
  });

  test('can be claimed again by the account of its pending claim, which gets more time', () => {
    assert.notEqual(history(claimed(ada))(claim(ada, after)), 'taken');
  });

  test('is confirmed only by the account that claimed it, and only once', () => {
    assert.deepEqual(history(claimed(ada))({ type: 'Confirm', account: ada }), [confirmed(ada)]);
    assert.equal(history(claimed(ada))({ type: 'Confirm', account: bob }), 'taken');
    assert.equal(history()({ type: 'Confirm', account: ada }), 'taken');
    assert.deepEqual(history(claimed(ada), confirmed(ada))({ type: 'Confirm', account: ada }), []);
    assert.equal(history(claimed(ada), claimed(bob))({ type: 'Confirm', account: ada }), 'taken');
  });

  test('can never be claimed while it is held, after any time, abandoned or not, even by its own account', () => {
    const decide = history(claimed(ada), confirmed(ada));
    assert.equal(decide(claim(bob, after, ada)), 'taken');
    assert.equal(decide(claim(ada, after)), 'taken');
  });

  test('is released only by its own account, whether pending or held, and is free then', () => {
    for (const events of [[claimed(ada)], [claimed(ada), confirmed(ada)]]) {
      assert.deepEqual(history(...events)({ type: 'Release', account: bob }), []);
      assert.deepEqual(history(...events)({ type: 'Release', account: ada }), [released(ada)]);
      assert.notEqual(history(...events, released(ada))(claim(bob, before)), 'taken');
      assert.deepEqual(history(...events, released(ada))({ type: 'Release', account: ada }), []);
    }
  });

  test('has the same rules as an email address, on streams of its own category', () => {
    assert.deepEqual([usernameClaims.category, emailClaims.category], ['username', 'email']);
    assert.deepEqual(given(emailClaims, claimed(ada), confirmed(ada)), { status: 'held', account: ada });
  });
});
