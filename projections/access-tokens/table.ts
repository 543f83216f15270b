/**
 * The tables of access tokens: one row for each token that is not revoked. A token that was exchanged is in no list,
 * but its id must be found until it ends.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/**
 * How much later than an exchanged token the newest one must end before the read model of tokens forgets the first.
 * Internal: only tokens that ended long ago are forgotten.
 */
export const EXCHANGED_TOKEN_KNOWN_MS = 24 * 60 * 60_000;

export const accessTokenTables: readonly ProjectionTable[] = [
  {
    name: 'access_tokens',
    key: ['id'],
    compare: 'exact',
    // `position` orders tokens that were created in the same millisecond.
    create: (table) => [
      `CREATE TABLE ${table} (
        id uuid PRIMARY KEY,
        account_id uuid NOT NULL,
        name text NOT NULL,
        scope text NOT NULL,
        grants json NOT NULL,
        repository_ids json NOT NULL,
        expires_at text COLLATE "C",
        created_at text COLLATE "C" NOT NULL,
        token_prefix text NOT NULL,
        position bigint NOT NULL)`,
      `CREATE INDEX ON ${table} (account_id, created_at, position)`,
    ],
  },
  {
    name: 'exchanged_tokens',
    key: ['id'],
    compare: 'exact',
    ages: { column: 'expires_at', keptMs: EXCHANGED_TOKEN_KNOWN_MS },
    create: (table) => [
      `CREATE TABLE ${table} (id uuid PRIMARY KEY, expires_at text COLLATE "C" NOT NULL)`,
      `CREATE INDEX ON ${table} (expires_at)`,
    ],
  },
];
