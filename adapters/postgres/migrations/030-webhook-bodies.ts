/**
 * Of the answers to a delivery only the last one is kept, and each account's payloads and answers are counted in bytes,
 * so that the oldest give way when an account has too many (core/ports/delivery-store.ts).
 *
 * Invariants: the triggers see every change of the two tables, whichever statement makes it. They change the counts
 * of several accounts in the order of their ids, so that no two statements wait for each other.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    DELETE FROM webhook_answers earlier USING webhook_answers later
    WHERE earlier.delivery_id = later.delivery_id
      AND (earlier.series, earlier.attempt) < (later.series, later.attempt)`.execute(db);
  // Null: stored before this migration.
  await sql`ALTER TABLE webhook_answers ADD COLUMN event_id uuid`.execute(db);
  for (const table of ['webhook_payloads', 'webhook_answers']) {
    await sql.raw(`DROP INDEX ${table}_by_account`).execute(db);
    await sql.raw(`CREATE INDEX ${table}_by_account ON ${table} (account_id, stored_at)`).execute(db);
  }
  await sql`
    CREATE TABLE webhook_body_sums (
      account_id uuid PRIMARY KEY,
      payload_bytes bigint NOT NULL,
      answer_bytes bigint NOT NULL
    )`.execute(db);
  await sql
    .raw(
      `INSERT INTO webhook_body_sums
       SELECT account_id, sum(payload), sum(answer) FROM (
         SELECT account_id, ${BYTES} AS payload, 0 AS answer FROM webhook_payloads
         UNION ALL SELECT account_id, 0, ${BYTES} FROM webhook_answers) AS body
       GROUP BY account_id`,
    )
    .execute(db);
  for (const change of CHANGES) {
    for (const text of counting(change)) await sql.raw(text).execute(db);
  }
}

/** What a row takes, with an allowance for its other columns and its entries in indexes. */
const BYTES = 'octet_length(body) + 256';

interface Change {
  readonly table: string;
  readonly column: string;
  readonly operation: 'INSERT' | 'UPDATE' | 'DELETE';
}

const CHANGES: readonly Change[] = [
  { table: 'webhook_payloads', column: 'payload_bytes', operation: 'INSERT' },
  { table: 'webhook_payloads', column: 'payload_bytes', operation: 'DELETE' },
  { table: 'webhook_answers', column: 'answer_bytes', operation: 'INSERT' },
  { table: 'webhook_answers', column: 'answer_bytes', operation: 'UPDATE' },
  { table: 'webhook_answers', column: 'answer_bytes', operation: 'DELETE' },
];

function counting({ table, column, operation }: Change): readonly string[] {
  const name = `count_${table}_${operation.toLowerCase()}`;
  const added = `SELECT account_id, ${BYTES} AS bytes FROM added`;
  const removed = `SELECT account_id, -(${BYTES}) AS bytes FROM removed`;
  const [changes, tables] = {
    INSERT: [added, 'NEW TABLE AS added'],
    UPDATE: [`${added} UNION ALL ${removed}`, 'OLD TABLE AS removed NEW TABLE AS added'],
    DELETE: [removed, 'OLD TABLE AS removed'],
  }[operation];
  const empty =
    operation === 'DELETE'
      ? `DELETE FROM webhook_body_sums WHERE payload_bytes = 0 AND answer_bytes = 0
           AND account_id IN (SELECT account_id FROM removed);`
      : '';
  return [
    `CREATE FUNCTION ${name}() RETURNS trigger
    LANGUAGE plpgsql
    AS $function$
    BEGIN
      INSERT INTO webhook_body_sums AS known (account_id, payload_bytes, answer_bytes)
      SELECT change.account_id, ${column === 'payload_bytes' ? 'sum(bytes), 0' : '0, sum(bytes)'}
      FROM (${changes}) AS change
      GROUP BY change.account_id HAVING sum(bytes) <> 0 ORDER BY change.account_id
      ON CONFLICT (account_id) DO UPDATE SET ${column} = known.${column} + excluded.${column};
      ${empty}
      RETURN NULL;
    END
    $function$`,
    `CREATE TRIGGER ${name} AFTER ${operation} ON ${table} REFERENCING ${tables}
    FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`,
  ];
}
