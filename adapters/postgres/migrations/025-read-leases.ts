/**
 * Read leases: who may answer from memory without asking the log (docs/read-leases.md).
 *
 * Invariants: an append sees every lease that was inserted before it committed, since both take the lock of the
 * appends. A server of an older version knows no leases and calls append_events: that call removes them all, and
 * commits after each of them has ended.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`SELECT current_schema() AS name`.execute(db);
  const schema = sql.id(rows[0]?.name ?? 'public');
  await sql`
    CREATE TABLE read_leases (
      node text PRIMARY KEY CHECK (octet_length(node) <= 64),
      epoch bigint NOT NULL,
      renewals bigint NOT NULL DEFAULT 0,
      heard bigint NOT NULL DEFAULT 0,
      span_ms integer NOT NULL CHECK (span_ms BETWEEN 1 AND 10000)
    )`.execute(db);
  await sql`ALTER FUNCTION append_events(json) RENAME TO append_events_locked`.execute(db);
  for (const text of [APPEND_EVENTS, APPEND_EVENTS_LEASED, TAKE_READ_LEASE]) await sql.raw(text).execute(db);
  for (const signature of [
    'append_events(json)',
    'append_events_leased(json, text)',
    'take_read_lease(text, integer)',
  ]) {
    const name = sql.raw(signature);
    await sql`ALTER FUNCTION ${name} SECURITY DEFINER SET search_path TO pg_catalog, ${schema}, pg_temp`.execute(db);
    await sql`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`.execute(db);
  }
  await sql.raw(HAND_OVER).execute(db);
}

/** Who might call append_events may call the new one, which servers that run already do, and no longer the old one. */
const HAND_OVER = `
DO $do$
DECLARE
  caller record;
BEGIN
  FOR caller IN
    SELECT a.grantee::regrole AS name
    FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.oid = 'append_events_locked(json)'::regprocedure AND a.grantee <> 0 AND a.grantee <> p.proowner
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION append_events(json) TO %s', caller.name);
    EXECUTE format('REVOKE ALL ON FUNCTION append_events_locked(json) FROM %s', caller.name);
  END LOOP;
END
$do$`;

const APPEND_EVENTS = `
CREATE FUNCTION append_events(batch json) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  results text;
  longest_ms integer;
BEGIN
  results := append_events_locked(batch);
  WITH removed AS (DELETE FROM read_leases RETURNING span_ms) SELECT max(span_ms) INTO longest_ms FROM removed;
  IF longest_ms IS NOT NULL THEN
    PERFORM pg_sleep(longest_ms / 1000.0);
  END IF;
  RETURN results;
END
$function$`;

/**
 * Returns [the result of append_events_locked, the leases as [node, epoch, renewals, "heard", span in ms]]. The
 * processes other than \`appender\` that hold leases are told of the log's head and of all leases.
 */
const APPEND_EVENTS_LEASED = `
CREATE FUNCTION append_events_leased(batch json, appender text) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  results text;
  leases text;
  head bigint;
BEGIN
  results := append_events_locked(batch);
  SELECT coalesce(json_agg(json_build_array(l.node, l.epoch, l.renewals, l.heard::text, l.span_ms)), '[]')::text INTO leases
  FROM read_leases l;
  PERFORM FROM read_leases l WHERE l.node <> appender LIMIT 1;
  IF FOUND THEN
    SELECT e.position INTO head FROM events e ORDER BY e.position DESC LIMIT 1;
    PERFORM pg_notify('strata_leases',
      format('head %s %s', coalesce(head, 0), CASE WHEN octet_length(leases) < 7900 THEN leases ELSE 'null' END));
  END IF;
  RETURN format('[%s,%s]', results, leases);
END
$function$`;

const TAKE_READ_LEASE = `
CREATE FUNCTION take_read_lease(holder text, lasts_ms integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  taken bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(8317987319222330741);
  INSERT INTO read_leases AS l (node, epoch, span_ms) VALUES (holder, floor(random() * 1e15)::bigint, lasts_ms)
  ON CONFLICT (node) DO UPDATE SET epoch = excluded.epoch, renewals = 0, heard = 0, span_ms = excluded.span_ms
  RETURNING l.epoch INTO taken;
  RETURN taken;
END
$function$`;
