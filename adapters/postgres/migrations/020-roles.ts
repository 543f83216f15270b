/**
 * The functions that write events run with the rights of their owner, so that the role that serves needs no right but to
 * read `events` and to call them (serving-role.ts grants that).
 *
 * Must stay true: such a function has a fixed search path with `pg_temp` last, so that no table or function of its
 * caller takes the place of one that it names. Only those who were granted it may call it.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`SELECT current_schema() AS name`.execute(db);
  const schema = sql.id(rows[0]?.name ?? 'public');
  for (const signature of ['append_events(json)', 'prune_stream(text, integer, text)']) {
    const name = sql.raw(signature);
    await sql`ALTER FUNCTION ${name} SECURITY DEFINER SET search_path TO pg_catalog, ${schema}, pg_temp`.execute(db);
    await sql`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`.execute(db);
  }
}
