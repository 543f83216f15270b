/**
 * Places in long lists as text: where the next page of a list begins. The API gives and takes them, and so do links of
 * the website.
 *
 * Invariants: what one function writes, the other parses to the same place. No other text is a place.
 */
import { type EventId, parseTimestamp, parseUuid, type RepositoryId } from '../../core/kernel/ids.ts';
import type { LedgerPlace } from '../../core/ports/usage-ledger.ts';
import type { TokenActivityPlace } from '../../core/use-cases/tokens/token-activity.ts';

/** Returns the text of a place in the ledger: its members, separated by tildes. */
export function ledgerPlaceText({ at, eventId, index }: LedgerPlace): string {
  return `${at}~${eventId}~${index}`;
}

/** Returns null for a text that is not a place in the ledger. */
export function parseLedgerPlace(text: string): LedgerPlace | null {
  const [time = '', id = '', index = '', ...rest] = text.split('~');
  const at = parseTimestamp(time);
  const eventId = parseUuid<EventId>(id);
  if (at === null || eventId === null || !/^\d{1,9}$/.test(index) || rest.length > 0) return null;
  return { at, eventId, index: Number(index) };
}

/** Returns the text of a place in the activity of an access token: its members, separated by tildes. */
export function activityPlaceText({ changes, used }: TokenActivityPlace): string {
  return used === null ? `${changes}` : `${changes}~${used.minute}~${used.repositoryId}`;
}

/** Returns null for a text that is not a place in the activity. */
export function parseActivityPlace(text: string): TokenActivityPlace | null {
  const [changes = '', time, id, ...rest] = text.split('~');
  if (!/^\d{1,9}$/.test(changes) || rest.length > 0) return null;
  if (time === undefined) return { changes: Number(changes), used: null };
  const minute = parseTimestamp(time);
  const repositoryId = parseUuid<RepositoryId>(id ?? '');
  return minute === null || repositoryId === null ? null : { changes: Number(changes), used: { minute, repositoryId } };
}
