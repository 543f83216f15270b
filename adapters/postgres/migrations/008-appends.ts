/**
 * Adds whether an event is record, and its place in its append; and to the read marks, the position of their record
 * event.
 *
 * Invariants: no stored row is rewritten, however large the log is, since the columns have constant defaults. A row
 * that was stored before counts as an append of one event; its category decides whether it is record
 * (core/kernel/envelope.ts).
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE events
      ADD COLUMN is_record boolean,
      ADD COLUMN append_index integer NOT NULL DEFAULT 0,
      ADD COLUMN append_count integer NOT NULL DEFAULT 1`.execute(db);
  for (const table of ['policy_marks', 'vault_read_mark']) {
    // The position of the mark's record event. Null in a row stored before: the event is then at the mark's position.
    await sql`ALTER TABLE ${sql.table(table)} ADD COLUMN event_position bigint`.execute(db);
  }
  await sql.raw(APPEND_EVENTS).execute(db);
}

/**
 * As in 001-event-log.ts, whose invariants hold here too. It also numbers the events of each append. When a node that
 * still runs an older version sends no `is_record`, the column stays null.
 *
 * Takes a JSON array of {stream, expected, guards: [{stream, revision}], events: [rows of events]}, where the revision
 * -1 means "no event". Returns a JSON array with one line for each request, in order:
 * ["appended", last revision, "last position"] · ["conflict", n, actual revision], n = 0 for the stream itself, else
 * the guard's number from 1 · ["reused"], when an id belongs to another event.
 */
const APPEND_EVENTS = `
CREATE OR REPLACE FUNCTION append_events(batch json) RETURNS text
LANGUAGE plpgsql VOLATILE
-- Plans are made when the table may still be empty, and kept: they must not scan it later.
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
DECLARE
  request record;
  head bigint;
  head_before bigint;
  actual integer;
  event_count integer;
  found_count integer;
  found_position bigint;
  guard_number integer;
  guard_actual integer;
  results text := '';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'append_events needs READ COMMITTED';
  END IF;
  PERFORM pg_advisory_xact_lock(8317987319222330741);
  SELECT e.position INTO head FROM events e ORDER BY e.position DESC LIMIT 1;
  head := coalesce(head, 0);
  head_before := head;
  FOR request IN
    SELECT * FROM json_to_recordset(batch) AS r (stream text, expected integer, guards json, events json)
  LOOP
    event_count := json_array_length(request.events);
    SELECT e.revision INTO actual FROM events e WHERE e.stream = request.stream ORDER BY e.revision DESC LIMIT 1;
    actual := coalesce(actual, -1);
    IF actual >= request.expected + event_count THEN
      -- A retry after a lost answer finds its own events in their place.
      SELECT count(*), max(e.position) INTO found_count, found_position
      FROM json_populate_recordset(NULL::events, request.events) WITH ORDINALITY AS n
      JOIN events e ON e.stream = request.stream AND e.revision = request.expected + n.ordinality
      WHERE (e.event_id, e.type, e.version, e.account_id, e.occurred_at, e.actor_kind, e.actor_id,
             e.request_id, e.source_address_ref, e.causation_id, e.data)
        IS NOT DISTINCT FROM
            (n.event_id, n.type, n.version, n.account_id, n.occurred_at, n.actor_kind, n.actor_id,
             n.request_id, n.source_address_ref, n.causation_id, n.data)
        AND coalesce(e.is_record, n.is_record) IS NOT DISTINCT FROM n.is_record;
      IF found_count = event_count THEN
        results := results || format(',["appended",%s,"%s"]', request.expected + event_count, found_position);
        CONTINUE;
      END IF;
    END IF;
    IF actual <> request.expected THEN
      results := results || format(',["conflict",0,%s]', actual);
      CONTINUE;
    END IF;
    IF request.guards IS NOT NULL THEN
      SELECT g.number, g.actual INTO guard_number, guard_actual
      FROM (
        SELECT w.ordinality AS number, w.revision, coalesce(
          (SELECT e.revision FROM events e WHERE e.stream = w.stream ORDER BY e.revision DESC LIMIT 1), -1
        ) AS actual
        FROM ROWS FROM (json_to_recordset(request.guards) AS (stream text, revision integer))
          WITH ORDINALITY AS w (stream, revision, ordinality)
      ) AS g
      WHERE g.actual <> g.revision ORDER BY g.number LIMIT 1;
      IF guard_number IS NOT NULL THEN
        results := results || format(',["conflict",%s,%s]', guard_number, guard_actual);
        CONTINUE;
      END IF;
    END IF;
    INSERT INTO events (position, stream, revision, event_id, type, version, account_id, occurred_at, actor_kind,
                        actor_id, request_id, source_address_ref, causation_id, data, is_record, append_index,
                        append_count)
    SELECT head + n.ordinality, request.stream, actual + n.ordinality, n.event_id, n.type, n.version, n.account_id,
           n.occurred_at, n.actor_kind, n.actor_id, n.request_id, n.source_address_ref, n.causation_id, n.data,
           n.is_record, n.ordinality - 1, event_count
    FROM ROWS FROM (json_to_recordset(request.events) AS (
      event_id uuid, type text, version integer, account_id uuid, occurred_at text, actor_kind text, actor_id text,
      request_id text, source_address_ref text, causation_id uuid, data text, is_record boolean
    )) WITH ORDINALITY AS n (event_id, type, version, account_id, occurred_at, actor_kind, actor_id, request_id,
                             source_address_ref, causation_id, data, is_record, ordinality)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS found_count = ROW_COUNT;
    IF found_count < event_count THEN
      DELETE FROM events e WHERE e.position > head;
      results := results || ',["reused"]';
      CONTINUE;
    END IF;
    head := head + event_count;
    results := results || format(',["appended",%s,"%s"]', request.expected + event_count, head);
  END LOOP;
  IF head > head_before THEN
    PERFORM pg_notify('strata_events', head::text);
  END IF;
  RETURN '[' || substr(results, 2) || ']';
END
$function$`;
