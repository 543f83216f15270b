/** Reads the log past rows that hold no event, which somebody changed, and tells where they are. */
import type { LogPosition, RecordedEvent } from '../../kernel/envelope.ts';
import { type EventStore, EventStoreError } from '../../ports/event-store.ts';

export interface Unreadable {
  readonly message: string;
  readonly position: LogPosition;
}

/** Returns the next events; those before a row that cannot be read, and that row's fault, if the log holds one. */
export async function readPage(
  events: Pick<EventStore, 'readAll'>,
  after: LogPosition,
  limit: number,
): Promise<{ readonly page: readonly RecordedEvent[]; readonly unreadable: Unreadable | null }> {
  const whole = await readNext(events, after, limit);
  if ('events' in whole) return { page: whole.events, unreadable: null };
  const page: RecordedEvent[] = [];
  for (let from = after; ; ) {
    const next = await readNext(events, from, 1);
    if ('message' in next) return { page, unreadable: next };
    page.push(...next.events);
    from = next.events.at(-1)?.position ?? whole.position;
  }
}

async function readNext(
  events: Pick<EventStore, 'readAll'>,
  after: LogPosition,
  limit: number,
): Promise<{ readonly events: readonly RecordedEvent[] } | Unreadable> {
  try {
    return { events: await events.readAll(after, limit) };
  } catch (error) {
    if (!(error instanceof EventStoreError) || error.unreadableAt === null) throw error;
    return { message: error.message, position: error.unreadableAt };
  }
}
