/** The stand-in's reads and subscriptions (streams.proto, Read). */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import * as grpc from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import { confirmation, eventAnswer, notFoundAnswer, streamNameOf } from './messages.ts';
import type { RecordedLog, StoredEvent } from './recorded-log.ts';

const BACKWARDS = 1;

type ReadCall = grpc.ServerWritableStream<streams.ReadReq, streams.ReadResp>;

export interface ReadContext {
  readonly log: RecordedLog;
  readonly faults: Faults;
  readonly counts: Record<'streamReads' | 'allReads' | 'subscriptions', number>;
  /** The subscriptions that are open. */
  readonly subscribed: Set<ReadCall>;
}

export async function readEvents(context: ReadContext, call: ReadCall): Promise<void> {
  const { counts, faults, log } = context;
  const options = call.request.getOptions();
  if (options === undefined || options.hasFilter()) {
    call.emit('error', { code: grpc.status.UNIMPLEMENTED, details: 'The stand-in reads without filters' });
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
  const events = all === undefined ? streamEvents(log, stream, options, backwards) : allEvents(log, all, backwards);
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

/** Null for a stream that is not there. */
function streamEvents(
  log: RecordedLog,
  name: string,
  options: streams.ReadReq.Options,
  backwards: boolean,
): IteratorObject<StoredEvent> | null {
  const history = log.stream(name);
  if (history === null) return null;
  const from = options.getStream();
  const end = history.length - 1;
  if (!backwards) return ahead(history, from?.hasRevision() ? Number(from.getRevision()) : 0);
  // From beyond its end there is nothing, as far as anybody promised.
  if (from?.hasRevision() && Number(from.getRevision()) > end) return ahead([], 0);
  return behind(history, from?.hasRevision() ? Number(from.getRevision()) : end);
}

/** Forwards the position itself is given too, backwards it is not. */
function allEvents(
  { events, indexOf }: RecordedLog,
  from: streams.ReadReq.Options.AllOptions,
  backwards: boolean,
): IteratorObject<StoredEvent> {
  const position = BigInt(from.getPosition()?.getCommitPosition() ?? 0);
  if (from.hasStart()) return ahead(backwards ? [] : events, 0);
  if (from.hasEnd()) return backwards ? behind(events, events.length - 1) : ahead([], 0);
  return backwards ? behind(events, indexOf(position) - 1) : ahead(events, indexOf(position));
}

function* ahead(events: readonly StoredEvent[], from: number): Generator<StoredEvent> {
  for (let index = from; index < events.length; index += 1) {
    const event = events[index];
    if (event !== undefined) yield event;
  }
}

function* behind(events: readonly StoredEvent[], from: number): Generator<StoredEvent> {
  for (let index = from; index >= 0; index -= 1) {
    const event = events[index];
    if (event !== undefined) yield event;
  }
}

/** Everything behind a position, now and later. */
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
    }
  } finally {
    subscribed.delete(call);
    stop();
  }
}

/** Resolves when the stream takes more, or is gone. */
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
