/**
 * The keys of checkpoints on PostgreSQL (core/ports/log-keys.ts), sealed under a key that is derived from the master
 * key.
 *
 * Invariants: a key is authenticated together with its generation, so that no key can take another's place. No error
 * holds a part of a key.
 */
import type pg from 'pg';
import { type LogKey, type LogKeys, LogKeysError } from '../../core/ports/log-keys.ts';
import { keyringOf, type MasterKeyring } from './master-keyring.ts';
import { queryReporting, unavailable } from './outages.ts';
import { addSealed, type ServiceRow } from './service-rows.ts';
import { openForService } from './vault-cipher.ts';

const query = queryReporting(unavailable(LogKeysError, 'log-keys-unavailable'));

export interface PostgresLogKeysOptions {
  /** The pool of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  /** Those of the service, or one of 32 bytes that never changes. */
  readonly masterKey: Uint8Array | MasterKeyring;
}

export function createPostgresLogKeys({ pool, masterKey }: PostgresLogKeysOptions): LogKeys {
  const keyring = keyringOf(pool, masterKey);
  return {
    async list() {
      const text = 'SELECT generation, sealed, master_key_id FROM log_keys ORDER BY generation';
      const { rows } = await query<ServiceRow>(pool, text, []);
      return Promise.all(
        rows.map(async (row) => open((await keyring.named(row.master_key_id)).service, row.generation, row.sealed)),
      );
    },
    async add({ generation, name, publicKey, privateKey, revokes }) {
      const content = JSON.stringify({ name, publicKey, privateKey, ...(revokes === null ? {} : { revokes }) });
      return addSealed({
        query: (text, values) => query(pool, text, values),
        keyring,
        table: 'log_keys',
        generation,
        context: logKeysContext(generation),
        content,
      });
    },
  };
}

export function logKeysContext(generation: number): string {
  return `log keys 1\0${generation}`;
}

function open(serviceKey: Buffer, generation: number, sealed: Buffer): LogKey {
  try {
    return { generation, ...parseKey(openForService(serviceKey, logKeysContext(generation), sealed)) };
  } catch {
    const message = `The log key of generation ${generation} was changed, or STRATA_MASTER_KEY is not the one that sealed it`;
    // Without a cause: a parser's error quotes what it could not read.
    throw new LogKeysError('log-keys-tampered', message);
  }
}

/** Parses what `add` wrote; older versions knew no revocation. */
function parseKey(text: string): Omit<LogKey, 'generation'> {
  const key = JSON.parse(text) as Omit<LogKey, 'generation' | 'revokes'> & { readonly revokes?: number };
  return { ...key, revokes: key.revokes ?? null };
}
