/**
 * Applies what was parked of a stream, from its first parked event on.
 *
 * Must stay true: rows and the end of the parking are one transaction; events are applied in their order, each
 * only after all before it of its stream.
 */
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { carryOut } from './bulk.ts';
import { ProjectionHalted } from './faults.ts';
import { readParked, removeParked } from './parking.ts';
import type { Applier, PrepareMode, Queryable } from './projection.ts';
import type { Generation } from './tables.ts';
import { inTransaction } from './transaction.ts';

export interface ReplayContext extends PrepareMode {
  readonly connection: Queryable;
  readonly generation: Generation;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly applier: Applier;
  /** First in the transaction: throws when somebody else may be writing the same. */
  readonly fence: (upToRevision: number, events: number) => Promise<void>;
}

const PAGE_EVENTS = 500;

/** Applies the first parked events of a stream; false when there is none. */
export async function replayPage(context: ReplayContext, stream: string): Promise<boolean> {
  const { connection, generation, events, complete, applier, patient, fence } = context;
  const parked = await readParked(connection, generation, stream, PAGE_EVENTS);
  const first = parked[0];
  if (first === undefined) return false;
  const from = first.revision;
  const page = await events.readStream(first.stream, { direction: 'forwards', from, limit: parked.length });
  if (parked.some(({ id }, index) => page[index]?.id !== id)) {
    throw new ProjectionHalted(`The log no longer holds what was parked of ${stream} from revision ${from}`);
  }
  const whole: RecordedEvent[] = [];
  for (const event of page) whole.push(await complete(event));
  const write = await applier.prepare(whole, connection, { patient });
  const last = from + parked.length - 1;
  await inTransaction(connection, async () => {
    await fence(last, parked.length);
    await carryOut(connection, write);
    await removeParked(connection, generation, stream, last);
  });
  write.committed?.();
  return true;
}
