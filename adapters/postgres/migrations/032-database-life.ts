/**
 * The life of the database, by which a read lease is not removed for a count of renewals from before a crash
 * (docs/read-leases.md).
 *
 * Invariants: the table is unlogged, so that every recovery from a crash empties it. Whoever finds it empty writes a
 * new id. A call runs within one life, since a crash ends all connections. What append_events_leased returns begins as
 * before: servers of an older version go on.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`SELECT current_schema() AS name`.execute(db);
  const schema = sql.id(rows[0]?.name ?? 'public');
  await sql`
    CREATE UNLOGGED TABLE database_life (
      is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
      id bigint NOT NULL,
      written_at timestamptz NOT NULL
    )`.execute(db);
  for (const text of [ENSURE_DATABASE_LIFE, APPEND_EVENTS_LEASED]) await sql.raw(text).execute(db);
  for (const signature of ['ensure_database_life()', 'append_events_leased(json, text)']) {
    const name = sql.raw(signature);
    await sql`ALTER FUNCTION ${name} SECURITY DEFINER SET search_path TO pg_catalog, ${schema}, pg_temp`.execute(db);
    await sql`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`.execute(db);
  }
}

/**
 * Returns the id; null while another call writes it. When the clock was set back to before the id was written, nobody
 * knows how long ago that was: it counts as written now.
 */
const ENSURE_DATABASE_LIFE = `
CREATE FUNCTION ensure_database_life() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  life bigint;
  is_ahead boolean;
BEGIN
  SELECT d.id, d.written_at > clock_timestamp() INTO life, is_ahead FROM database_life d;
  IF NOT FOUND THEN
    INSERT INTO database_life AS d (id, written_at) SELECT floor(random() * 1e15)::bigint, clock_timestamp()
    ON CONFLICT DO NOTHING RETURNING d.id INTO life;
  ELSIF is_ahead THEN
    UPDATE database_life SET written_at = clock_timestamp();
  END IF;
  RETURN life;
END
$function$`;

/**
 * Returns [the result of append_events_locked, the leases as [node, epoch, renewals, "heard", span in ms], the life of
 * the database, or null if no other process holds a lease]. The processes other than \`appender\` that hold leases are
 * told of the log's head and of all leases.
 */
const APPEND_EVENTS_LEASED = `
CREATE OR REPLACE FUNCTION append_events_leased(batch json, appender text) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  results text;
  leases text;
  life bigint;
  head bigint;
BEGIN
  results := append_events_locked(batch);
  SELECT coalesce(json_agg(json_build_array(l.node, l.epoch, l.renewals, l.heard::text, l.span_ms)), '[]')::text INTO leases
  FROM read_leases l;
  PERFORM FROM read_leases l WHERE l.node <> appender LIMIT 1;
  IF FOUND THEN
    life := ensure_database_life();
    SELECT e.position INTO head FROM events e ORDER BY e.position DESC LIMIT 1;
    PERFORM pg_notify('strata_leases',
      format('head %s %s', coalesce(head, 0), CASE WHEN octet_length(leases) < 7900 THEN leases ELSE 'null' END));
  END IF;
  RETURN format('[%s,%s,%s]', results, leases, coalesce(life::text, 'null'));
END
$function$`;
