/**
 * The keys of checkpoints on PostgreSQL (core/ports/log-keys.ts), sealed under a key that is derived from the master key.
 *
 * Must stay true: a key is authenticated together with its generation, so that no key can take another's place. No error
 * holds a part of a key.
 */
import type pg from 'pg';
import { type LogKey, type LogKeys, LogKeysError } from '../../core/ports/log-keys.ts';
import { queryReporting } from './outages.ts';
import { openForService, sealForService, serviceKeyOf } from './vault-cipher.ts';

const query = queryReporting(
  (cause) => new LogKeysError('log-keys-unavailable', 'PostgreSQL cannot be reached', { cause }),
);

export interface PostgresLogKeysOptions {
  /** Of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
}

export function createPostgresLogKeys({ pool, masterKey }: PostgresLogKeysOptions): LogKeys {
  const serviceKey = serviceKeyOf(masterKey);
  return {
    async list() {
      const text = 'SELECT generation, sealed FROM log_keys ORDER BY generation';
      const { rows } = await query<{ generation: number; sealed: Buffer }>(pool, text, []);
      return rows.map(({ generation, sealed }) => open(serviceKey, generation, sealed));
    },
    async add({ generation, name, publicKey, privateKey }) {
      const content = JSON.stringify({ name, publicKey, privateKey });
      const sealed = sealForService(serviceKey, contextOf(generation), content);
      const text = 'INSERT INTO log_keys (generation, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING';
      return (await query(pool, text, [generation, sealed])).rowCount === 1;
    },
  };
}

function contextOf(generation: number): string {
  return `log keys 1\0${generation}`;
}

function open(serviceKey: Buffer, generation: number, sealed: Buffer): LogKey {
  try {
    return { generation, ...parseKey(openForService(serviceKey, contextOf(generation), sealed)) };
  } catch {
    const message = `The log key of generation ${generation} was changed, or STRATA_MASTER_KEY is not the one that sealed it`;
    // Without a cause: a parser's error quotes what it could not read.
    throw new LogKeysError('log-keys-tampered', message);
  }
}

/** Parses what `add` wrote. */
function parseKey(text: string): Omit<LogKey, 'generation'> {
  return JSON.parse(text) as Omit<LogKey, 'generation'>;
}
