/** The rows of an event that says who signed in, or what was refused. */
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { type SignInEvent, signInEventKinds } from '../../core/sign-in/events.ts';
import { signIns } from '../../core/sign-in/evolve.ts';
import { transferEventKinds } from '../../core/usage/events.ts';

export interface SignInRow {
  readonly event_id: string;
  /** Distinguishes the rows of one event. */
  readonly index: number;
  readonly account_id: string;
  /** `YYYY-MM-DD`. */
  readonly appended_on: string;
  readonly position: string;
  readonly at: string;
  readonly kind: 'sign-in' | 'failure' | 'refused-read';
  /** Separated by commas; of a failure the one that was wrong, and of a refused read empty. */
  readonly factors: string;
  readonly reason: string | null;
  readonly token_id: string | null;
  readonly count: number;
  readonly source_address_ref: string | null;
  readonly user_agent_ref: string | null;
}

export function signInRowsOf(recorded: RecordedEvent): readonly SignInRow[] {
  const { id, accountId, occurredAt, position, stream, revision, sourceAddressRef } = recorded;
  // Events of these streams always name the account.
  if (accountId === null) throw new TypeError(`${stream} revision ${revision} names no account`);
  const about = {
    event_id: id,
    index: 0,
    account_id: accountId,
    appended_on: occurredAt.slice(0, 10),
    position: String(position),
    at: occurredAt,
    token_id: null,
    reason: null,
    count: 1,
  };
  if (categoryOf(stream) !== signIns.category) {
    const { refused_reads } = readEvent(transferEventKinds, recorded).data;
    const nowhere = { factors: '', source_address_ref: null, user_agent_ref: null };
    return refused_reads.map((refused, index) => ({ ...about, ...nowhere, kind: 'refused-read', ...refused, index }));
  }
  const event = readEvent<SignInEvent>(signInEventKinds, recorded);
  const source_address_ref = sourceAddressRef;
  switch (event.type) {
    case 'SignedIn': {
      const { factors, user_agent_ref } = event.data;
      return [{ ...about, kind: 'sign-in', factors: factors.join(','), source_address_ref, user_agent_ref }];
    }
    case 'SignInFailed': {
      const { factor, reason, user_agent_ref } = event.data;
      return [{ ...about, kind: 'failure', factors: factor, reason, source_address_ref, user_agent_ref }];
    }
    case 'SignedOut':
    case 'SessionsRevoked':
      return [];
  }
}
