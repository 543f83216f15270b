/**
 * The functions that write events run with the rights of their owner, so that the role that serves needs no right but
 * to read `events` and to call them (serving-role.ts grants that).
 *
 * prune_stream as in 019-prune.ts, whose invariants hold here too. It also refuses a transaction whose snapshot is
 * older than its lock: the caller could make it leave events of the stream that were appended since.
 *
 * Invariants: such a function has a fixed search path with `pg_temp` last, so that no table or function of its
 * caller takes the place of one that it names. Only those who were granted it may call it.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`SELECT current_schema() AS name`.execute(db);
  const schema = sql.id(rows[0]?.name ?? 'public');
  await sql.raw(PRUNE_STREAM).execute(db);
  for (const signature of ['append_events(json)', 'prune_stream(text, integer, text)']) {
    const name = sql.raw(signature);
    await sql`ALTER FUNCTION ${name} SECURITY DEFINER SET search_path TO pg_catalog, ${schema}, pg_temp`.execute(db);
    await sql`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`.execute(db);
  }
}

const PRUNE_STREAM = `
CREATE OR REPLACE FUNCTION prune_stream(name text, last_revision integer, older_than text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
DECLARE
  last_position bigint;
  found_count integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'prune_stream needs READ COMMITTED';
  END IF;
  IF split_part(name, '-', 1) NOT IN ('webhookDelivery', 'transfer', 'signIn', 'bucketErrors') THEN
    RAISE EXCEPTION 'The stream % is not of an operational category', name;
  END IF;
  PERFORM pg_advisory_xact_lock(8317987319222330741);
  SELECT e.position INTO last_position FROM events e
  WHERE e.stream = name AND e.revision = last_revision AND e.occurred_at < older_than
    AND NOT EXISTS (SELECT FROM events later WHERE later.stream = name AND later.revision > last_revision);
  IF last_position IS NULL THEN
    RETURN false;
  END IF;
  -- Events that were stored before the flag have none; then the category decides.
  PERFORM FROM events e
  WHERE e.position > last_position
    AND coalesce(e.is_record, split_part(e.stream, '-', 1) NOT IN ('transfer', 'webhookDelivery'))
  ORDER BY e.position LIMIT 1;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM FROM events e WHERE e.stream = name AND e.is_record LIMIT 1;
  IF FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM events e WHERE e.stream = name;
  GET DIAGNOSTICS found_count = ROW_COUNT;
  RETURN found_count > 0;
END
$function$`;
