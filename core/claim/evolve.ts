/** Folds a claim's events. Claims have two categories of streams: usernames and email addresses. */
import type { Decider } from '../kernel/decider.ts';
import { timestamp, uuid } from '../kernel/ids.ts';
import { type ClaimEvent, claimEventKinds } from './events.ts';
import type { Claim } from './state.ts';

function evolveClaim(_state: Claim, event: ClaimEvent): Claim {
  switch (event.type) {
    case 'Claimed':
      return { status: 'pending', account: uuid(event.data.account), until: timestamp(event.data.until) };
    case 'Confirmed':
      return { status: 'held', account: uuid(event.data.account) };
    case 'Released':
      return { status: 'free' };
  }
}

function claimDecider(category: 'username' | 'email'): Decider<Claim, ClaimEvent> {
  return {
    category,
    kinds: claimEventKinds,
    initial: { status: 'free' },
    evolve: evolveClaim,
    snapshots: null,
    sizeBytes: () => 200,
  };
}

export const usernameClaims = claimDecider('username');
export const emailClaims = claimDecider('email');
