/** Checks that an event has a form that this program reads, and tells which layers it names. */
import { EVENT_CATALOGUE } from '../../catalogue.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { categoryOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type EventStore, EventStoreError } from '../../ports/event-store.ts';
import { type RecordedLayer, type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { layersStoredBy } from '../../repository/layers.ts';
import { withUpdatesInPlace } from '../pushing/restore-wide-updates.ts';
import { isChanged } from './changed.ts';

export interface CheckedEvent {
  readonly stored: readonly RecordedLayer[];
  /** The ids of layers whose bytes left storage with the event. */
  readonly expired: readonly string[];
}

export interface EventReports {
  readonly fault: (text: string) => void;
  /** Called with each event that can be read. */
  readonly onRead: (event: RecordedEvent) => void;
}

/** Checks the event. Resolves to null if it cannot be read. */
export async function checkEvent(
  context: { readonly events: Pick<EventStore, 'readStream'>; readonly digest: Digest },
  event: RecordedEvent,
  { fault, onRead }: EventReports,
): Promise<CheckedEvent | null> {
  const category = categoryOf(event.stream);
  const kinds = EVENT_CATALOGUE[category];
  if (kinds === undefined) {
    fault(`${event.stream} is of no known category`);
    return null;
  }
  try {
    readEvent(kinds, event);
    onRead(event);
    if (category !== repositories.category) return { stored: [], expired: [] };
    const whole = readEvent<RepositoryEvent>(repositoryEventKinds, await withUpdatesInPlace(context, event));
    const expired = whole.type === 'LayersExpired' ? whole.data.layers.map(({ id }) => id) : [];
    return { stored: layersStoredBy(whole), expired };
  } catch (error) {
    if (error instanceof EventStoreError && !isChanged(error)) throw error;
    fault(error instanceof Error ? error.message : String(error));
    return null;
  }
}
