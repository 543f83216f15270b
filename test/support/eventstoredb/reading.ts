/** The protocol server's reads and subscriptions: Read of streams.proto. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import * as grpc from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import { confirmation, eventAnswer, notFoundAnswer, streamDeleted, streamNameOf } from './messages.ts';
import type { RecordedLog, StoredEvent } from './recorded-log.ts';

const BACKWARDS = 1;
/**
 * EventStoreDB sends the events of an append to a subscription one by one. This pause after the first lets the client
 * handle it before the rest arrives.
 */
const INSIDE_APPEND_MS = 2;

type ReadCall = grpc.ServerWritableStream<streams.ReadReq, streams.ReadResp>;

export interface ReadContext {
  readonly log: RecordedLog;
  readonly faults: Faults;
  readonly counts: Record<'streamReads' | 'allReads' | 'subscriptions', number>;
  /** The open subscriptions. */
  readonly subscribed: Set<ReadCall>;
}

export async function readEvents(context: ReadContext, call: ReadCall): Promise<void> {
  const { counts, faults, log } = context;
  const options = call.request.getOptions();
  if (options === undefined || options.hasFilter()) {
    call.emit('error', { code: grpc.status.UNIMPLEMENTED, details: 'The protocol server reads without filters' });
    return;
  }
  const all = options.getAll();
  const stream = streamNameOf(options.getStream()?.getStreamIdentifier());
  if (all !== undefined && options.hasSubscription()) {
    counts.subscriptions += 1;
    await faults.read?.('subscription', '');
    await subscribe(context, call, all);
    return;
  }
  counts[all === undefined ? 'streamReads' : 'allReads'] += 1;
  await faults.read?.(all === undefined ? 'stream' : 'all', stream);
  const backwards = Number(options.getReadDirection()) === BACKWARDS;
  const shown = shownOf(log, faults);
  const events = all === undefined ? streamEvents(shown, stream, options, backwards) : allEvents(shown, all, backwards);
  if (events === null && log.isTombstoned(stream)) {
    call.emit('error', streamDeleted(stream));
    return;
  }
  if (events === null) {
    call.write(notFoundAnswer(stream));
    call.end();
    return;
  }
  for (const event of events.take(Number(options.getCount()))) {
    if (call.cancelled) return;
    if (!call.write(eventAnswer(event))) await drained(call);
  }
  call.end();
}

type Shown = Pick<RecordedLog, 'events' | 'stream' | 'indexOf'>;

/** The log without the events that a fault hides. */
function shownOf(log: RecordedLog, faults: Faults): Shown {
  const unseen = faults.unseen?.() ?? 0;
  if (unseen === 0) return log;
  const events = log.events.slice(0, -unseen);
  const stream = (name: string): readonly StoredEvent[] | null => {
    const history = log.stream(name)?.filter((event) => events.includes(event)) ?? [];
    return history.length === 0 ? null : history;
  };
  return { events, stream, indexOf: log.indexOf };
}

/** Returns null for a stream that does not exist. */
function streamEvents(
  log: Shown,
  name: string,
  options: streams.ReadReq.Options,
  backwards: boolean,
): IteratorObject<StoredEvent> | null {
  const history = log.stream(name);
  if (history === null) return null;
  const from = options.getStream();
  const end = history.length - 1;
  if (!backwards) return forwardsFrom(history, from?.hasRevision() ? Number(from.getRevision()) : 0);
  // A read backwards from beyond the stream's end returns nothing: the adapter must not rely on more.
  if (from?.hasRevision() && Number(from.getRevision()) > end) return forwardsFrom([], 0);
  return backwardsFrom(history, from?.hasRevision() ? Number(from.getRevision()) : end);
}

/** The event at the position itself is included forwards, and left out backwards. */
function allEvents(
  { events, indexOf }: Shown,
  from: streams.ReadReq.Options.AllOptions,
  backwards: boolean,
): IteratorObject<StoredEvent> {
  const position = BigInt(from.getPosition()?.getCommitPosition() ?? 0);
  if (from.hasStart()) return forwardsFrom(backwards ? [] : events, 0);
  if (from.hasEnd()) return backwards ? backwardsFrom(events, events.length - 1) : forwardsFrom([], 0);
  return backwards ? backwardsFrom(events, indexOf(position) - 1) : forwardsFrom(events, indexOf(position));
}

function* forwardsFrom(events: readonly StoredEvent[], from: number): Generator<StoredEvent> {
  for (let index = from; index < events.length; index += 1) {
    const event = events[index];
    if (event !== undefined) yield event;
  }
}

function* backwardsFrom(events: readonly StoredEvent[], from: number): Generator<StoredEvent> {
  for (let index = from; index >= 0; index -= 1) {
    const event = events[index];
    if (event !== undefined) yield event;
  }
}

/** Sends everything behind a position: what the log holds and what is appended later. */
async function subscribe(
  { log, faults, subscribed }: ReadContext,
  call: ReadCall,
  from: streams.ReadReq.Options.AllOptions,
): Promise<void> {
  const position = from.getPosition();
  let wake = (): void => undefined;
  const stop = log.onAppended(() => wake());
  call.on('cancelled', () => wake());
  call.on('close', () => wake());
  subscribed.add(call);
  try {
    call.write(confirmation(randomUUID()));
    let next = from.hasEnd() ? log.events.length : 0;
    if (position !== undefined) next = log.indexOf(BigInt(position.getCommitPosition()) + 1n);
    while (!call.cancelled && !call.destroyed) {
      const event = faults.mute ? undefined : log.events[next];
      if (event === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      next += 1;
      if (!call.write(eventAnswer(event))) await drained(call);
      if (event.before === 0 && event.after > 0) await sleep(INSIDE_APPEND_MS);
    }
  } finally {
    subscribed.delete(call);
    stop();
  }
}

/** Resolves when the call can send more, or has ended. */
async function drained(call: NodeJS.EventEmitter): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([
      once(call, 'drain', { signal }),
      once(call, 'close', { signal }),
      once(call, 'cancelled', { signal }),
    ]);
  } finally {
    settled.abort();
  }
}
