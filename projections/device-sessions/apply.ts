/**
 * Folds device logins into the list of those that wait for their user's decision.
 *
 * Must stay true: the list does not hold the hash of a secret. Who may do what is decided on the streams, never on this
 * list.
 */
import { readEvent } from '../../core/kernel/decider.ts';
import { deviceSessionEventKinds } from '../../core/device-session/events.ts';
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { deviceSessionTables } from './table.ts';

export const deviceSessionsProjection: Projection = {
  name: 'device_sessions',
  version: 1,
  categories: ['deviceSession'],
  tables: deviceSessionTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events) => toWrite(table, events),
  }),
};

function toWrite(table: TableOf, events: readonly RecordedEvent[]): Write {
  const waiting = new Map<string, { id: string; user_code: string; expires_at: string }>();
  const decided = new Set<string>();
  for (const recorded of events) {
    const id = entityIdOf(recorded.stream);
    const event = readEvent(deviceSessionEventKinds, recorded);
    if (event.type === 'DeviceLoginRequested') {
      const { user_code, expires_at } = event.data;
      waiting.set(id, { id, user_code, expires_at });
    } else if (!waiting.delete(id)) {
      decided.add(id);
    }
  }
  const sessions = table('device_sessions');
  return {
    lists: [
      {
        items: [...decided],
        text: `DELETE FROM ${sessions} WHERE id IN (SELECT value::uuid FROM json_array_elements_text($1))`,
      },
      {
        items: [...waiting.values()],
        text: `INSERT INTO ${sessions}
          SELECT * FROM json_to_recordset($1) AS s(id uuid, user_code text, expires_at text)`,
      },
    ],
  };
}
