/**
 * The usage ledger: by how much each event changes what an account uses, what a token did with it, and who read and
 * wrote a repository.
 *
 * Invariants: the entries of a member add up to what the usage model says (projections/usage), for repositories and
 * storage from the first entry on, for traffic within a month. Whether a repository's storage counts at all depends on
 * its bucket, which its own stream does not name: readers leave out what lies in buckets of users. Of reads there are
 * the minutes and their sums by day: readers show one or the other (core/ports/usage-ledger.ts).
 */
import { accountEventKinds } from '../account/events.ts';
import { readEvent } from '../kernel/decider.ts';
import {
  type Actor,
  accessTokenOf,
  categoryOf,
  entityIdOf,
  type RecordedEvent,
  type StreamName,
} from '../kernel/envelope.ts';
import { parseUuid, plusMs, type RepositoryId, type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../kernel/limits.ts';
import type { LedgerEntry, LedgerMember } from '../ports/usage-ledger.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../repository/events.ts';
import { grownBytes, layersChangeOf } from '../repository/layers.ts';
import { transferEventKinds, type UsageRecorded, usageEventKinds } from './events.ts';

/** The categories of the streams whose events have entries. */
export const LEDGER_CATEGORIES: readonly string[] = ['account', 'repository', 'transfer', 'usage'];

export interface LedgerRow extends LedgerEntry {
  /** Who caused it; null for reads of those that the event has no room for. */
  readonly reader: Actor | null;
  readonly reads: number;
  readonly writes: number;
  /** Those of the writes that restored refs; the others are pushes. */
  readonly restores: number;
  /** The addresses that reads and writes came from, as vault references. */
  readonly addressRefs: readonly string[];
  /** For reads within a minute the stream, and the day (UTC) of the append; null for all else. */
  readonly minute: { readonly stream: StreamName; readonly appendedOn: string } | null;
  /** Whether it is a sum by day of reads, which have entries by the minute too as long as their events are kept. */
  readonly isDaySum: boolean;
}

/**
 * Returns the entries of an event. Those with a `delta` of 0 change no figure: the token may have written all the same.
 */
export function ledgerRowsOf(recorded: RecordedEvent): readonly LedgerRow[] {
  switch (categoryOf(recorded.stream)) {
    case 'account':
      return ofAccount(recorded);
    case 'repository':
      return ofRepository(recorded);
    case 'transfer':
      return ofTransfer(recorded);
    case 'usage':
      return ofUsage(recorded);
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
  const { sourceAddressRef } = recorded;
  const restores = event.data.restored === null ? 0 : 1;
  return [
    { ...pushed, writes: 1, restores, addressRefs: sourceAddressRef === null ? [] : [sourceAddressRef] },
    ...stored,
  ];
}

function entry(recorded: RecordedEvent, member: LedgerMember, delta: number, repository: RepositoryId): LedgerRow {
  const { id, occurredAt, actor } = recorded;
  const index = member === 'storage_bytes' ? 1 : 0;
  const place = { at: occurredAt, eventId: id, index };
  return { ...place, member, delta, repositoryId: repository, tokenId: accessTokenOf(actor), ...NO_USE, reader: actor };
}

const NO_USE = {
  operational: false,
  reader: null,
  reads: 0,
  writes: 0,
  restores: 0,
  addressRefs: [],
  minute: null,
  isDaySum: false,
} satisfies Partial<LedgerRow>;

function ofTransfer(recorded: RecordedEvent): readonly LedgerRow[] {
  const { minute, ...sums } = readEvent(transferEventKinds, recorded).data;
  const of = { stream: recorded.stream, appendedOn: dayOf(recorded.occurredAt) };
  const about = { ...NO_USE, operational: true, at: timestamp(minute), eventId: recorded.id, minute: of };
  return readsIn(sums, 0).map((reads) => ({ ...about, ...reads }));
}

function ofUsage(recorded: RecordedEvent): readonly LedgerRow[] {
  const rows: LedgerRow[] = [];
  for (const { day, ...sums } of readEvent(usageEventKinds, recorded).data.transfer) {
    const about = { ...NO_USE, at: timestamp(`${day}T00:00:00.000Z`), eventId: recorded.id, isDaySum: true };
    for (const reads of readsIn(sums, rows.length)) rows.push({ ...about, ...reads });
  }
  return rows;
}

type DayReads = UsageRecorded['data']['transfer'][number]['by_reader'][number];

interface ReadSums {
  readonly sent_bytes: number;
  readonly received_bytes: number;
  readonly by_reader: readonly (DayReads & { readonly address_refs?: readonly string[] })[];
}

/**
 * For the bytes that were sent, and then for those of refused pushes, if there are any: one entry for each reader and
 * repository, and one for the bytes of those that the event had no room for.
 */
function readsIn(
  { sent_bytes, received_bytes, by_reader }: ReadSums,
  first: number,
): readonly Pick<
  LedgerRow,
  'index' | 'member' | 'delta' | 'repositoryId' | 'tokenId' | 'reader' | 'reads' | 'addressRefs'
>[] {
  const member = 'transfer_bytes' as const;
  const entries = by_reader.map((sum, index) => {
    const repositoryId = parseUuid<RepositoryId>(sum.repository_id);
    const tokenId = accessTokenOf(sum.reader);
    const { reader, sent_bytes: delta, reads, address_refs: addressRefs = [] } = sum;
    return { index: first + index, member, delta, repositoryId, tokenId, reader, reads, addressRefs };
  });
  const rest = entries.reduce((left, { delta }) => left - delta, sent_bytes);
  const index = first + entries.length;
  const others = { repositoryId: null, tokenId: null, reader: null, reads: 0, addressRefs: [] };
  const sent = [...entries, { index, member, delta: rest, ...others }];
  if (received_bytes === 0) return sent;
  const pushed = by_reader.map((sum) => sum.received_bytes);
  const unnamed = pushed.reduce((left, bytes) => left - bytes, received_bytes);
  const received = [...pushed, unnamed].map((delta, nth) => {
    const of = { ...(sent[nth] ?? others), reads: 0, addressRefs: [] };
    return { ...of, index: index + 1 + nth, member: 'ingress_bytes' as const, delta };
  });
  return [...sent, ...received];
}

/** Returns the calendar month (UTC) of an instant, as `YYYY-MM`. */
export function monthOf(instant: Timestamp): string {
  return instant.slice(0, 7);
}

function dayOf(instant: Timestamp): string {
  return instant.slice(0, 10);
}

/** Returns the first day (UTC) whose reads are shown by the minute. The minutes of earlier days may be pruned. */
export function firstDayByMinutes(now: Timestamp, retentionMs: number): string {
  return dayOf(plusMs(now, -Math.max(retentionMs, PENDING_DELIVERY_KEPT_MS)));
}
