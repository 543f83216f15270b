/**
 * The event log's table and append_events, the only function that writes it.
 *
 * Invariants (docs/event-log.md):
 * - append_events assigns positions under a lock, which PostgreSQL releases only after the commit is visible. So
 *   position order is commit order, without gaps, and a reader that saw n has seen everything up to n;
 * - no row is ever updated: the head and the revisions are read from indexes, so a long snapshot costs appends nothing;
 * - a request that conflicts gets a line of the result, not an exception, and does not fail the others of its batch;
 * - a transaction sees what others committed while it waited for the lock: it is READ COMMITTED, and each statement of
 *   a plpgsql function has its own snapshot.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE events (
      position bigint PRIMARY KEY,
      stream text COLLATE "C" NOT NULL,
      revision integer NOT NULL,
      event_id uuid NOT NULL,
      type text NOT NULL,
      version integer NOT NULL,
      account_id uuid,
      occurred_at text NOT NULL,
      actor_kind text NOT NULL,
      actor_id text NOT NULL,
      request_id text NOT NULL,
      source_address_ref text,
      causation_id uuid,
      data text NOT NULL,
      CONSTRAINT events_stream_revision UNIQUE (stream, revision),
      CONSTRAINT events_event_id UNIQUE (event_id)
    )`.execute(db);
  await sql`
    COMMENT ON TABLE events IS 'The event log. Written by append_events alone; data is canonical JSON (RFC 8785).'
  `.execute(db);
  await sql.raw(APPEND_EVENTS).execute(db);
}

/**
 * Takes a JSON array of {stream, expected, guards: [{stream, revision}], events: [rows of events]}, where the revision
 * -1 means "no event". Returns a JSON array with one line for each request, in order:
 * ["appended", last revision, "last position"] · ["conflict", n, actual revision], n = 0 for the stream itself, else
 * the guard's number from 1 · ["reused"], when an id belongs to another event.
 */
const APPEND_EVENTS = `
CREATE FUNCTION append_events(batch json) RETURNS text
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
             n.request_id, n.source_address_ref, n.causation_id, n.data);
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
    INSERT INTO events
    SELECT head + n.ordinality, request.stream, actual + n.ordinality, n.event_id, n.type, n.version, n.account_id,
           n.occurred_at, n.actor_kind, n.actor_id, n.request_id, n.source_address_ref, n.causation_id, n.data
    FROM json_populate_recordset(NULL::events, request.events) WITH ORDINALITY AS n
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
