/** A cache with a share for each account. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { type AccountId, uuid } from '../../../../core/kernel/ids.ts';
import { createKeptByAccount } from '../../../../core/use-cases/as-of/account-cache.ts';
import {
  PAST_REPOSITORIES_ACCOUNT_SIZE_BYTES_MAX,
  PAST_REPOSITORIES_SIZE_BYTES_MAX,
} from '../../../../core/use-cases/as-of/repository-as-of.ts';

const [ada, bob, eve] = [randomUUID(), randomUUID(), randomUUID()].map((id) => uuid<AccountId>(id)) as [
  AccountId,
  AccountId,
  AccountId,
];
/** What an entry counts beside its value. */
const ENTRY = 1_000;

function keptOf(sizeBytesMax: number, accountSizeBytesMax: number) {
  const kept = createKeptByAccount<string>('test-by-account', { sizeBytesMax, accountSizeBytesMax });
  const has = (account: AccountId, keys: string) => [...keys].filter((key) => kept.get(account, key) === key).join('');
  const set = (account: AccountId, keys: string, bytes = 0) => {
    for (const key of keys) kept.set(account, key, key, bytes);
  };
  return { kept, has, set };
}

describe('What is kept for an account', () => {
  test('stays within its share, and what was used last stays longest', () => {
    const { kept, has, set } = keptOf(100 * ENTRY, 3 * ENTRY);
    set(ada, 'abc');
    assert.equal(has(ada, 'abc'), 'abc');
    assert.equal(kept.get(ada, 'a'), 'a');
    set(ada, 'd');
    assert.equal(has(ada, 'abcd'), 'acd');
    assert.equal(kept.sizeBytes, 3 * ENTRY);
  });

  test('takes nothing from other accounts before all together reach their bound', () => {
    const { has, set } = keptOf(5 * ENTRY, 3 * ENTRY);
    set(bob, 'ab');
    set(eve, 'abcdefgh');
    assert.deepEqual([has(bob, 'ab'), has(eve, 'abcdefgh')], ['ab', 'fgh']);
    set(ada, 'a');
    assert.deepEqual([has(bob, 'ab'), has(eve, 'fgh'), has(ada, 'a')], ['b', 'fgh', 'a']);
  });

  test('is never less than what was set last, however large', () => {
    const { kept, has, set } = keptOf(5 * ENTRY, 3 * ENTRY);
    set(bob, 'ab');
    set(ada, 'a', 50 * ENTRY);
    assert.deepEqual([has(bob, 'ab'), has(ada, 'a')], ['', 'a']);
    set(ada, 'b');
    assert.deepEqual([has(ada, 'ab'), kept.sizeBytes], ['b', ENTRY]);
  });

  test('counts a value once that is set again', () => {
    const { kept, has, set } = keptOf(5 * ENTRY, 3 * ENTRY);
    set(ada, 'a', 500);
    set(ada, 'a', 100);
    assert.deepEqual([has(ada, 'a'), kept.sizeBytes], ['a', ENTRY + 100]);
  });

  test('is a share of 32 MiB of 64 MiB for repositories of the past', () => {
    const kept = createKeptByAccount<string>('test-by-account', {
      sizeBytesMax: PAST_REPOSITORIES_SIZE_BYTES_MAX,
      accountSizeBytesMax: PAST_REPOSITORIES_ACCOUNT_SIZE_BYTES_MAX,
    });
    const half = PAST_REPOSITORIES_ACCOUNT_SIZE_BYTES_MAX / 2 - ENTRY;
    for (const account of [ada, bob]) for (const key of ['a', 'b']) kept.set(account, key, key, half);
    assert.equal(kept.sizeBytes, PAST_REPOSITORIES_SIZE_BYTES_MAX);
    kept.set(ada, 'b', 'b', half + 1);
    assert.deepEqual([kept.get(ada, 'a'), kept.get(bob, 'a')], [undefined, 'a']);
    kept.set(ada, 'a', 'a', half - 1);
    kept.set(eve, 'a', 'a', 1);
    assert.ok(kept.sizeBytes <= PAST_REPOSITORIES_SIZE_BYTES_MAX);
    assert.equal(kept.get(bob, 'b'), undefined);
  });
});
