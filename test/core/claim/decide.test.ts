/** Claims of names: pending, taken over, held and released. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
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
  test('that is free is claimed for ten minutes', () => {
    assert.deepEqual(history()(claim(ada, before)), [
      { type: 'Claimed', data: { account: ada, until: plusMs(before, 600_000) } },
    ]);
  });

  test('that is pending is taken for everybody else up to its last millisecond, abandoned or not', () => {
    const decide = history(claimed(ada));
    for (const now of [before, until]) {
      assert.equal(decide(claim(bob, now)), 'taken');
      assert.equal(decide(claim(bob, now, ada)), 'taken');
    }
  });

  test('past its time is taken over only from the account that was abandoned for it', () => {
    const decide = history(claimed(ada));
    assert.equal(decide(claim(bob, after)), 'taken');
    assert.equal(decide(claim(bob, after, eve)), 'taken');
    assert.deepEqual(decide(claim(bob, after, ada)), [
      { type: 'Claimed', data: { account: bob, until: plusMs(after, 600_000) } },
    ]);
  });

  test('that is pending may be claimed anew by its own account, which gives it more time', () => {
    assert.notEqual(history(claimed(ada))(claim(ada, after)), 'taken');
  });

  test('is confirmed by its own account alone, once', () => {
    assert.deepEqual(history(claimed(ada))({ type: 'Confirm', account: ada }), [confirmed(ada)]);
    assert.equal(history(claimed(ada))({ type: 'Confirm', account: bob }), 'taken');
    assert.equal(history()({ type: 'Confirm', account: ada }), 'taken');
    assert.deepEqual(history(claimed(ada), confirmed(ada))({ type: 'Confirm', account: ada }), []);
    assert.equal(history(claimed(ada), claimed(bob))({ type: 'Confirm', account: ada }), 'taken');
  });

  test('that is held stays so for ever: no time and no abandoning opens it, nor does its own account', () => {
    const decide = history(claimed(ada), confirmed(ada));
    assert.equal(decide(claim(bob, after, ada)), 'taken');
    assert.equal(decide(claim(ada, after)), 'taken');
  });

  test('is released by its own account alone, pending or held, and is free then', () => {
    for (const events of [[claimed(ada)], [claimed(ada), confirmed(ada)]]) {
      assert.deepEqual(history(...events)({ type: 'Release', account: bob }), []);
      assert.deepEqual(history(...events)({ type: 'Release', account: ada }), [released(ada)]);
      assert.notEqual(history(...events, released(ada))(claim(bob, before)), 'taken');
      assert.deepEqual(history(...events, released(ada))({ type: 'Release', account: ada }), []);
    }
  });

  test('and an e-mail address are claimed by the same rules in streams of their own', () => {
    assert.deepEqual([usernameClaims.category, emailClaims.category], ['username', 'email']);
    assert.deepEqual(given(emailClaims, claimed(ada), confirmed(ada)), { status: 'held', account: ada });
  });
});
