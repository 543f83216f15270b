/**
 * Records which vault records events name, on PostgreSQL (core/ports/vault-references.ts).
 *
 * Invariants: the vault's `put` and `removeUnnamed` both write the record's row, so the later one sees what the
 * earlier one did: a record that was just put again stays, and `put` creates one again that was removed.
 */
import type pg from 'pg';
import { type AccountId, timestamp, uuid } from '../../core/kernel/ids.ts';
import { type VaultField, vaultRef } from '../../core/kernel/vault-ref.ts';
import type { VaultReferences } from '../../core/ports/vault-references.ts';
import { READ_MARK_COLUMNS, type ReadMarkRow, readMarkValues, toReadMark } from './read-mark-rows.ts';
import { vaultQuery } from './vault-query.ts';

interface RecordRow {
  readonly account_id: string;
  readonly field: VaultField;
  readonly ref: string;
}

/** The mark may move back, when the log turns out to be another one than before. */
const NOTE = `
  WITH noted AS (UPDATE vault_records SET named = true WHERE ref = ANY ($1::text[]) AND NOT named)
  INSERT INTO vault_read_mark (${READ_MARK_COLUMNS}) SELECT $2::bigint, $3, $4::int, $5::uuid, $6::bigint
  WHERE $2::bigint IS NOT NULL
  ON CONFLICT (only_row) DO UPDATE SET position = excluded.position, stream = excluded.stream,
    revision = excluded.revision, event_id = excluded.event_id, event_position = excluded.event_position`;

/** The outer query repeats the conditions because PostgreSQL checks only those again on a row changed concurrently. */
const REMOVE_UNNAMED = `
  DELETE FROM vault_records WHERE NOT named AND put_at < $1::timestamptz AND (account_id, ref) IN (
    SELECT account_id, ref FROM vault_records WHERE NOT named AND put_at < $1::timestamptz ORDER BY put_at LIMIT $2)
  RETURNING account_id, field, ref`;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresVaultReferences(pool: pg.Pool): VaultReferences {
  return {
    now: async () => {
      const { rows } = await vaultQuery<{ now: Date }>(pool, 'SELECT clock_timestamp() AS now', []);
      const [row] = rows;
      if (row === undefined) throw new TypeError('PostgreSQL returned no time');
      return timestamp(row.now.toISOString());
    },
    readUpTo: async () => {
      const text = `SELECT ${READ_MARK_COLUMNS} FROM vault_read_mark`;
      const { rows } = await vaultQuery<ReadMarkRow>(pool, text, []);
      return toReadMark(rows[0]);
    },
    note: async (named, upTo) => {
      const mark = upTo === null ? [null, null, null, null, null] : readMarkValues(upTo);
      await vaultQuery(pool, NOTE, [[...named], ...mark]);
    },
    removeUnnamed: async (putBefore, limit) => {
      const { rows } = await vaultQuery<RecordRow>(pool, REMOVE_UNNAMED, [putBefore, limit]);
      return rows.map(({ account_id, field, ref }) => ({
        account: uuid<AccountId>(account_id),
        field,
        ref: vaultRef(ref),
      }));
    },
  };
}
