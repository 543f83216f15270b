/** The cause of events that no request caused: the actor is the policy that appends them. */
import type { Cause } from '../kernel/envelope.ts';
import type { EventId, Uuid } from '../kernel/ids.ts';
import type { Ids } from '../ports/clock.ts';

/** Returns a cause with a new request id. `causationId` names the event that the policy reacts to, if there is one. */
export function systemCause(ids: Pick<Ids, 'next'>, policy: string, causationId: EventId | null = null): Cause {
  return {
    actor: { kind: 'system', id: policy },
    requestId: ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId,
  };
}
