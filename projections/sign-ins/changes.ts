/**
 * What a batch of events changes in the list of who signed in and what was refused, for the model that keeps it: the
 * usage ledger, which has the other facts that daily sums take the place of.
 *
 * Invariants: the rows are the same when the events that a `UsageRecorded` sums are pruned, and whatever the batches. A
 * stream that was parked may come after the event that sums it.
 */
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { ListStatement } from '../runner/projection.ts';
import { type SignInRow, signInRowsOf } from './row.ts';

export class SignInChanges {
  #facts: SignInRow[] = [];
  /** The last day that the sums in the batch hold, by account. */
  readonly #through = new Map<string, string>();

  add(recorded: RecordedEvent): void {
    this.#facts.push(...signInRowsOf(recorded));
  }

  /** The account's daily sums hold everything before them, up to this day. */
  sum(account: string, day: string): void {
    this.#facts = this.#facts.filter((one) => one.account_id !== account || one.appended_on > day);
    const before = this.#through.get(account) ?? '';
    this.#through.set(account, day > before ? day : before);
  }

  /** `facts` and `recorded` are the qualified names of the table of facts, and of that of the last sums. */
  toLists(facts: string, recorded: string): readonly ListStatement[] {
    return [
      {
        items: [...this.#through].map(([account_id, through]) => ({ account_id, through })),
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
            WHERE NOT EXISTS (SELECT FROM ${recorded} AS u
              WHERE u.account_id = r.account_id AND r.appended_on <= u.through AND r.position < u.position)`,
      },
    ];
  }
}
