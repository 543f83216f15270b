/** The bodies of deliveries on PostgreSQL (core/ports/delivery-store.ts), and the checkpoints of policies. */
import type pg from 'pg';
import type { EventId, WebhookDeliveryId } from '../../core/kernel/ids.ts';
import {
  type BodyKind,
  type BodySums,
  type DeliveryStore,
  DeliveryStoreError,
  type KeptBody,
} from '../../core/ports/delivery-store.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import { queryReporting, unavailable } from './outages.ts';
import { READ_MARK_COLUMNS, type ReadMarkRow, readMarkValues, toReadMark } from './read-mark-rows.ts';

const query = queryReporting(unavailable(DeliveryStoreError, 'delivery-store-unavailable'));

/**
 * A second statement reads the digests: this one cannot see a row that another transaction has stored since it began.
 */
const PUT_PAYLOADS = `
  INSERT INTO webhook_payloads (event_id, account_id, body, sha256, stored_at)
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::text[], $5::timestamptz[])
  ON CONFLICT (event_id) DO NOTHING`;

const PUT_ANSWER = `
  WITH earlier AS (
    DELETE FROM webhook_answers WHERE delivery_id = $1 AND (series, attempt) < ($2::integer, $3::integer))
  INSERT INTO webhook_answers (delivery_id, series, attempt, account_id, event_id, body, stored_at)
  SELECT $1::uuid, $2::integer, $3::integer, $4::uuid, $5::uuid, $6::bytea, $7::timestamptz
  WHERE octet_length($6::bytea) > 0 AND NOT EXISTS (
    SELECT FROM webhook_answers later WHERE later.delivery_id = $1 AND (later.series, later.attempt) > ($2, $3))
  ON CONFLICT (delivery_id, series, attempt) DO UPDATE SET body = excluded.body, stored_at = excluded.stored_at`;

const ANSWERS = `
  SELECT delivery_id, body FROM webhook_answers
  JOIN unnest($1::uuid[], $2::integer[], $3::integer[]) AS requested (delivery_id, series, attempt)
  USING (delivery_id, series, attempt)`;

const REMOVE_PAYLOADS = `
  DELETE FROM webhook_payloads WHERE event_id IN (
    SELECT event_id FROM webhook_payloads WHERE stored_at < $1::timestamptz ORDER BY stored_at LIMIT $2)`;
const REMOVE_ANSWERS = `
  DELETE FROM webhook_answers WHERE (delivery_id, series, attempt) IN (
    SELECT delivery_id, series, attempt FROM webhook_answers WHERE stored_at < $1::timestamptz
    ORDER BY stored_at LIMIT $2)`;

const BEYOND = `
  SELECT account_id AS account, payload_bytes::float8 AS "payloadBytes", answer_bytes::float8 AS "answerBytes"
  FROM webhook_body_sums WHERE payload_bytes > $1 OR answer_bytes > $2`;

const KEPT = `octet_length(body) + 256 AS bytes,
  to_char(stored_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "storedAt"`;

const OLDEST: Readonly<Record<BodyKind, string>> = {
  payload: `SELECT event_id AS "eventId", NULL AS delivery, ${KEPT} FROM webhook_payloads
    WHERE account_id = $1 ORDER BY webhook_payloads.stored_at, event_id OFFSET $2 LIMIT $3`,
  answer: `SELECT event_id AS "eventId", delivery_id AS delivery, ${KEPT} FROM webhook_answers
    WHERE account_id = $1 ORDER BY webhook_answers.stored_at, delivery_id OFFSET $2 LIMIT $3`,
};

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresDeliveryStore(pool: pg.Pool): DeliveryStore {
  return {
    async putPayloads(payloads) {
      const ids = payloads.map(({ eventId }) => eventId);
      await query(pool, PUT_PAYLOADS, [
        ids,
        payloads.map(({ account }) => account),
        payloads.map(({ body }) => Buffer.from(body, 'utf8')),
        payloads.map(({ sha256 }) => sha256),
        payloads.map(({ storedAt }) => storedAt),
      ]);
      const text = 'SELECT event_id, sha256 FROM webhook_payloads WHERE event_id = ANY ($1::uuid[])';
      const { rows } = await query<{ event_id: EventId; sha256: string }>(pool, text, [ids]);
      const storedDigests = new Map(rows.map((row) => [row.event_id, row.sha256]));
      return ids.map((id) => {
        const sha256 = storedDigests.get(id);
        if (sha256 === undefined) {
          throw new DeliveryStoreError(
            'delivery-store-unavailable',
            `The payload of ${id} was removed as it was stored`,
          );
        }
        return sha256;
      });
    },
    async payloads(events) {
      const text = 'SELECT event_id, body FROM webhook_payloads WHERE event_id = ANY ($1::uuid[])';
      const { rows } = await query<{ event_id: EventId; body: Buffer }>(pool, text, [events]);
      return new Map(rows.map(({ event_id, body }) => [event_id, body.toString('utf8')]));
    },
    async putAnswer({ delivery, series, attempt, account, eventId, body, storedAt }) {
      await query(pool, PUT_ANSWER, [delivery, series, attempt, account, eventId, Buffer.from(body), storedAt]);
    },
    async answers(attempts) {
      const { rows } = await query<{ delivery_id: WebhookDeliveryId; body: Buffer }>(pool, ANSWERS, [
        attempts.map(({ delivery }) => delivery),
        attempts.map(({ series }) => series),
        attempts.map(({ attempt }) => attempt),
      ]);
      return new Map(rows.map(({ delivery_id, body }) => [delivery_id, body]));
    },
    async isEmpty() {
      const text = '(SELECT FROM webhook_payloads LIMIT 1) UNION ALL (SELECT FROM webhook_answers LIMIT 1)';
      return (await query(pool, text, [])).rowCount === 0;
    },
    async forgetAccount(account) {
      await query(pool, 'DELETE FROM webhook_payloads WHERE account_id = $1', [account]);
      await query(pool, 'DELETE FROM webhook_answers WHERE account_id = $1', [account]);
    },
    async removeBefore(at, limit) {
      const payloads = await query(pool, REMOVE_PAYLOADS, [at, limit]);
      const answers = await query(pool, REMOVE_ANSWERS, [at, limit]);
      return (payloads.rowCount ?? 0) + (answers.rowCount ?? 0);
    },
    async accountsBeyond({ payloadBytes, answerBytes }) {
      return (await query<BodySums>(pool, BEYOND, [payloadBytes, answerBytes])).rows;
    },
    async oldest(account, kind, skip, limit) {
      return (await query<KeptBody>(pool, OLDEST[kind], [account, skip, limit])).rows;
    },
    async remove(events, deliveries) {
      const payloads = await query(pool, 'DELETE FROM webhook_payloads WHERE event_id = ANY ($1::uuid[])', [events]);
      const text = 'DELETE FROM webhook_answers WHERE delivery_id = ANY ($1::uuid[])';
      return (payloads.rowCount ?? 0) + ((await query(pool, text, [deliveries])).rowCount ?? 0);
    },
  };
}

const SAVE_MARK = `
  INSERT INTO policy_marks (policy, ${READ_MARK_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (policy) DO UPDATE SET position = excluded.position, stream = excluded.stream,
    revision = excluded.revision, event_id = excluded.event_id, event_position = excluded.event_position`;

export function createPostgresPolicyMarks(pool: pg.Pool): PolicyMarks {
  return {
    async read(policy) {
      const text = `SELECT ${READ_MARK_COLUMNS} FROM policy_marks WHERE policy = $1`;
      const { rows } = await query<ReadMarkRow>(pool, text, [policy]);
      return toReadMark(rows[0]);
    },
    async save(policy, mark) {
      await query(pool, SAVE_MARK, [policy, ...readMarkValues(mark)]);
    },
  };
}
