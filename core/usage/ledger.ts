/**
 * The usage ledger: by how much each event changes what an account uses, and what a token did with it.
 *
 * Must stay true: the entries of a member add up to what the usage model says (projections/usage), for repositories and
 * storage from the first entry on, for traffic within a month. Whether a repository's storage counts at all depends on its
 * bucket, which its own stream does not name: readers leave out what lies in buckets of users.
 */
import { accountEventKinds } from '../account/events.ts';
import { readEvent } from '../kernel/decider.ts';
import { type Actor, categoryOf, entityIdOf, type RecordedEvent } from '../kernel/envelope.ts';
import { type AccessTokenId, parseUuid, type RepositoryId, type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import type { LedgerEntry, LedgerMember } from '../ports/usage-ledger.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../repository/events.ts';
import { grownBytes, layersChangeOf } from '../repository/layers.ts';
import { transferEventKinds } from './events.ts';

/** The categories of the streams whose events have entries. */
export const LEDGER_CATEGORIES: readonly string[] = ['account', 'repository', 'transfer'];

export interface LedgerRow extends LedgerEntry {
  readonly reads: number;
  readonly writes: number;
  /** The address that a write came from, as a vault reference. */
  readonly addressRef: string | null;
}

/** Returns the entries of an event. Those with a `delta` of 0 change no figure: the token may have written all the same. */
export function ledgerRowsOf(recorded: RecordedEvent): readonly LedgerRow[] {
  switch (categoryOf(recorded.stream)) {
    case 'account':
      return ofAccount(recorded);
    case 'repository':
      return ofRepository(recorded);
    case 'transfer':
      return ofTransfer(recorded);
    default:
      return [];
  }
}

function ofAccount(recorded: RecordedEvent): readonly LedgerRow[] {
  const event = readEvent(accountEventKinds, recorded);
  if (event.type === 'RepositoryCreated' || event.type === 'RepositoryRestored') {
    return [entry(recorded, 'repos', 1, uuid(event.data.repository_id))];
  }
  return event.type === 'RepositoryDeleted' ? [entry(recorded, 'repos', -1, uuid(event.data.repository_id))] : [];
}

function ofRepository(recorded: RecordedEvent): readonly LedgerRow[] {
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  const repository = uuid<RepositoryId>(entityIdOf(recorded.stream));
  const change = layersChangeOf(event);
  const stored = change === null ? [] : [entry(recorded, 'storage_bytes', grownBytes(change), repository)];
  if (event.type !== 'RefsUpdated') return stored;
  const pushed = entry(recorded, 'ingress_bytes', event.data.received_bytes, repository);
  return [{ ...pushed, writes: 1, addressRef: recorded.sourceAddressRef }, ...stored];
}

function entry(recorded: RecordedEvent, member: LedgerMember, delta: number, repository: RepositoryId): LedgerRow {
  const { id, occurredAt, actor } = recorded;
  const index = member === 'storage_bytes' ? 1 : 0;
  const place = { at: occurredAt, eventId: id, index };
  return { ...place, member, delta, repositoryId: repository, tokenId: tokenOf(actor), ...NO_USE };
}

const NO_USE: Pick<LedgerRow, 'reads' | 'writes' | 'addressRef'> = { reads: 0, writes: 0, addressRef: null };

/** One entry for each reader and repository, and one for the bytes of those that the event had no room for. */
function ofTransfer(recorded: RecordedEvent): readonly LedgerRow[] {
  const { minute, sent_bytes, by_reader } = readEvent(transferEventKinds, recorded).data;
  const place = { at: timestamp(minute), eventId: recorded.id };
  const about = { ...place, ...NO_USE, member: 'transfer_bytes' as const };
  const entries = by_reader.map((sum, index): LedgerRow => {
    const repositoryId = parseUuid<RepositoryId>(sum.repository_id);
    return { ...about, index, delta: sum.sent_bytes, repositoryId, tokenId: tokenOf(sum.reader), reads: sum.reads };
  });
  const rest = entries.reduce((left, { delta }) => left - delta, sent_bytes);
  return [...entries, { ...about, index: entries.length, delta: rest, repositoryId: null, tokenId: null }];
}

function tokenOf({ kind, id }: Pick<Actor, 'kind' | 'id'>): AccessTokenId | null {
  return kind === 'token' ? parseUuid<AccessTokenId>(id) : null;
}

/** Returns the calendar month (UTC) of an instant, as `YYYY-MM`. */
export function monthOf(instant: Timestamp): string {
  return instant.slice(0, 7);
}
