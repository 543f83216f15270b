/**
 * The two roles of the database: the owner migrates and owns the log; the role that serves reads it and appends to it.
 *
 * Invariants: the role that serves can change no stored event, whatever statement it sends. It reads `events` and
 * calls append_events and prune_stream, which run as their owner. Each start of a server that knows the owner compares
 * the rights with those below, grants or takes away what differs, and refuses a role that could do more.
 */
import type pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import { type Migrated, migrate } from './migrate.ts';
import { connectClient } from './pool.ts';

export class DatabaseRoleError extends Error {
  override readonly name = 'DatabaseRoleError';
}

const READ = ['SELECT'];
const ADD = ['SELECT', 'INSERT'];
const CHANGE = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

/** What the role that serves may do with each table outside the read models. A new table gets its line here. */
const TABLE_RIGHTS: Readonly<Record<string, readonly string[]>> = {
  events: READ,
  log_migrations: READ,
  log_migrations_lock: READ,
  log_migration_kinds: READ,
  // Auditors need every key that has ever signed.
  log_keys: ADD,
  // Its rows are written by ensure_database_life.
  database_life: READ,
  bucket_findings: CHANGE,
  device_login_changes: CHANGE,
  device_login_networks: CHANGE,
  // Only a rotation writes it, as the owner.
  master_keys: READ,
  device_login_requests: CHANGE,
  layer_compactions: CHANGE,
  manifest_writes: CHANGE,
  passkey_challenges: CHANGE,
  policy_marks: CHANGE,
  rate_limits: CHANGE,
  read_leases: CHANGE,
  rate_sums: CHANGE,
  refused_exchanges: CHANGE,
  running_processes: CHANGE,
  signing_keys: CHANGE,
  snapshots: CHANGE,
  token_last_use: CHANGE,
  unfinished_import: CHANGE,
  vault_keys: CHANGE,
  vault_read_mark: CHANGE,
  vault_records: CHANGE,
  verification_walks: CHANGE,
  web_sessions: CHANGE,
  webhook_answers: CHANGE,
  webhook_body_sums: CHANGE,
  webhook_budgets: CHANGE,
  webhook_notified_pushes: CHANGE,
  webhook_payloads: CHANGE,
  webhook_waiting_deliveries: CHANGE,
  webhook_waiting_pushes: CHANGE,
  written_events: CHANGE,
};
const FUNCTIONS = [
  'append_events(json)',
  'append_events_leased(json, text)',
  'take_read_lease(text, integer)',
  'ensure_database_life()',
  'prune_stream(text, integer, text)',
  'add_device_login_request(json, integer, text)',
  'count_device_login_changes()',
  'take_webhook_budget(uuid, text[], integer, integer)',
];

/** Servers that start at the same time would change the same rows of the catalogue. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('strata.roles', 0))`;

export interface DatabaseRoles {
  /** Connects as the role that serves. */
  readonly connectionString: string;
  /** Connects as the owner. Null: nobody named it, so that `connectionString` migrates, if it may. */
  readonly ownerConnectionString: string | null;
  readonly log: Log;
}

/**
 * Migrates the database and gives the role that serves its rights. Throws `DatabaseRoleError`, whose message says what
 * to do, when the roles are not as they must be, or when nobody may migrate.
 */
export async function prepareDatabase({ connectionString, ownerConnectionString, log }: DatabaseRoles): Promise<void> {
  if (ownerConnectionString === null) {
    const hint = 'Set STRATA_DATABASE_OWNER_URL to the owner of the database, or start once a server that knows it';
    await migrateAs(connectionString, log, `The role of STRATA_DATABASE_URL cannot migrate the database. ${hint}`);
    return;
  }
  const serving = await connectClient({ connectionString, log });
  try {
    const { rows } = await serving.query<Served>('SELECT session_user AS role, current_database() AS database');
    const migrated = await migrateAs(
      ownerConnectionString,
      log,
      'The role of STRATA_DATABASE_OWNER_URL does not own the database',
    );
    for (const served of rows) await admit(ownerConnectionString, served, migrated, log);
    // Databases of the same name may lie on two servers.
    const reached = await serving.query(`SELECT WHERE to_regprocedure('append_events(json)') IS NOT NULL`);
    if (reached.rowCount === 0) throw anotherDatabase();
  } finally {
    await serving.end();
  }
}

/**
 * Returns what to do about a role that can change events; null if it cannot. `pool` connects as the role that serves,
 * on a migrated database.
 */
export async function tooMighty(pool: pg.Pool): Promise<string | null> {
  const { rows } = await pool.query<{ role: string; making: string }>(
    `SELECT session_user AS role, format('CREATE ROLE strata_server LOGIN PASSWORD ''choose one''; ` +
      `GRANT strata_server TO %I;', session_user) AS making
     FROM pg_class c WHERE c.oid = 'events'::regclass
       AND (pg_has_role(c.relowner, 'MEMBER') OR has_any_column_privilege(c.oid, 'UPDATE')
         OR has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE'))`,
  );
  const [found] = rows;
  if (found === undefined) return null;
  return (
    `The role ${found.role} of STRATA_DATABASE_URL can change and remove events. To forbid that, run as an ` +
    `administrator of the database: ${found.making} Then set STRATA_DATABASE_OWNER_URL to what STRATA_DATABASE_URL ` +
    'is now, and STRATA_DATABASE_URL to the role strata_server (docs/operating.md, The role that serves)'
  );
}

interface Served {
  readonly role: string;
  readonly database: string;
}

/** `insufficient_privilege`. */
const NOT_ALLOWED = '42501';

async function migrateAs(connectionString: string, log: Log, refusal: string): Promise<Migrated> {
  try {
    return await migrate({ connectionString, log });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === NOT_ALLOWED)) throw error;
    throw new DatabaseRoleError(`${refusal}: ${error.message}`, { cause: error });
  }
}

/** In one transaction: a server that dies before its end leaves everything as it was. */
async function admit(
  ownerConnectionString: string,
  { role, database }: Served,
  { isNew, later }: Migrated,
  log: Log,
): Promise<void> {
  const owner = await connectClient({ connectionString: ownerConnectionString, log });
  try {
    await owner.query('BEGIN');
    await owner.query(LOCK);
    await refuseUnfitRole(owner, role, database);
    // A newer version may have given it more on other tables than this one knows.
    const tables = later.length === 0 ? TABLE_RIGHTS : { events: READ };
    const changed = [
      await grantTables(owner, role, tables),
      await grantFunctions(owner, role),
      await grantModels(owner, role),
    ];
    await owner.query('COMMIT');
    const gave = 'Gave the role that serves its rights on the database';
    if (isNew) log.debug({ role }, gave);
    else if (changed.includes(true)) log.info({ role }, gave);
  } finally {
    await owner.end();
  }
}

interface RoleFacts {
  readonly fault: string | null;
}

/**
 * Whether the role has another way to the events than its rights on the table: as superuser, as a member of a role that
 * owns the table, its schema or the database, or by programs that it may run on the server.
 */
const FAULT = `
  SELECT CASE
    WHEN current_database() <> $2 THEN 'another database'
    WHEN r.oid IS NULL THEN 'another database'
    WHEN r.rolsuper THEN format('The role %I is a superuser', r.rolname)
    WHEN r.rolcreaterole THEN format('The role %I may make roles: ALTER ROLE %1$I NOCREATEROLE', r.rolname)
    WHEN pg_has_role(r.oid, c.relowner, 'MEMBER') THEN format(
      'The role %I owns the table events, or is a member of its owner %I', r.rolname, pg_get_userbyid(c.relowner))
    WHEN pg_has_role(r.oid, current_user, 'MEMBER') THEN format(
      'The role %I is a member of the owner''s role %I', r.rolname, current_user)
    WHEN pg_has_role(r.oid, d.datdba, 'MEMBER') THEN format('The role %I owns the database', r.rolname)
    WHEN pg_has_role(r.oid, n.nspowner, 'MEMBER') THEN format('The role %I owns the schema %I', r.rolname, n.nspname)
    WHEN has_schema_privilege(r.oid, n.oid, 'CREATE') THEN format(
      'The role %I may make tables beside the log: REVOKE CREATE ON SCHEMA %I FROM %1$I, PUBLIC', r.rolname, n.nspname)
    WHEN has_database_privilege(r.oid, d.oid, 'CREATE') THEN format(
      'The role %I may make schemas: REVOKE CREATE ON DATABASE %I FROM %1$I, PUBLIC', r.rolname, d.datname)
    WHEN pg_has_role(r.oid, 'pg_execute_server_program', 'MEMBER')
      OR pg_has_role(r.oid, 'pg_write_server_files', 'MEMBER')
      THEN format('The role %I may run programs or write files on the database''s machine', r.rolname)
    WHEN NOT pg_has_role(current_user, r.oid, 'USAGE') OR NOT pg_has_role(current_user, r.oid, 'SET') THEN format(
      'The owner cannot hand over the read models: GRANT %I TO %I', r.rolname, current_user)
  END AS fault
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_database d ON d.datname = current_database()
  LEFT JOIN pg_roles r ON r.rolname = $1
  WHERE c.oid = 'events'::regclass`;

async function refuseUnfitRole(owner: pg.ClientBase, role: string, database: string): Promise<void> {
  const fault = (await owner.query<RoleFacts>(FAULT, [role, database])).rows[0]?.fault ?? null;
  if (fault === null) return;
  if (fault === 'another database') throw anotherDatabase();
  throw unfit(fault);
}

/** Differences of the rights from TABLE_RIGHTS, by table. */
const DIFFERING_TABLES = `
  SELECT w.name, w.rights, array_agg(p.name) AS differing
  FROM json_to_recordset($2) AS w (name text, rights text[])
  CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p (name)
  WHERE CASE
    WHEN p.name = ANY (w.rights) THEN NOT has_table_privilege($1::name, w.name, p.name)
    WHEN p.name IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') THEN has_any_column_privilege($1::name, w.name, p.name)
    ELSE has_table_privilege($1::name, w.name, p.name)
  END
  GROUP BY w.name, w.rights`;

async function grantTables(owner: pg.ClientBase, role: string, tables: typeof TABLE_RIGHTS): Promise<boolean> {
  const wanted = Object.entries(tables).map(([name, rights]) => ({ name, rights }));
  const differing = async () => {
    const values = [role, JSON.stringify(wanted)];
    const { rows } = await owner.query<{ name: string; rights: string[]; differing: string[] }>(
      DIFFERING_TABLES,
      values,
    );
    return rows;
  };
  const before = await differing();
  for (const { name, rights } of before) {
    const table = owner.escapeIdentifier(name);
    await owner.query(`REVOKE ALL ON ${table} FROM ${owner.escapeIdentifier(role)}`);
    await owner.query(`GRANT ${rights.join(', ')} ON ${table} TO ${owner.escapeIdentifier(role)}`);
  }
  const [left] = before.length === 0 ? [] : await differing();
  if (left !== undefined) {
    throw unfit(`The role ${role} has ${left.differing.join(', ')} on ${left.name}, by PUBLIC or by another role`);
  }
  return before.length > 0;
}

/** A database that was restored without its rights lets everybody call them. */
async function grantFunctions(owner: pg.ClientBase, role: string): Promise<boolean> {
  const { rows } = await owner.query<{ name: string }>(
    `SELECT name FROM unnest($2::text[]) AS name
     WHERE NOT has_function_privilege($1::name, name, 'EXECUTE') OR has_function_privilege('public', name, 'EXECUTE')`,
    [role, FUNCTIONS],
  );
  for (const { name } of rows) {
    await owner.query(`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`);
    await owner.query(`GRANT EXECUTE ON FUNCTION ${name} TO ${owner.escapeIdentifier(role)}`);
  }
  return rows.length > 0;
}

/** The role that serves makes and drops the tables of the read models, which follow from the log. */
async function grantModels(owner: pg.ClientBase, role: string): Promise<boolean> {
  const grantee = owner.escapeIdentifier(role);
  const { rows } = await owner.query<{ ready: boolean; tables: string[] }>(
    `SELECT coalesce(has_schema_privilege($1::name, to_regnamespace('read_models'), 'CREATE')
         AND has_schema_privilege($1::name, to_regnamespace('read_models'), 'USAGE'), false) AS ready,
       ARRAY(SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
         WHERE schemaname = 'read_models' AND tableowner <> $1::name) AS tables`,
    [role],
  );
  const { ready, tables } = rows[0] ?? { ready: false, tables: [] };
  if (!ready) {
    await owner.query('CREATE SCHEMA IF NOT EXISTS read_models');
    await owner.query(`GRANT CREATE, USAGE ON SCHEMA read_models TO ${grantee}`);
  }
  for (const table of tables) await owner.query(`ALTER TABLE ${table} OWNER TO ${grantee}`);
  return !ready || tables.length > 0;
}

function unfit(fault: string): DatabaseRoleError {
  return new DatabaseRoleError(
    `STRATA_DATABASE_URL must name a role that can only append to the log (docs/operating.md, The role that serves). ` +
      fault,
  );
}

function anotherDatabase(): DatabaseRoleError {
  return new DatabaseRoleError('STRATA_DATABASE_URL and STRATA_DATABASE_OWNER_URL do not name the same database');
}
