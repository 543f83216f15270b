/**
 * Signing keys on PostgreSQL (core/ports/signing-keys.ts), sealed under a key that is derived from the master key.
 *
 * Must stay true: a set is authenticated together with its generation, so that no set can take another's place. No
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
import { queryReporting } from './outages.ts';
import { openForService, sealForService, serviceKeyOf } from './vault-cipher.ts';

const query = queryReporting(
  (cause) => new SigningKeysError('signing-keys-unavailable', 'PostgreSQL cannot be reached', { cause }),
);

export interface PostgresSigningKeysOptions {
  /** Of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
}

export function createPostgresSigningKeys({ pool, masterKey }: PostgresSigningKeysOptions): SigningKeys {
  const serviceKey = serviceKeyOf(masterKey);
  return {
    async list() {
      const text = 'SELECT generation, sealed FROM signing_keys ORDER BY generation';
      const { rows } = await query<{ generation: number; sealed: Buffer }>(pool, text, []);
      return rows.map(({ generation, sealed }) => open(serviceKey, generation, sealed));
    },
    async add({ generation, signsFrom, keys }) {
      const sealed = sealForService(serviceKey, contextOf(generation), JSON.stringify({ signsFrom, keys }));
      const text = 'INSERT INTO signing_keys (generation, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING';
      return (await query(pool, text, [generation, sealed])).rowCount === 1;
    },
    async removeBelow(generation) {
      await query(pool, 'DELETE FROM signing_keys WHERE generation < $1', [generation]);
    },
  };
}

function contextOf(generation: number): string {
  return `signing keys 1\0${generation}`;
}

function open(serviceKey: Buffer, generation: number, sealed: Buffer): SigningKeySet {
  try {
    return { generation, ...parseSet(openForService(serviceKey, contextOf(generation), sealed)) };
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
