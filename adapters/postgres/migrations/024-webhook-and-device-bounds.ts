/**
 * What webhook deliveries of an account may begin in an hour (core/ports/webhook-budgets.ts), pushes that wait until
 * there is room for theirs (core/ports/waiting-pushes.ts), and counts of pending device logins, so that an addition at
 * the bound need not look through all of them.
 *
 * Invariants: who takes a budget holds the account's lock. The counts of device logins change under the lock that all
 * additions take; everybody else only adds a row to device_login_changes, so that no two transactions wait for each
 * other's counts. Instants have the one form whose text sorts as they do.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE webhook_budgets (
      account_id uuid NOT NULL,
      hour text COLLATE "C" NOT NULL,
      taken integer NOT NULL,
      PRIMARY KEY (account_id, hour)
    )`.execute(db);
  await sql`CREATE INDEX webhook_budgets_by_hour ON webhook_budgets (hour)`.execute(db);
  await sql.raw(TAKE_BUDGET).execute(db);
  await sql`
    CREATE TABLE webhook_waiting_pushes (
      id uuid PRIMARY KEY,
      account_id uuid NOT NULL,
      stream text COLLATE "C" NOT NULL,
      revision integer NOT NULL,
      position bigint NOT NULL,
      refs_done integer NOT NULL
    )`.execute(db);
  await sql`CREATE INDEX webhook_waiting_pushes_in_order ON webhook_waiting_pushes (account_id, position)`.execute(db);
  await countDeviceLogins(db);
}

/** Takes from the hours in their order, or nothing. What is older than the first of them is forgotten. */
const TAKE_BUDGET = `
CREATE FUNCTION take_webhook_budget(account uuid, hours text[], wanted integer, per_hour integer)
RETURNS TABLE (hour text, first integer, count integer)
LANGUAGE plpgsql VOLATILE
AS $function$
#variable_conflict use_column
DECLARE
  left_over integer := wanted;
  before integer;
  given integer;
  each_hour text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'take_webhook_budget needs READ COMMITTED';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('strata.webhook_budgets.' || account, 0));
  DELETE FROM webhook_budgets b WHERE b.account_id = account AND b.hour < hours[1];
  IF per_hour::bigint * array_length(hours, 1) - wanted <
    (SELECT coalesce(sum(least(b.taken, per_hour)), 0) FROM webhook_budgets b
     WHERE b.account_id = account AND b.hour = ANY (hours)) THEN
    RETURN;
  END IF;
  FOREACH each_hour IN ARRAY hours LOOP
    EXIT WHEN left_over = 0;
    SELECT coalesce((SELECT b.taken FROM webhook_budgets b WHERE b.account_id = account AND b.hour = each_hour), 0)
      INTO before;
    given := least(left_over, greatest(per_hour - before, 0));
    CONTINUE WHEN given = 0;
    INSERT INTO webhook_budgets AS b (account_id, hour, taken) VALUES (account, each_hour, given)
      ON CONFLICT (account_id, hour) DO UPDATE SET taken = b.taken + given;
    left_over := left_over - given;
    hour := each_hour;
    first := before;
    count := given;
    RETURN NEXT;
  END LOOP;
END
$function$`;

/** A row counts while it is pending; one that expired before the engine came to it stops counting at an addition. */
const COUNTS = `is_counted AND step = 'forget-device' AND NOT is_held`;

/**
 * The order in a network, and that of all. Each is an expression that one index alone has, since a plan that was made
 * while the table was empty stays in use, and must not walk through all rows when it is full.
 */
const AGE = `(expires_at || (id::text COLLATE "C"))`;
const EXPIRY = `(expires_at || '')`;

async function countDeviceLogins(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE device_login_requests ADD COLUMN is_counted boolean NOT NULL DEFAULT true`.execute(db);
  await sql`DROP INDEX device_login_requests_pending`.execute(db);
  await sql
    .raw(`CREATE INDEX device_login_requests_pending ON device_login_requests (network, ${AGE}) WHERE ${COUNTS}`)
    .execute(db);
  await sql
    .raw(`CREATE INDEX device_login_requests_expiring ON device_login_requests (${EXPIRY}) WHERE ${COUNTS}`)
    .execute(db);
  await sql`
    CREATE TABLE device_login_changes (network text COLLATE "C" NOT NULL, change integer NOT NULL)`.execute(db);
  // The row '*' holds the number of all; no network has this name.
  await sql`
    CREATE TABLE device_login_networks (
      network text COLLATE "C" PRIMARY KEY,
      pending integer NOT NULL,
      oldest text COLLATE "C"
    )`.execute(db);
  await sql`
    CREATE INDEX device_login_networks_largest ON device_login_networks (pending DESC, oldest, network)
    WHERE network <> '*'`.execute(db);
  await sql
    .raw(`INSERT INTO device_login_changes SELECT network, 1 FROM device_login_requests WHERE ${COUNTS}`)
    .execute(db);
  for (const text of [NOTE_CHANGE, NOTE_CHANGES, COUNT_CHANGES, ADD_REQUEST]) await sql.raw(text).execute(db);
}

const NOTE_CHANGE = `
CREATE FUNCTION note_device_login_change() RETURNS trigger
LANGUAGE plpgsql
AS $function$
DECLARE
  counted boolean := TG_OP <> 'INSERT' AND OLD.is_counted AND OLD.step = 'forget-device' AND NOT OLD.is_held;
  counts boolean := TG_OP <> 'DELETE' AND NEW.is_counted AND NEW.step = 'forget-device' AND NOT NEW.is_held;
BEGIN
  IF counts AND NOT counted THEN
    INSERT INTO device_login_changes VALUES (NEW.network, 1);
  ELSIF counted AND NOT counts THEN
    INSERT INTO device_login_changes VALUES (OLD.network, -1);
  END IF;
  RETURN NULL;
END
$function$`;

const NOTE_CHANGES = `
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE OF is_counted, step, is_held ON device_login_requests
FOR EACH ROW EXECUTE FUNCTION note_device_login_change()`;

/** Adds the changes to the counts, and returns how many logins are pending. Only under the lock of additions. */
const COUNT_CHANGES = `
CREATE FUNCTION count_device_login_changes() RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $function$
BEGIN
  WITH noted AS (DELETE FROM device_login_changes RETURNING network, change),
  sums AS (
    SELECT n.network, sum(n.change)::integer AS change FROM noted n GROUP BY n.network
    UNION ALL SELECT '*', sum(n.change)::integer FROM noted n HAVING count(*) > 0)
  INSERT INTO device_login_networks AS known (network, pending, oldest)
  SELECT s.network, s.change, (SELECT min(${AGE}) FROM device_login_requests r
    WHERE r.network = s.network AND ${COUNTS})
  FROM sums s
  ON CONFLICT (network) DO UPDATE SET pending = known.pending + excluded.pending, oldest = excluded.oldest;
  DELETE FROM device_login_networks WHERE pending <= 0 AND network <> '*';
  RETURN coalesce((SELECT pending FROM device_login_networks WHERE network = '*'), 0);
END
$function$`;

/**
 * As in 011-device-logins.ts, with counts that are kept. The row that gives way is the oldest of the network with the
 * most pending rows; of several such networks, the one that asked first. A row that is held while this call waits for
 * it stays, and nothing else goes instead of it.
 */
const ADD_REQUEST = `
CREATE OR REPLACE FUNCTION add_device_login_request(request json, pending_max integer, kept_since text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  asked_at text COLLATE "C" := request->>'requested_at';
  pending integer;
  expired integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'add_device_login_request needs READ COMMITTED';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('strata.device_login_requests', 0));
  DELETE FROM device_login_requests WHERE id IN (
    SELECT r.id FROM device_login_requests r WHERE r.expires_at < kept_since ORDER BY r.expires_at LIMIT 10);
  LOOP
    UPDATE device_login_requests SET is_counted = false WHERE id IN (
      SELECT r.id FROM device_login_requests r WHERE ${COUNTS} AND ${EXPIRY} <= asked_at ORDER BY ${EXPIRY} LIMIT 100);
    GET DIAGNOSTICS expired = ROW_COUNT;
    EXIT WHEN expired < 100;
  END LOOP;
  pending := count_device_login_changes();
  WHILE pending >= pending_max LOOP
    DELETE FROM device_login_requests WHERE step = 'forget-device' AND NOT is_held AND id = (
      SELECT r.id FROM device_login_requests r
      WHERE ${COUNTS} AND r.network = (
        SELECT n.network FROM device_login_networks n WHERE n.network <> '*'
        ORDER BY n.pending DESC, n.oldest, n.network LIMIT 1)
      ORDER BY ${AGE} LIMIT 1);
    PERFORM count_device_login_changes();
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
