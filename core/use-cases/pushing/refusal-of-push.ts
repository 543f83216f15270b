/** What is told of a refused push that this service made itself, for a README or for a change over the API. */
import type { Refusal } from '../../kernel/refusal.ts';
import { ObjectDatabaseError } from '../../ports/object-database.ts';
import type { PushRefusal } from './push-refs.ts';

/** Seconds after which a push may find its refs at rest. */
export const MOVES_WAIT_SECONDS = 1;

/** Throws where the service could not do its work, and where it made a pack that it refuses: an outage or a bug. */
export function refusalOfPush(refused: PushRefusal): Refusal {
  switch (refused.code) {
    case 'storage-quota-reached':
    case 'ingress-quota-reached':
    case 'token-no-longer-valid':
    case 'repository-not-found':
    case 'key-in-use':
    case 'pack-too-large':
      return { code: refused.code };
    case 'refs-moved-too-often':
      return { code: refused.code, waitSeconds: MOVES_WAIT_SECONDS };
    case 'pack-object-too-large':
    case 'pack-too-costly':
      return { code: refused.code, detail: refused.detail };
    case 'disk-full':
    case 'too-much-at-once':
    case 'push-took-too-long':
      throw new ObjectDatabaseError('object-database-unavailable', `Nothing was pushed: ${refused.code}`);
    case 'pack-broken':
    case 'pack-fsck-failed':
    case 'pack-not-connected':
    case 'pack-too-many-objects':
      throw new TypeError(`A pack of the service's own was refused: ${refused.code}`);
  }
}
