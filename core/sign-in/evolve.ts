/** Folds sign-ins: their streams are kept for their events alone, and no decision depends on them. */
import type { Decider } from '../kernel/decider.ts';
import type { AccountId, Timestamp } from '../kernel/ids.ts';
import { type SignInEvent, signInEventKinds } from './events.ts';

type SignIns = Readonly<Record<never, never>>;

export const signIns: Decider<SignIns, SignInEvent> = {
  category: 'signIn',
  kinds: signInEventKinds,
  initial: {},
  evolve: (state) => state,
  snapshots: null,
  sizeBytes: () => 100,
};

/** Returns the id of the stream of an account's sign-ins on a day (UTC). */
export function signInsOn(account: AccountId, at: Timestamp): string {
  return `${account}-${at.slice(0, 10).replaceAll('-', '')}`;
}
