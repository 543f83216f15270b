/**
 * Applies the parked events of a stream, from the first one on.
 *
 * Invariants: a page's rows and the removal of its parked events are one transaction, which ends with a whole
 * append. Events are applied in order, each after all earlier events of its stream.
 */
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { executeWrite } from './bulk.ts';
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
  /** Called first in the transaction; throws if another process may be writing the same rows. */
  readonly fence: (upToRevision: number, events: number) => Promise<void>;
}

const PAGE_EVENTS = 500;
/** The largest weight of one transaction, the same as the writer's. Internal: the rest is in further transactions. */
const PAGE_WEIGHT_MAX = 20_000;

/** Applies the first parked events of a stream; resolves false if there is none. */
export async function replayPage(context: ReplayContext, stream: string): Promise<boolean> {
  const { connection, generation, events, complete, applier, patient, fence } = context;
  const [first, ...others] = await readParked(connection, generation, stream, PAGE_EVENTS);
  if (first === undefined) return false;
  const from = first.revision;
  const limit = 1 + others.length;
  const read = await events.readStream(first.stream, { direction: 'forwards', from, limit });
  // The log returns whole appends, so the page may exceed `limit`; all events of its last append are parked.
  const parked =
    read.length > limit ? await readParked(connection, generation, stream, read.length) : [first, ...others];
  const page = read.slice(0, parked.length);
  if (parked.some(({ id }, index) => page[index]?.id !== id)) {
    throw new ProjectionHalted(`The log no longer holds what was parked of ${stream} from revision ${from}`);
  }
  const weigh = generation.projection.weight ?? (() => 1);
  const whole: RecordedEvent[] = [];
  let weight = 0;
  for (const event of page) {
    const completed = await complete(event);
    weight += weigh(completed);
    if (whole.length > 0 && weight > PAGE_WEIGHT_MAX) break;
    whole.push(completed);
  }
  const write = await applier.prepare(whole, connection, { patient });
  const last = from + whole.length - 1;
  await inTransaction(connection, async () => {
    await fence(last, whole.length);
    await executeWrite(connection, write);
    await removeParked(connection, generation, stream, last);
  });
  write.committed?.();
  return true;
}
