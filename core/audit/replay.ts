/**
 * Rebuilds the state of an account from the lines of an export alone.
 *
 * Must stay true: it folds the same entries by the same code as the service (account-fold.ts), so the digest is that of
 * the service unless one of them lies. It checks that the lines are the log from its first entry on, and that the parts
 * of a wide push are those that the push names; a verifier checks the rest.
 */
import { readEvent } from '../kernel/decider.ts';
import { categoryOf, type StreamName } from '../kernel/envelope.ts';
import { later, type Timestamp } from '../kernel/ids.ts';
import type { NextTurn } from '../kernel/turns.ts';
import type { Digest } from '../ports/digest.ts';
import {
  refUpdatesEventKinds,
  type RepositoryEvent,
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

/**
 * Returns the account as of the moment, or as of the last line for null. Reads no line after the first entry with a later
 * log time. Rejects with `ReplayError` for a line that cannot be the log's next.
 */
export async function replayExport(
  lines: AsyncIterable<string> | Iterable<string>,
  at: Timestamp | null,
  { digest, nextTurn }: ReplayContext,
): Promise<AccountStateFold> {
  const fold = newAccountFold();
  const parts = new Map<StreamName, StoredRefUpdate[]>();
  let number = 0;
  for await (const text of lines) {
    number += 1;
    try {
      const line = parseExportLine(text);
      if ('checkpoint' in line) return fold;
      const { entry } = line;
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

/** Parts come before the push that names them, and mean nothing without it. */
function keepPart(parts: Map<StreamName, StoredRefUpdate[]>, entry: ParsedEntry): void {
  if (categoryOf(entry.stream) !== 'refUpdates') return;
  const { updates } = readEvent(refUpdatesEventKinds, entry).data;
  parts.set(entry.stream, [...(parts.get(entry.stream) ?? []), ...updates]);
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
