/**
 * The requests of device logins (core/ports/device-login-requests.ts). They replace a read model, which is dropped.
 *
 * Invariants: host names are stored as bytes, since they may hold characters that PostgreSQL's text cannot. At most
 * `pending_max` rows are pending: each addition counts under a lock that all additions take, in statements that begin
 * after it was taken.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Instants have the one form whose text sorts as they do. `told` names the engine that knows of the row.
  await sql`
    CREATE TABLE device_login_requests (
      id uuid PRIMARY KEY,
      secret_hash text NOT NULL,
      network text COLLATE "C" NOT NULL,
      requested_at text COLLATE "C" NOT NULL,
      expires_at text COLLATE "C" NOT NULL,
      user_code text,
      hostname bytea,
      address text,
      is_held boolean NOT NULL DEFAULT false,
      step text NOT NULL,
      due_at text COLLATE "C" NOT NULL,
      revision integer NOT NULL DEFAULT 0,
      told text
    )`.execute(db);
  await sql`CREATE INDEX device_login_requests_due ON device_login_requests (due_at, id)`.execute(db);
  await sql`CREATE INDEX device_login_requests_by_age ON device_login_requests (expires_at)`.execute(db);
  await sql`
    CREATE INDEX device_login_requests_by_code ON device_login_requests (user_code)
    WHERE user_code IS NOT NULL`.execute(db);
  await sql`
    CREATE INDEX device_login_requests_pending ON device_login_requests (network, expires_at)
    WHERE step = 'forget-device' AND NOT is_held`.execute(db);
  await sql.raw(ADD_REQUEST).execute(db);
  await sql.raw(DROP_READ_MODEL).execute(db);
}

/**
 * Takes {id, secret_hash, network, requested_at, expires_at, user_code, hostname (base64), address}. The row that gives
 * way is the oldest of the network with the most pending rows; of several such networks, the one that asked first. A
 * row that is held while this call waits for it stays, and nothing else goes instead of it.
 */
const ADD_REQUEST = `
CREATE FUNCTION add_device_login_request(request json, pending_max integer, kept_since text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  asked_at text COLLATE "C" := request->>'requested_at';
  pending integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'add_device_login_request needs READ COMMITTED';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('strata.device_login_requests', 0));
  DELETE FROM device_login_requests WHERE id IN (
    SELECT r.id FROM device_login_requests r WHERE r.expires_at < kept_since ORDER BY r.expires_at LIMIT 10);
  SELECT count(*) INTO pending FROM device_login_requests r
  WHERE r.step = 'forget-device' AND NOT r.is_held AND r.expires_at > asked_at;
  WHILE pending >= pending_max LOOP
    DELETE FROM device_login_requests WHERE step = 'forget-device' AND NOT is_held AND id = (
      SELECT r.id FROM device_login_requests r
      WHERE r.step = 'forget-device' AND NOT r.is_held AND r.expires_at > asked_at AND r.network = (
        SELECT n.network FROM device_login_requests n
        WHERE n.step = 'forget-device' AND NOT n.is_held AND n.expires_at > asked_at
        GROUP BY n.network ORDER BY count(*) DESC, min(n.expires_at), n.network LIMIT 1)
      ORDER BY r.expires_at, r.id LIMIT 1);
    -- Also when none was deleted: the row was held meanwhile, and counts no more.
    pending := pending - 1;
  END LOOP;
  INSERT INTO device_login_requests
    (id, secret_hash, network, requested_at, expires_at, user_code, hostname, address, step, due_at)
  VALUES ((request->>'id')::uuid, request->>'secret_hash', request->>'network', asked_at, request->>'expires_at',
    request->>'user_code', decode(request->>'hostname', 'base64'), request->>'address', 'forget-device',
    request->>'expires_at');
END
$function$`;

/** The read model listed pending logins by their code. A database that never ran an older version has none. */
const DROP_READ_MODEL = `
DO $$
DECLARE
  dropped text;
BEGIN
  IF to_regclass('read_models.checkpoints') IS NULL THEN
    RETURN;
  END IF;
  FOR dropped IN SELECT unnest(tables) FROM read_models.checkpoints WHERE name = 'device_sessions' LOOP
    EXECUTE 'DROP TABLE IF EXISTS ' || dropped;
  END LOOP;
  DELETE FROM read_models.checkpoints WHERE name = 'device_sessions';
  DELETE FROM read_models.parked WHERE name = 'device_sessions';
  DELETE FROM read_models.projections WHERE name = 'device_sessions';
END
$$`;
