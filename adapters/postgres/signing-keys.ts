/**
 * Signing keys on PostgreSQL (core/ports/signing-keys.ts), sealed under a key that is derived from the master key.
 *
 * Invariants: a set is authenticated together with its generation, so that no set can take another's place. No
 * error holds a part of a key.
 */
import type pg from 'pg';
import { timestamp } from '../../core/kernel/ids.ts';
import {
  SIGNING_ALGORITHMS,
  type SigningKey,
  type SigningKeySet,
  type SigningKeys,
  SigningKeysError,
} from '../../core/ports/signing-keys.ts';
import { keyringOf, type MasterKeyring } from './master-keyring.ts';
import { queryReporting, unavailable } from './outages.ts';
import { addSealed, type ServiceRow } from './service-rows.ts';
import { openForService } from './vault-cipher.ts';

const query = queryReporting(unavailable(SigningKeysError, 'signing-keys-unavailable'));

export interface PostgresSigningKeysOptions {
  /** The pool of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  /** Those of the service, or one of 32 bytes that never changes. */
  readonly masterKey: Uint8Array | MasterKeyring;
}

export function createPostgresSigningKeys({ pool, masterKey }: PostgresSigningKeysOptions): SigningKeys {
  const keyring = keyringOf(pool, masterKey);
  return {
    async list() {
      const text = 'SELECT generation, sealed, master_key_id FROM signing_keys ORDER BY generation';
      const { rows } = await query<ServiceRow>(pool, text, []);
      return Promise.all(
        rows.map(async (row) => open((await keyring.named(row.master_key_id)).service, row.generation, row.sealed)),
      );
    },
    async add({ generation, signsFrom, keys }) {
      const content = JSON.stringify({ signsFrom, keys });
      return addSealed({
        query: (text, values) => query(pool, text, values),
        keyring,
        table: 'signing_keys',
        generation,
        context: signingKeysContext(generation),
        content,
      });
    },
    async removeBelow(generation) {
      await query(pool, 'DELETE FROM signing_keys WHERE generation < $1', [generation]);
    },
  };
}

export function signingKeysContext(generation: number): string {
  return `signing keys 1\0${generation}`;
}

function open(serviceKey: Buffer, generation: number, sealed: Buffer): SigningKeySet {
  try {
    return { generation, ...parseSet(openForService(serviceKey, signingKeysContext(generation), sealed)) };
  } catch {
    const message = `The signing keys of generation ${generation} were changed, or STRATA_MASTER_KEY is not the one that sealed them`;
    // Without a cause: a parser's error quotes what it could not read.
    throw new SigningKeysError('signing-keys-tampered', message);
  }
}

/** Parses what `add` wrote. */
function parseSet(text: string): Omit<SigningKeySet, 'generation'> {
  const stored = JSON.parse(text) as { readonly signsFrom: string; readonly keys: readonly SigningKey[] };
  const keys = stored.keys.filter(({ algorithm }) => SIGNING_ALGORITHMS.includes(algorithm));
  return { signsFrom: timestamp(stored.signsFrom), keys };
}
