/**
 * The transfer that no `UsageRecorded` sums yet, for the models that count it: usage and its ledger.
 *
 * Invariants: a `UsageRecorded` takes the place of what its account appended before it and up to its day, so the rows
 * are the same when those events are pruned, and whatever the batches. A stream that was parked may come after the
 * event that sums it.
 */
import { readEvent } from '../core/kernel/decider.ts';
import type { RecordedEvent } from '../core/kernel/envelope.ts';
import { transferEventKinds, usageEventKinds } from '../core/usage/events.ts';
import type { ListStatement, ProjectionTable } from './runner/projection.ts';

/**
 * A row for each event that is not summed. The days are `YYYY-MM-DD`: of the append, and on which the bytes were sent.
 */
export function minutesTable(name: string): ProjectionTable {
  return {
    name,
    key: ['event_id'],
    compare: 'exact',
    create: (table) => [
      `CREATE TABLE ${table} (
        event_id uuid PRIMARY KEY,
        account_id uuid NOT NULL,
        appended_on text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        sent_bytes bigint NOT NULL,
        received_bytes bigint NOT NULL)`,
      `CREATE INDEX ON ${table} (account_id) INCLUDE (day, sent_bytes, received_bytes)`,
    ],
  };
}

/** The day of each account's last `UsageRecorded`, and its place in the log. */
export function recordedTable(name: string): ProjectionTable {
  return {
    name,
    key: ['account_id'],
    compare: 'exact',
    create: (table) => [
      `CREATE TABLE ${table} (
        account_id uuid PRIMARY KEY,
        through text COLLATE "C" NOT NULL,
        position bigint NOT NULL)`,
    ],
  };
}

interface MinuteRow {
  readonly event_id: string;
  readonly account_id: string;
  readonly appended_on: string;
  readonly day: string;
  readonly sent_bytes: number;
  readonly received_bytes: number;
  readonly position: string;
}

/** The last `UsageRecorded` of an account. */
interface RecordedRow {
  readonly account_id: string;
  readonly through: string;
  readonly position: string;
}

/** What a batch changes. */
export class UnsummedChanges {
  #minutes: MinuteRow[] = [];
  readonly #recorded = new Map<string, RecordedRow>();

  addTransfer(account: string, recorded: RecordedEvent): void {
    const { minute, sent_bytes, received_bytes } = readEvent(transferEventKinds, recorded).data;
    this.#minutes.push({
      event_id: recorded.id,
      account_id: account,
      appended_on: recorded.occurredAt.slice(0, 10),
      day: minute.slice(0, 10),
      sent_bytes,
      received_bytes,
      position: String(recorded.position),
    });
  }

  addSums(account: string, recorded: RecordedEvent): void {
    const { day: through } = readEvent(usageEventKinds, recorded).data;
    this.#minutes = this.#minutes.filter((one) => one.account_id !== account || one.appended_on > through);
    const before = this.#recorded.get(account)?.through ?? '';
    const row = { account_id: account, through: through > before ? through : before };
    this.#recorded.set(account, { ...row, position: String(recorded.position) });
  }

  /** `minutes` and `recorded` are the qualified names of the two tables. */
  toLists(minutes: string, recorded: string): readonly ListStatement[] {
    return [
      {
        items: [...this.#recorded.values()],
        text: `DELETE FROM ${minutes} AS m
            USING json_to_recordset($1) AS r(account_id uuid, through text)
            WHERE m.account_id = r.account_id AND m.appended_on <= r.through`,
      },
      {
        items: this.#minutes,
        text: `INSERT INTO ${minutes} SELECT event_id, account_id, appended_on, day, sent_bytes, received_bytes
            FROM json_to_recordset($1) AS r(event_id uuid, account_id uuid, appended_on text, day text,
              sent_bytes bigint, received_bytes bigint, position bigint)
            WHERE NOT EXISTS (SELECT FROM ${recorded} AS u
              WHERE u.account_id = r.account_id AND r.appended_on <= u.through AND r.position < u.position)`,
      },
      {
        items: [...this.#recorded.values()],
        text: `INSERT INTO ${recorded} AS u
            SELECT * FROM json_to_recordset($1) AS r(account_id uuid, through text, position bigint)
            ON CONFLICT (account_id) DO UPDATE SET through = greatest(u.through, excluded.through),
              position = greatest(u.position, excluded.position)`,
      },
    ];
  }
}
