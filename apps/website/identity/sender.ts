/** Who sent a form, as the use cases of signing in take it. */
import type { Origin } from '../../../core/use-cases/signing-in/sign-in.ts';
import type { Visit } from '../layout/visit.ts';

export function senderOf({ requestId, address, agent }: Visit): Origin {
  return { requestId, address, userAgent: agent };
}
