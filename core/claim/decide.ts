/** Decides claims. A pending claim past its time may be replaced; its account was abandoned first (use case). */
import { accept } from '../kernel/decider.ts';
import type { ClaimCommand } from './commands.ts';
import type { ClaimEvent } from './events.ts';
import type { Claim } from './state.ts';

/** `taken` when another account holds the name, or still may come to hold it. */
export type ClaimDecision = { readonly events: readonly ClaimEvent[] } | { readonly taken: true };

export function decideClaim(state: Claim, command: ClaimCommand): ClaimDecision {
  switch (command.type) {
    case 'Claim': {
      const mine = state.status !== 'free' && state.account === command.account;
      const open = state.status === 'free' || (state.status === 'pending' && state.until < command.now);
      if (!mine && !open) return { taken: true };
      return accept<ClaimEvent>({ type: 'Claimed', data: { account: command.account, until: command.until } });
    }
    case 'Confirm':
      if (state.status === 'held' && state.account === command.account) return accept<ClaimEvent>();
      if (state.status !== 'pending' || state.account !== command.account) return { taken: true };
      return accept<ClaimEvent>({ type: 'Confirmed', data: { account: command.account } });
    case 'Release':
      if (state.status === 'free' || state.account !== command.account) return accept<ClaimEvent>();
      return accept<ClaimEvent>({ type: 'Released', data: { account: command.account } });
  }
}
