/**
 * Places in long lists as text: where the next page of a list begins. The API gives and takes them, and so do links of
 * the website.
 *
 * Invariants: what one function writes, the other parses to the same place. No other text is a place.
 */
import type { ActorKind } from '../../core/kernel/envelope.ts';
import { type EventId, parseTimestamp, parseUuid, type RepositoryId } from '../../core/kernel/ids.ts';
import type { LedgerPlace, RepositoryUsePlace } from '../../core/ports/usage-ledger.ts';
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

/** Returns the text of a place among the accesses to a repository: its members, separated by tildes. */
export function accessPlaceText({ minute, wholeDay, kind, id }: RepositoryUsePlace): string {
  return [minute, wholeDay ? 'day' : 'minute', kind, id].join('~');
}

const ACTOR_KINDS: ReadonlySet<string> = new Set(['token', 'user', 'trust_rule', 'system', 'admin']);

function isActorKind(text: string): text is ActorKind {
  return ACTOR_KINDS.has(text);
}

/** Ids, names of policies and of commands. */
const ACTOR_ID = /^[\x21-\x7d]{1,200}( [\x21-\x7d]{1,200}){0,9}$/;

/** Returns null for a text that is not a place among the accesses. */
export function parseAccessPlace(text: string): RepositoryUsePlace | null {
  const [time = '', span = '', kind = '', id = '', ...rest] = text.split('~');
  const minute = parseTimestamp(time);
  if (minute === null || (span !== 'day' && span !== 'minute') || !isActorKind(kind)) return null;
  return ACTOR_ID.test(id) && rest.length === 0 ? { minute, wholeDay: span === 'day', kind, id } : null;
}
