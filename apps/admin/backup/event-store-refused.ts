/** A log in EventStoreDB is saved and restored by the means of EventStoreDB. */
import type { Settings } from '../../server/settings.ts';
import { Refused } from '../answer.ts';

export function refuseEventStoreDb({ eventStoreDb }: Settings): void {
  if (eventStoreDb === null) return;
  throw new Refused(
    'The log is in EventStoreDB, which this script can neither save nor restore: nothing was done. ' +
      'See docs/operating.md, Backup and restore, With EventStoreDB',
  );
}
