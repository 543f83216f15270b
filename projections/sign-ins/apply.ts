/**
 * Lists who signed in to accounts and what was refused, until the daily sums have it.
 *
 * Invariants: the rows are the same when the events that a `UsageRecorded` sums are pruned, and whatever the batches. A
 * stream that was parked may come after the event that sums it.
 */
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { isJsonArray } from '../../core/kernel/json.ts';
import { usageEventKinds } from '../../core/usage/events.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { type SignInRow, signInRowsOf } from './row.ts';
import { signInTables } from './table.ts';

export const signInsProjection: Projection = {
  name: 'sign_ins',
  version: 1,
  categories: ['signIn', 'transfer', 'usage'],
  tables: signInTables,
  onPoison: 'park',
  weight: ({ data: { refused_reads: refused = null } }) => 1 + (isJsonArray(refused) ? refused.length : 0),
  open: (table) => ({
    prepare: async (events) => {
      const changes = new Changes();
      for (const event of events) changes.add(event);
      return changes.toWrite(table);
    },
  }),
};

/** The last `UsageRecorded` of an account. */
interface RecordedRow {
  readonly account_id: string;
  readonly through: string;
  readonly position: string;
}

class Changes {
  #facts: SignInRow[] = [];
  readonly #recorded = new Map<string, RecordedRow>();

  add(recorded: RecordedEvent): void {
    if (categoryOf(recorded.stream) === 'usage') this.#sum(recorded);
    else this.#facts.push(...signInRowsOf(recorded));
  }

  #sum(recorded: RecordedEvent): void {
    const account_id = String(recorded.accountId);
    const { day } = readEvent(usageEventKinds, recorded).data;
    this.#facts = this.#facts.filter((one) => one.account_id !== account_id || one.appended_on > day);
    const before = this.#recorded.get(account_id)?.through ?? '';
    const through = day > before ? day : before;
    this.#recorded.set(account_id, { account_id, through, position: String(recorded.position) });
  }

  toWrite(table: TableOf): Write {
    const [facts, sums] = [table('sign_in_facts'), table('sign_in_recorded')];
    const recorded = [...this.#recorded.values()];
    return {
      lists: [
        {
          items: recorded,
          text: `DELETE FROM ${facts} AS f USING json_to_recordset($1) AS r(account_id uuid, through text)
            WHERE f.account_id = r.account_id AND f.appended_on <= r.through`,
        },
        {
          items: this.#facts,
          text: `INSERT INTO ${facts} SELECT event_id, index, account_id, appended_on, at, kind, factors, reason,
              token_id, count, source_address_ref, user_agent_ref
            FROM json_to_recordset($1) AS r(event_id uuid, index integer, account_id uuid, appended_on text,
              position bigint, at text, kind text, factors text, reason text, token_id uuid, count integer,
              source_address_ref text, user_agent_ref text)
            WHERE NOT EXISTS (SELECT FROM ${sums} AS u
              WHERE u.account_id = r.account_id AND r.appended_on <= u.through AND r.position < u.position)`,
        },
        {
          items: recorded,
          text: `INSERT INTO ${sums} AS u
            SELECT * FROM json_to_recordset($1) AS r(account_id uuid, through text, position bigint)
            ON CONFLICT (account_id) DO UPDATE SET through = greatest(u.through, excluded.through),
              position = greatest(u.position, excluded.position)`,
        },
      ],
    };
  }
}
