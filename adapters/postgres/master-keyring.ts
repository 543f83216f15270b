/**
 * The master keys that this process has, and which of them sealed what.
 *
 * Invariants: a running server takes a rotation up by itself. A row that names a key it does not know makes it look
 * for that key where it found the others. New rows are written with CURRENT_KEY in their statement, so that none is
 * sealed under a key that a rotation has replaced: the rotation waits for the statements under way before it begins.
 */
import type pg from 'pg';
import { VaultError } from '../../core/ports/vault.ts';
import { deriveMasterKey, type MasterKey, openFingerprintKey } from './vault-cipher.ts';
import { vaultQuery } from './vault-query.ts';

/** In the WHERE of a statement that seals: the name of the key that is to be used, null before the first rotation. */
export const CURRENT_KEY = '(SELECT key_id FROM master_keys ORDER BY generation DESC LIMIT 1)';

export interface MasterKeyRow {
  readonly generation: number;
  readonly key_id: string;
  readonly sealed_fingerprint_key: Buffer;
}

export const MASTER_KEY_ROWS = 'SELECT generation, key_id, sealed_fingerprint_key FROM master_keys ORDER BY generation';

export interface MasterKeyring {
  /** The key for new rows, and what they say of it. Throws VaultError when this process does not have it. */
  current(): Promise<{ readonly key: MasterKey; readonly name: string | null }>;
  /** The key that sealed a row, by what the row says of it. Throws VaultError when this process does not have it. */
  named(name: string | null): Promise<MasterKey>;
  /** Looks for the keys again. */
  renew(): Promise<void>;
  /** The key of fingerprints, which no rotation changes. */
  fingerprintKey(): Promise<Buffer>;
}

interface Known {
  readonly keys: ReadonlyMap<string, MasterKey>;
  readonly first: MasterKey;
  readonly rows: readonly MasterKeyRow[];
}

/** `candidates` returns the keys that the process may use, of 32 bytes each; the first is the configured one. */
export function createMasterKeyring(options: {
  /** The pool of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  readonly candidates: () => Promise<readonly [Uint8Array, ...Uint8Array[]]>;
}): MasterKeyring {
  let known: Promise<Known> | null = null;
  let loading: Promise<Known> | null = null;
  const load = (): Promise<Known> => {
    loading ??= readKnown(options).finally(() => {
      loading = null;
    });
    known = loading;
    known.catch(() => {
      known = null;
    });
    return known;
  };
  const find = async (pick: (among: Known) => MasterKey | undefined): Promise<MasterKey> => {
    const key = pick(await (known ?? load())) ?? pick(await load());
    if (key === undefined) throw notTheKey();
    return key;
  };
  const newest = ({ rows, keys, first }: Known) => {
    const name = rows.at(-1)?.key_id ?? null;
    return { key: name === null ? first : keys.get(name), name };
  };
  let fingerprint: Buffer | null = null;
  return {
    async current() {
      for (const among of [() => known ?? load(), load]) {
        const { key, name } = newest(await among());
        if (key !== undefined) return { key, name };
      }
      throw notTheKey();
    },
    named: (name) => find((among) => keyOf(among, name)),
    renew: async () => void (await load()),
    async fingerprintKey() {
      fingerprint ??= fingerprintOf(await (known ?? load()));
      return fingerprint;
    },
  };
}

/** For a process whose master key never changes, such as a test. */
export function keyringOf(pool: pg.Pool, keys: Uint8Array | MasterKeyring): MasterKeyring {
  return keys instanceof Uint8Array ? createMasterKeyring({ pool, candidates: async () => [keys] }) : keys;
}

/** A row without a name was sealed under the key of before the first rotation, which the first row names. */
function keyOf({ keys, rows, first }: Known, name: string | null): MasterKey | undefined {
  const id = name ?? rows[0]?.key_id;
  return id === undefined ? first : keys.get(id);
}

async function readKnown({ pool, candidates }: Parameters<typeof createMasterKeyring>[0]): Promise<Known> {
  const [first, ...others] = await candidates();
  const firstKey = deriveMasterKey(first);
  const keys = [firstKey, ...others.map(deriveMasterKey)].map((key) => [key.id, key] as const);
  const { rows } = await vaultQuery<MasterKeyRow>(pool, MASTER_KEY_ROWS, []);
  return { keys: new Map(keys), first: firstKey, rows };
}

function fingerprintOf({ keys, first, rows }: Known): Buffer {
  if (rows.length === 0) return first.fingerprint;
  for (const row of rows) {
    const key = keys.get(row.key_id);
    if (key !== undefined) return openFingerprintKey(key, row.sealed_fingerprint_key);
  }
  throw notTheKey();
}

function notTheKey(): VaultError {
  return new VaultError(
    'record-tampered',
    'The master key is not the one that this database was last given by strata-admin master-key rotate',
  );
}
