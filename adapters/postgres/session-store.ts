/** The sessions of browsers on PostgreSQL (core/ports/session-store.ts). */
import type pg from 'pg';
import { type AccountId, timestamp } from '../../core/kernel/ids.ts';
import { PENDING_SIGN_INS_MAX, SESSIONS_MAX } from '../../core/kernel/limits.ts';
import { vaultRef } from '../../core/kernel/vault-ref.ts';
import { type SessionStore, SessionStoreError, type StoredSession } from '../../core/ports/session-store.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(unavailable(SessionStoreError, 'session-store-unavailable'));

interface Row {
  readonly id_hash: string;
  readonly handle: string;
  readonly account_id: AccountId;
  readonly epoch: number;
  readonly status: StoredSession['status'];
  readonly kept: Readonly<Record<string, string>>;
  readonly created_at: string;
  readonly seen_at: string;
  readonly expires_at: string;
  readonly address_ref: string | null;
  readonly agent_ref: string | null;
}

const ADD = `
  INSERT INTO web_sessions (id_hash, handle, account_id, epoch, status, kept, created_at, seen_at, expires_at,
    address_ref, agent_ref)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`;

/** Two statements, so that neither of two concurrent requests takes back what the other changed. */
const KEEP = 'UPDATE web_sessions SET kept = $2 WHERE id_hash = $1';
const NOTE_SEEN = `
  UPDATE web_sessions SET seen_at = $2, expires_at = $3, address_ref = $4, agent_ref = $5 WHERE id_hash = $1`;

const REMOVE_OLDEST = `
  DELETE FROM web_sessions WHERE id_hash IN (
    SELECT id_hash FROM web_sessions WHERE account_id = $1 AND status = $2
    ORDER BY created_at DESC, id_hash OFFSET $3)`;

const LIST = `
  SELECT * FROM web_sessions WHERE account_id = $1 AND status = 'signed-in' AND expires_at > $2
  ORDER BY seen_at DESC, id_hash LIMIT ${SESSIONS_MAX}`;

const REMOVE_EXPIRED = `
  DELETE FROM web_sessions WHERE id_hash IN (
    SELECT id_hash FROM web_sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresSessionStore(pool: pg.Pool): SessionStore {
  return {
    async add(session) {
      await query(pool, ADD, [
        session.idHash,
        session.handle,
        session.account,
        session.epoch,
        session.status,
        JSON.stringify(session.kept),
        session.createdAt,
        session.seenAt,
        session.expiresAt,
        session.addressRef,
        session.agentRef,
      ]);
      const max = session.status === 'pending' ? PENDING_SIGN_INS_MAX : SESSIONS_MAX;
      await query(pool, REMOVE_OLDEST, [session.account, session.status, max]);
    },
    async keep(idHash, kept) {
      await query(pool, KEEP, [idHash, JSON.stringify(kept)]);
    },
    async noteSeen({ idHash, seenAt, expiresAt, addressRef, agentRef }) {
      await query(pool, NOTE_SEEN, [idHash, seenAt, expiresAt, addressRef, agentRef]);
    },
    async find(idHash, now) {
      const text = 'SELECT * FROM web_sessions WHERE id_hash = $1 AND expires_at > $2';
      const [row] = (await query<Row>(pool, text, [idHash, now])).rows;
      return row === undefined ? null : toSession(row);
    },
    async remove(idHash) {
      await query(pool, 'DELETE FROM web_sessions WHERE id_hash = $1', [idHash]);
    },
    async list(account, now) {
      return (await query<Row>(pool, LIST, [account, now])).rows.map(toSession);
    },
    async revoke(account, handle) {
      const text = 'DELETE FROM web_sessions WHERE account_id = $1 AND handle = $2';
      return (await query(pool, text, [account, handle])).rowCount === 1;
    },
    async revokeOthers(account, handle) {
      const text = 'DELETE FROM web_sessions WHERE account_id = $1 AND handle <> $2 RETURNING handle';
      return (await query<Pick<Row, 'handle'>>(pool, text, [account, handle])).rows.map((row) => row.handle);
    },
    async forgetAccount(account) {
      await query(pool, 'DELETE FROM web_sessions WHERE account_id = $1', [account]);
    },
    async removeExpired(now, limit) {
      return (await query(pool, REMOVE_EXPIRED, [now, limit])).rowCount ?? 0;
    },
  };
}

function toSession(row: Row): StoredSession {
  return {
    idHash: row.id_hash,
    handle: row.handle,
    account: row.account_id,
    epoch: row.epoch,
    status: row.status,
    kept: row.kept,
    createdAt: timestamp(row.created_at),
    seenAt: timestamp(row.seen_at),
    expiresAt: timestamp(row.expires_at),
    addressRef: row.address_ref === null ? null : vaultRef(row.address_ref),
    agentRef: row.agent_ref === null ? null : vaultRef(row.agent_ref),
  };
}
