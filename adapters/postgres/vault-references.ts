/**
 * Which vault records events name, on PostgreSQL (core/ports/vault-references.ts).
 *
 * Must stay true: `put` and `removeUnnamed` meet at the record's row, so that one of them sees what the other did: a
 * record that was just asked for again stays, and one that is gone is made anew.
 */
import type pg from 'pg';
import { type AccountId, timestamp, uuid } from '../../core/kernel/ids.ts';
import { type VaultField, vaultRef } from '../../core/ports/vault.ts';
import type { VaultReferences } from '../../core/ports/vault-references.ts';
import { READ_MARK_COLUMNS, type ReadMarkRow, toReadMark } from './read-mark-rows.ts';
import { vaultQuery } from './vault-query.ts';

interface RecordRow {
  readonly account_id: string;
  readonly field: VaultField;
  readonly ref: string;
}

/** The mark may go back: a log was found to be another than the one read before. */
const NOTE = `
  WITH noted AS (UPDATE vault_records SET named = true WHERE ref = ANY ($1::text[]) AND NOT named)
  INSERT INTO vault_read_mark (position, stream, revision, event_id) VALUES ($2, $3, $4, $5)
  ON CONFLICT (only_row) DO UPDATE SET position = excluded.position, stream = excluded.stream,
    revision = excluded.revision, event_id = excluded.event_id`;

/** The conditions stand outside too: they are looked at again on a row that somebody changed meanwhile. */
const REMOVE_UNNAMED = `
  DELETE FROM vault_records WHERE NOT named AND put_at < $1::timestamptz AND (account_id, ref) IN (
    SELECT account_id, ref FROM vault_records WHERE NOT named AND put_at < $1::timestamptz ORDER BY put_at LIMIT $2)
  RETURNING account_id, field, ref`;

/** `pool` is one of a migrated database; it stays its owner's to close. */
export function createPostgresVaultReferences(pool: pg.Pool): VaultReferences {
  return {
    now: async () => {
      const { rows } = await vaultQuery<{ now: Date }>(pool, 'SELECT clock_timestamp() AS now', []);
      const [row] = rows;
      if (row === undefined) throw new TypeError('PostgreSQL told no time');
      return timestamp(row.now.toISOString());
    },
    readUpTo: async () => {
      const text = `SELECT ${READ_MARK_COLUMNS} FROM vault_read_mark`;
      const { rows } = await vaultQuery<ReadMarkRow>(pool, text, []);
      return toReadMark(rows[0]);
    },
    note: async (named, { position, stream, revision, eventId }) => {
      await vaultQuery(pool, NOTE, [[...named], position, stream, revision, eventId]);
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
