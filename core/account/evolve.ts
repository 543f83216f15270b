/**
 * Folds an account's events. This file folds those of the account itself; each facet folds its own.
 *
 * Invariants: an event of a facet changes the state of that facet alone.
 */
import { type Codec, merged, nullable, number, object, parsed, text, time, unstored, word } from '../kernel/codec.ts';
import type { Decider, SnapshotCodec } from '../kernel/decider.ts';
import { type Timestamp, timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import { vaultRef } from '../kernel/vault-ref.ts';
import { accountBuckets } from './buckets/evolve.ts';
import { type AccountEvent, type AccountOwnEvent, accountEventKinds } from './events.ts';
import { isEventOf } from './facet.ts';
import { accountMfa } from './mfa/evolve.ts';
import { ownedRepositories } from './repositories/evolve.ts';
import type { Account, AccountFacets, ClosedAccount, FormerEmail, OpenAccount } from './state.ts';
import { accountTrustRules } from './trust-rules/evolve.ts';
import { accountWebhooks } from './webhooks/evolve.ts';

function evolveAccount(state: Account, event: AccountEvent, at: Timestamp): Account {
  if (isEventOf(ownedRepositories, event)) {
    // The repositories of an erased account are deleted one by one.
    const owner = state.status === 'erased' && event.type === 'RepositoryDeleted' ? state : openOrClosed(state);
    return { ...owner, ...ownedRepositories.evolve(owner, event, at) };
  }
  if (isEventOf(accountWebhooks, event)) {
    const account = openOrClosed(state);
    return { ...account, ...accountWebhooks.evolve(account, event, at) };
  }
  if (isEventOf(accountMfa, event)) {
    const account = openOrClosed(state);
    return { ...account, ...accountMfa.evolve(account, event, at) };
  }
  if (isEventOf(accountBuckets, event)) {
    const account = openOrClosed(state);
    return { ...account, ...accountBuckets.evolve(account, event, at) };
  }
  if (isEventOf(accountTrustRules, event)) {
    const account = openOrClosed(state);
    return { ...account, ...accountTrustRules.evolve(account, event, at) };
  }
  return evolveOwn(state, event, at);
}

function evolveOwn(state: Account, event: AccountOwnEvent, at: Timestamp): Account {
  switch (event.type) {
    case 'AccountCreated':
      return {
        ...INITIAL_FACETS,
        status: 'open',
        username: event.data.username,
        emailRef: vaultRef(event.data.email_ref),
        passwordHashRef: vaultRef(event.data.password_hash_ref),
        plan: event.data.plan,
        createdAt: at,
        sessionsEnded: 0,
        formerEmail: null,
      };
    case 'Abandoned':
      return { status: 'abandoned' };
    case 'PlanChanged':
      return { ...openOrClosed(state), plan: event.data.plan };
    case 'PasswordChanged': {
      const account = openOrClosed(state);
      const passwordHashRef = vaultRef(event.data.password_hash_ref);
      return { ...account, passwordHashRef, sessionsEnded: account.sessionsEnded + 1 };
    }
    case 'EmailChanged': {
      const account = openOrClosed(state);
      const formerEmail = { ref: account.emailRef, claim: event.data.previous_claim };
      return { ...account, emailRef: vaultRef(event.data.email_ref), formerEmail };
    }
    case 'AccountClosed': {
      const account = open(state);
      const eraseAt = timestamp(event.data.erase_at);
      return { ...account, status: 'closed', closedAt: at, eraseAt, sessionsEnded: account.sessionsEnded + 1 };
    }
    case 'AccountReopened': {
      if (state.status !== 'closed') throw misplaced(state);
      const { closedAt: _closedAt, eraseAt: _eraseAt, ...contents } = state;
      return { ...contents, status: 'open' };
    }
    case 'LogKeyEndorsed':
    case 'LogTailLost':
    case 'MasterKeyRotated':
    case 'RepositoryRebuilt':
      return state;
    case 'AccountErased': {
      const { username, emailRef, formerEmail, ...facets } = openOrClosed(state);
      const { repositories, repositoryNames, formerNames, deletedFormerNames } = facets;
      const lists = { repositories, repositoryNames, formerNames, deletedFormerNames };
      return { status: 'erased', username, emailRef, formerEmail, ...lists };
    }
  }
}

const INITIAL_FACETS: AccountFacets = {
  ...ownedRepositories.initial,
  ...accountWebhooks.initial,
  ...accountMfa.initial,
  ...accountBuckets.initial,
  ...accountTrustRules.initial,
};

function open(state: Account): OpenAccount {
  if (state.status !== 'open') throw misplaced(state);
  return state;
}

/** A closed account still takes events: they finish an operation that was interrupted before the account was closed. */
function openOrClosed(state: Account): OpenAccount | ClosedAccount {
  if (state.status !== 'open' && state.status !== 'closed') throw misplaced(state);
  return state;
}

function misplaced(state: Account): TypeError {
  return new TypeError(`An event for an account that is ${state.status}`);
}

/** If its meaning changes, raise the version of the snapshot. */
export const openAccount: Codec<OpenAccount, JsonObject> = merged(
  unstored({ status: 'open' as const }),
  object<Omit<OpenAccount, 'status' | keyof AccountFacets>>({
    username: text,
    emailRef: parsed(vaultRef),
    passwordHashRef: parsed(vaultRef),
    plan: word(),
    createdAt: time,
    sessionsEnded: number,
    formerEmail: nullable(object<FormerEmail>({ ref: parsed(vaultRef), claim: nullable(text) })),
  }),
  ownedRepositories.snapshot,
  accountWebhooks.snapshot,
  accountMfa.snapshot,
  accountBuckets.snapshot,
  accountTrustRules.snapshot,
);

const accountSnapshots: SnapshotCodec<Account> = {
  version: 7,
  write: (state) => (state.status === 'open' ? openAccount.write(state) : null),
  read: openAccount.read,
};

function sizeBytesOf(state: Account): number {
  switch (state.status) {
    case 'open':
    case 'closed':
      return (
        1_000 +
        ownedRepositories.sizeBytes(state) +
        accountWebhooks.sizeBytes(state) +
        accountMfa.sizeBytes(state) +
        accountBuckets.sizeBytes(state) +
        accountTrustRules.sizeBytes(state)
      );
    case 'erased':
      return 1_000 + ownedRepositories.sizeBytes(state);
    case 'absent':
    case 'abandoned':
      return 100;
  }
}

export const accounts: Decider<Account, AccountEvent> = {
  category: 'account',
  kinds: accountEventKinds,
  initial: { status: 'absent' },
  evolve: evolveAccount,
  snapshots: accountSnapshots,
  sizeBytes: sizeBytesOf,
};
