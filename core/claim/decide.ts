/**
 * Decides the commands of a claim.
 *
 * Invariants: another account's claim is taken over only after its time, and only if the caller abandoned that
 * account's stream. The time alone proves nothing about that account, because the clocks of nodes differ.
 */
import { accept } from '../kernel/decider.ts';
import type { ClaimCommand } from './commands.ts';
import type { ClaimEvent } from './events.ts';
import { type Claim, hasRunOut } from './state.ts';

/** `taken` if another account holds the name or may still get it. */
export type ClaimDecision = { readonly events: readonly ClaimEvent[] } | { readonly taken: true };

export function decideClaim(state: Claim, command: ClaimCommand): ClaimDecision {
  switch (command.type) {
    case 'Claim':
      return mayClaim(state, command)
        ? accept<ClaimEvent>({ type: 'Claimed', data: { account: command.account, until: command.until } })
        : { taken: true };
    case 'Confirm':
      if (state.status === 'held' && state.account === command.account) return accept<ClaimEvent>();
      if (state.status !== 'pending' || state.account !== command.account) return { taken: true };
      return accept<ClaimEvent>({ type: 'Confirmed', data: { account: command.account } });
    case 'Release':
      if (state.status === 'free' || state.account !== command.account) return accept<ClaimEvent>();
      return accept<ClaimEvent>({ type: 'Released', data: { account: command.account } });
  }
}

function mayClaim(state: Claim, command: Extract<ClaimCommand, { type: 'Claim' }>): boolean {
  switch (state.status) {
    case 'free':
      return true;
    case 'pending':
      // An account that claims its pending name again gets more time.
      return (
        state.account === command.account || (state.account === command.abandoned && hasRunOut(state, command.now))
      );
    case 'held':
      return false;
  }
}
