/**
 * Reads an exported log (log-file.ts) into an event store: one writer, in log order, into an empty log.
 *
 * Invariants:
 * - at every moment the target holds the first events of the file, in the file's order, and nothing else. So running an
 *   interrupted import again continues it;
 * - every append of the source is one append in the target;
 * - a target that holds anything else is refused before anything is written;
 * - an import has succeeded only after all events were read back from the target and gave the file's digest.
 */
import type { Digest } from '../../kernel/digest.ts';
import { LOG_START, type RecordedEvent } from '../../kernel/envelope.ts';
import { missingOfAppend } from '../../kernel/whole-appends.ts';
import { type AppendRequest, appendInOrder, type EventStore } from '../../ports/event-store.ts';
import { readPages } from './export-log.ts';
import {
  eventText,
  expectedBefore,
  type FileEvent,
  type FileLine,
  firstDigest,
  type LogFileEnd,
  LogFileError,
  LogFileReader,
  type LogFileVersion,
  nextDigest,
} from './log-file.ts';

/** Events that are imported together, and the length of their lines. Internal: the rest is in further batches. */
const BATCH_EVENTS_MAX = 500;
const BATCH_LENGTH_MAX = 2 * 1024 * 1024;

export interface LogTarget {
  readonly events: EventStore;
  readonly digest: Digest;
  /**
   * Called once, before the first append. Marks the target as unfinished and drops everything that was derived from a
   * log in it. From then on only the import may write to it.
   */
  readonly begin: () => Promise<void>;
  /** Called after every batch with the number of events that this import has appended. */
  readonly onProgress?: (events: number) => Promise<void> | void;
}

export interface ImportReport extends LogFileEnd {
  /** The number of the file's events that the target held before. */
  readonly found: number;
}

/** The target holds more events than the file, or other events than those that were imported. */
export class ImportError extends Error {
  override readonly name = 'ImportError';
  readonly code = 'import-failed';
}

/** Imports a file. Throws `LogFileError` for a faulty line or one that does not fit the target, else `ImportError`. */
export async function importLog(target: LogTarget, lines: AsyncIterable<FileLine>): Promise<ImportReport> {
  const held = heldEvents(target.events);
  const batch = new Batch(target);
  const reader = new LogFileReader(target.digest);
  let end: LogFileEnd | null = null;
  let found = 0;
  for await (const line of lines) {
    const read = reader.read(line);
    if (read.kind === 'end') end = read.end;
    if (read.kind !== 'event') continue;
    const existing = batch.isStarted ? undefined : await held.next();
    if (existing === undefined || existing.done === true) await batch.add(read.event);
    else {
      compare(read.event, existing.value, reader.version);
      found += 1;
    }
  }
  reader.finish();
  if (end === null) throw new TypeError('A file that was read to its end has a closing line');
  const surplus = batch.isStarted ? undefined : await held.next();
  if (surplus !== undefined && surplus.done !== true) {
    throw new ImportError(`The target holds ${placeOf(surplus.value)} after the file's ${end.events} events`);
  }
  await batch.flush();
  await verify(target, end, reader.version);
  return { ...end, found };
}

async function* heldEvents(events: EventStore): AsyncGenerator<RecordedEvent> {
  for await (const page of readPages(events, LOG_START, null)) yield* page;
}

function compare(event: FileEvent, existing: RecordedEvent, version: LogFileVersion): void {
  if (eventText(existing, version) === event.text) return;
  throw new LogFileError(
    event.line,
    `the target holds ${placeOf(existing)} (event ${existing.id}) in its place; ` +
      'an import needs an empty log, or one that holds the beginning of the same file',
  );
}

function placeOf({ stream, revision }: { readonly stream: string; readonly revision: number }): string {
  return `${stream} revision ${revision}`;
}

/** Collects events and appends them to the target in batches. */
class Batch {
  readonly #target: LogTarget;
  #events: FileEvent[] = [];
  #length = 0;
  #appended = 0;
  #begun = false;
  #isStarted = false;

  constructor(target: LogTarget) {
    this.#target = target;
  }

  /** Whether an event was added. If so, the target is known to hold no further events of its own. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  async add(event: FileEvent): Promise<void> {
    this.#isStarted = true;
    this.#events.push(event);
    this.#length += event.text.length;
    if (missingOfAppend(event.event) > 0) return;
    if (this.#events.length >= BATCH_EVENTS_MAX || this.#length >= BATCH_LENGTH_MAX) await this.flush();
  }

  async flush(): Promise<void> {
    if (!this.#begun) await this.#target.begin();
    this.#begun = true;
    const events = this.#events;
    if (events.length === 0) return;
    this.#events = [];
    this.#length = 0;
    const appends = inAppends(events);
    const results = await appendInOrder(this.#target.events, appends.map(toRequest));
    for (const [index, append] of appends.entries()) {
      const result = results[index];
      const [first] = append;
      if (first === undefined || result?.outcome === 'appended') continue;
      const reason = result === undefined ? 'was not reached' : `is at ${result.actual}`;
      const { revision, stream } = first.event;
      throw new LogFileError(first.line, `revision ${revision} cannot follow: ${stream} ${reason}`);
    }
    this.#appended += events.length;
    await this.#target.onProgress?.(this.#appended);
  }
}

/** Groups the events into the appends of the source. */
function inAppends(events: readonly FileEvent[]): readonly (readonly FileEvent[])[] {
  const appends: FileEvent[][] = [];
  for (const event of events) {
    if (event.event.appendIndex > 0) appends.at(-1)?.push(event);
    else appends.push([event]);
  }
  return appends;
}

function toRequest(append: readonly FileEvent[]): AppendRequest {
  const [first] = append;
  if (first === undefined) throw new TypeError('An append needs an event');
  const { stream, revision } = first.event;
  return { stream, expected: expectedBefore(revision), events: append.map(({ event }) => event) };
}

/** Reads the whole target back. Only this proves that every event arrived and that nobody else wrote in between. */
async function verify({ events, digest }: LogTarget, end: LogFileEnd, version: LogFileVersion): Promise<void> {
  let last = firstDigest(digest, version);
  let count = 0;
  for await (const page of readPages(events, LOG_START, null)) {
    for (const event of page) last = nextDigest(digest, last, eventText(event, version));
    count += page.length;
    // Another writer that still appends must not keep this loop running.
    if (count > end.events) break;
  }
  if (count === end.events && last === end.digest) return;
  throw new ImportError(
    `The target does not hold the events of the file: ${count} events read back of ${end.events}, digest ${last} ` +
      `instead of ${end.digest}. Somebody else wrote to it: begin again with an empty one`,
  );
}
