/**
 * prune_stream, the only function that removes events from the log.
 *
 * Invariants (docs/event-log.md, Pruning): it removes whole streams of the operational categories, which have no
 * record event, whose last event is older than asked for, and that lie before the log's last record event. So the head
 * never falls, no position is used twice, and a reader that recognises its log by record events still does. It takes
 * the lock of append_events: no event is added to a stream while it is removed.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(PRUNE_STREAM).execute(db);
}

/** Returns whether the stream was removed. `last_revision` is that of its last event, as the caller has seen it. */
const PRUNE_STREAM = `
CREATE FUNCTION prune_stream(name text, last_revision integer, older_than text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
DECLARE
  last_position bigint;
  found_count integer;
BEGIN
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
