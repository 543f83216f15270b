/**
 * The vault in memory, for tests: commitments are real, but nothing is encrypted.
 *
 * Invariants: it passes the same contract suite as the durable vault.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { type AccountId, type Timestamp, timestamp } from '../../../core/kernel/ids.ts';
import { type VaultDisclosure, type VaultField, type VaultRef, vaultRef } from '../../../core/kernel/vault-ref.ts';
import type { ReadMark } from '../../../core/ports/read-mark.ts';
import { type Vault, VaultError } from '../../../core/ports/vault.ts';
import type { VaultRecordId, VaultReferences } from '../../../core/ports/vault-references.ts';

interface VaultRecord extends VaultDisclosure {
  readonly field: VaultField;
  readonly putAt: Timestamp;
}

export interface MemoryVault extends Vault {
  readonly references: VaultReferences;
}

/** Makes a new, empty vault with a fingerprint key of its own; `now` is its clock. */
export function createMemoryVault(now: () => Timestamp = wallClock): MemoryVault {
  const accounts = new Map<AccountId, Map<VaultRef, VaultRecord>>();
  const erased = new Set<AccountId>();
  const key = randomBytes(32);

  function find(account: AccountId, field: VaultField, ref: VaultRef): VaultRecord | null {
    const record = accounts.get(account)?.get(ref);
    return record?.field === field ? record : null;
  }

  return {
    put: async (account, field, value) => {
      if (erased.has(account)) throw new VaultError('account-erased', `Account ${account} was erased`);
      const records = accounts.get(account) ?? new Map<VaultRef, VaultRecord>();
      accounts.set(account, records);
      for (const [ref, record] of records) {
        if (record.field !== field || record.value !== value) continue;
        records.set(ref, { ...record, putAt: now() });
        return ref;
      }
      const nonce = randomBytes(32);
      const ref = vaultRef(createHash('sha256').update(nonce).update(value, 'utf8').digest('hex'));
      records.set(ref, { field, nonce: nonce.toString('hex'), value, putAt: now() });
      return ref;
    },
    get: async (account, field, ref) => find(account, field, ref)?.value ?? null,
    disclose: async (account, field, ref) => {
      const record = find(account, field, ref);
      return record === null ? null : { nonce: record.nonce, value: record.value };
    },
    discloseAll: async (account, records) =>
      new Map(
        records.flatMap(({ field, ref }) => {
          const record = find(account, field, ref);
          return record === null ? [] : [[ref, { nonce: record.nonce, value: record.value }] as const];
        }),
      ),
    holds: async (field) =>
      [...accounts.values()].some((records) => [...records.values()].some((record) => record.field === field)),
    delete: async (account, ref) => {
      accounts.get(account)?.delete(ref);
    },
    eraseAccount: async (account) => {
      erased.add(account);
      accounts.delete(account);
    },
    references: referencesTo(accounts, now),
    fingerprint: async (purpose, value) => createHmac('sha256', key).update(`${purpose}\0${value}`).digest('hex'),
  };
}

function referencesTo(accounts: ReadonlyMap<AccountId, Map<VaultRef, VaultRecord>>, now: () => Timestamp) {
  const namedRefs = new Set<VaultRef>();
  let mark: ReadMark | null = null;
  const references: VaultReferences = {
    now: async () => now(),
    readUpTo: async () => mark,
    note: async (named, upTo) => {
      for (const ref of named) namedRefs.add(ref);
      mark = upTo ?? mark;
    },
    removeUnnamed: async (putBefore, limit) => {
      const removed: VaultRecordId[] = [];
      for (const [account, records] of accounts) {
        for (const [ref, { field, putAt }] of [...records]) {
          if (removed.length === limit || namedRefs.has(ref) || putAt >= putBefore) continue;
          records.delete(ref);
          removed.push({ account, field, ref });
        }
      }
      return removed;
    },
  };
  return references;
}

function wallClock(): Timestamp {
  return timestamp(new Date().toISOString());
}
