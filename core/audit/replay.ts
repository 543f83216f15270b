/**
 * Rebuilds the state of an account from the lines of an export alone.
 *
 * Invariants: it folds the same entries by the same code as the service (account-fold.ts), so the digest is that of the
 * service unless one of them lies. It checks that the lines are the log from its first entry on, and that the parts of
 * a wide push are those that the push names; a verifier checks the rest. Memory grows with the account and the number
 * of its wide pushes: parts that no push names, because it lost its race, are not kept.
 */
import { readEvent } from '../kernel/decider.ts';
import type { Digest } from '../kernel/digest.ts';
import { categoryOf, type StreamName } from '../kernel/envelope.ts';
import { later, type Timestamp } from '../kernel/ids.ts';
import type { NextTurn } from '../kernel/turns.ts';
import {
  type RepositoryEvent,
  refUpdatesEventKinds,
  repositoryEventKinds,
  type StoredRefUpdate,
} from '../repository/events.ts';
import { checkParts, partsStream } from '../repository/wide-updates.ts';
import { type AccountStateFold, foldEntry, isFolded, newAccountFold, passEntry } from './account-fold.ts';
import { type ParsedEntry, parseExportLine } from './parse-entry.ts';

export interface ReplayContext {
  readonly digest: Pick<Digest, 'sha256'>;
  readonly nextTurn: NextTurn;
}

/** What is wrong with a line of an export. */
class ReplayError extends Error {
  override readonly name = 'ReplayError';
  /** Counted from 1. */
  readonly line: number;
  constructor(line: number, cause: unknown) {
    super(`Line ${line}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.line = line;
  }
}

/** Entries between two turns of the event loop. */
const ENTRIES_OF_TURN = 500;

/** The lines of an export, without their line feeds. Each iteration begins with the first line. */
type ExportLines = AsyncIterable<string> | Iterable<string>;

/**
 * Returns the account as of the moment, or as of the last line for null. Takes the lines twice: first to see which
 * parts of wide pushes are named. Folds no line after the first entry with a later log time. Rejects with `ReplayError`
 * for a line that cannot be the log's next.
 */
export async function replayExport(
  lines: ExportLines,
  at: Timestamp | null,
  { digest, nextTurn }: ReplayContext,
): Promise<AccountStateFold> {
  const fold = newAccountFold();
  const parts = new Map<StreamName, StoredRefUpdate[]>();
  for (const stream of await namedParts(lines)) parts.set(stream, []);
  let number = 0;
  for await (const text of lines) {
    number += 1;
    try {
      const line = parseExportLine(text);
      if ('checkpoint' in line) return fold;
      const { entry, isGuard } = line;
      // A slice from the log's beginning ends where the guards behind it begin.
      if (isGuard && fold.sequence > 0) return fold;
      if (isGuard) throw new TypeError('A slice that begins with a guard is no log from its first entry on');
      if (entry.sequence !== fold.sequence) throw new TypeError(`Entry ${entry.sequence} is not ${fold.sequence}`);
      if (at !== null && later(entry.occurredAt, fold.logTime) > at) return fold;
      keepPart(parts, entry);
      if (isFolded(entry.stream)) await foldEntry(fold, withParts(digest, parts, entry), nextTurn);
      else passEntry(fold, entry);
    } catch (error) {
      throw new ReplayError(number, error);
    }
    if (number % ENTRIES_OF_TURN === 0) await nextTurn();
  }
  return fold;
}

/** How a canonical line names the parts of a wide push. No text in it can look so: its quotes are escaped. */
const NAMED_PARTS = /"parts":\{"count":\d+,"sha256":"[0-9a-f]{64}","stream":"(refUpdates-[^"\\]+)"/;

async function namedParts(lines: ExportLines): Promise<ReadonlySet<StreamName>> {
  const named = new Set<StreamName>();
  for await (const line of lines) {
    const [, stream] = NAMED_PARTS.exec(line) ?? [];
    if (stream !== undefined) named.add(partsStream({ stream }));
  }
  return named;
}

/** Parts come before the push that names them, and mean nothing without it. */
function keepPart(parts: ReadonlyMap<StreamName, StoredRefUpdate[]>, entry: ParsedEntry): void {
  const kept = parts.get(entry.stream);
  if (kept === undefined) return;
  for (const update of readEvent(refUpdatesEventKinds, entry).data.updates) kept.push(update);
}

function withParts(
  digest: Pick<Digest, 'sha256'>,
  parts: Map<StreamName, StoredRefUpdate[]>,
  entry: ParsedEntry,
): ParsedEntry {
  if (entry.type !== 'RefsUpdated' || categoryOf(entry.stream) !== 'repository') return entry;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, entry);
  if (event.type !== 'RefsUpdated' || event.data.parts === null || event.data.updates.length > 0) return entry;
  const stream = partsStream(event.data.parts);
  const updates = parts.get(stream) ?? [];
  checkParts(digest, event.data.parts, updates);
  parts.delete(stream);
  return { ...entry, data: { ...entry.data, updates } };
}
