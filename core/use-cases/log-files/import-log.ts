/**
 * Reads an exported log (log-file.ts) into an event store: one writer, in log order, into an empty log.
 *
 * Must stay true:
 * - at every moment the target holds the first events of the file, in the file's order, and nothing else: so an import
 *   that ended anywhere is gone on with by running it again;
 * - a target that holds anything else is refused before anything is written;
 * - it is whole only when all of it was read back and gave the file's digest.
 */
import { LOG_START, type RecordedEvent } from '../../kernel/envelope.ts';
import type { Digest } from '../../ports/digest.ts';
import { type AppendRequest, appendInOrder, type EventStore } from '../../ports/event-store.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../kernel/limits.ts';
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
  nextDigest,
} from './log-file.ts';

const BATCH_EVENTS_MAX = 500;
const BATCH_LENGTH_MAX = 2 * 1024 * 1024;
const UTF8_BYTES_PER_CODE_UNIT_MAX = 3;

export interface LogTarget {
  readonly events: EventStore;
  readonly digest: Digest;
  /**
   * Called once, before the first append: marks the target as unfinished and drops what was derived from any log it
   * held. From then on nobody else may write to it.
   */
  readonly begin: () => Promise<void>;
  /** Called after every batch with how many events of the file the target holds. */
  readonly onProgress?: (events: number) => Promise<void> | void;
}

export interface ImportReport extends LogFileEnd {
  /** Events that the target held before. */
  readonly found: number;
}

/** The target does not hold what the file says, and did not before either. */
export class ImportError extends Error {
  override readonly name = 'ImportError';
  readonly code = 'import-failed';
}

/** Imports a file. Throws `LogFileError` for a fault of a line, `ImportError` for one of the target. */
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
    const there = batch.awaited ? undefined : await held.next();
    if (there === undefined || there.done === true) await batch.add(read.event);
    else {
      compare(read.event, there.value);
      found += 1;
    }
  }
  reader.finish();
  if (end === null) throw new TypeError('A file that was read to its end has one');
  const surplus = batch.awaited ? undefined : await held.next();
  if (surplus !== undefined && surplus.done !== true) {
    throw new ImportError(`The target holds ${placeOf(surplus.value)} after the file's ${end.events} events`);
  }
  await batch.flush();
  await verify(target, end);
  return { ...end, found };
}

async function* heldEvents(events: EventStore): AsyncGenerator<RecordedEvent> {
  for await (const page of readPages(events, LOG_START, null)) yield* page;
}

function compare(event: FileEvent, there: RecordedEvent): void {
  if (eventText(there) === event.text) return;
  throw new LogFileError(
    event.line,
    `the target holds ${placeOf(there)} (event ${there.id}) in its place; ` +
      'an import needs an empty log, or one that holds the beginning of the same file',
  );
}

function placeOf({ stream, revision }: { readonly stream: string; readonly revision: number }): string {
  return `${stream} revision ${revision}`;
}

/** Events on their way into the target. */
class Batch {
  readonly #target: LogTarget;
  #events: FileEvent[] = [];
  #length = 0;
  #appended = 0;
  #begun = false;
  #awaited = false;

  constructor(target: LogTarget) {
    this.#target = target;
  }

  /** Whether anything was added: from there on the target is known to hold nothing further. */
  get awaited(): boolean {
    return this.#awaited;
  }

  async add(event: FileEvent): Promise<void> {
    this.#awaited = true;
    this.#events.push(event);
    this.#length += event.text.length;
    if (this.#events.length >= BATCH_EVENTS_MAX || this.#length >= BATCH_LENGTH_MAX) await this.flush();
  }

  async flush(): Promise<void> {
    if (!this.#begun) await this.#target.begin();
    this.#begun = true;
    const events = this.#events;
    if (events.length === 0) return;
    this.#events = [];
    this.#length = 0;
    const groups = inGroups(events);
    const results = await appendInOrder(this.#target.events, groups.map(toRequest));
    for (const [index, group] of groups.entries()) {
      const result = results[index];
      const [first] = group;
      if (first === undefined || result?.outcome === 'appended') continue;
      const stands = result === undefined ? 'was not reached' : `stands at ${result.actual}`;
      throw new LogFileError(first.line, `revision ${first.revision} cannot follow: ${first.stream} ${stands}`);
    }
    this.#appended += events.length;
    await this.#target.onProgress?.(this.#appended);
  }
}

/** Events that follow each other in one stream, as long as they fit into one append. */
function inGroups(events: readonly FileEvent[]): readonly (readonly FileEvent[])[] {
  const groups: FileEvent[][] = [];
  let length = 0;
  for (const event of events) {
    const group = groups.at(-1);
    const before = group?.at(-1);
    length += event.text.length;
    const fits = length * UTF8_BYTES_PER_CODE_UNIT_MAX < APPEND_SIZE_BYTES_MAX;
    if (group !== undefined && before?.stream === event.stream && before.revision + 1 === event.revision && fits) {
      group.push(event);
    } else {
      groups.push([event]);
      length = event.text.length;
    }
  }
  return groups;
}

function toRequest(group: readonly FileEvent[]): AppendRequest {
  const [first] = group;
  if (first === undefined) throw new TypeError('An append needs an event');
  return {
    stream: first.stream,
    expected: expectedBefore(first.revision),
    events: group.map(({ event }) => event),
  };
}

/** Reads all of the target back: the only proof that nobody else wrote meanwhile and that all of it arrived. */
async function verify({ events, digest }: LogTarget, end: LogFileEnd): Promise<void> {
  let last = firstDigest(digest);
  let count = 0;
  for await (const page of readPages(events, LOG_START, null)) {
    for (const event of page) last = nextDigest(digest, last, eventText(event));
    count += page.length;
    // What somebody else still appends must not keep this going.
    if (count > end.events) break;
  }
  if (count === end.events && last === end.digest) return;
  throw new ImportError(
    `The target does not hold what the file says: ${count} events read back of ${end.events}, digest ${last} ` +
      `instead of ${end.digest}. Somebody else wrote to it meanwhile: begin again with an empty one`,
  );
}
