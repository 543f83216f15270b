/** Why the service does something that nobody asked for now: the policy that does it is the actor. */
import type { Cause } from '../kernel/envelope.ts';
import type { EventId, Uuid } from '../kernel/ids.ts';
import type { Ids } from '../ports/clock.ts';

/** A cause of its own request; `causationId` names the event that the policy follows, if it follows one. */
export function systemCause(ids: Pick<Ids, 'next'>, policy: string, causationId: EventId | null = null): Cause {
  return {
    actor: { kind: 'system', id: policy },
    requestId: ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId,
  };
}
