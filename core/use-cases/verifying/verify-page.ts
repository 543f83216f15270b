/**
 * Verifies a page of the log: each event's form, its leaf in the tree of its account, and the vault record of its
 * source address.
 *
 * Invariants: it keeps nothing between two pages. An entry that was taken out of the log is found at the next entry of
 * the account that is left, since the place before that one is looked at too; the last entry of an account is looked at
 * by verify-account.ts.
 */
import { accounts } from '../../account/evolve.ts';
import { leafText } from '../../audit/entry.ts';
import { leafHash } from '../../audit/tree.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { LogPosition, RecordedEvent, StreamName } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { parseVaultRef } from '../../kernel/vault-ref.ts';
import type { AccountLogReader, EntryPlace } from '../../ports/account-log.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Entities } from '../../runtime/entities.ts';
import { isEntryOf } from '../../runtime/log-time.ts';
import { tellingChanges } from './changed.ts';
import { checkEvent } from './check-event.ts';
import { readPage } from './read-page.ts';
import { reportChange } from './verify-trees.ts';

export interface PageContext {
  readonly events: Pick<EventStore, 'readAll' | 'readStream'>;
  readonly entities: Pick<Entities, 'get' | 'barrier'>;
  readonly digest: Digest;
  readonly vault: Pick<Vault, 'discloseAll'>;
  readonly readModels: Pick<AccountLogReader, 'accountLogCaughtUp' | 'entryPlaceOf' | 'entryPlaces'>;
}

/** Reports a fault of what belongs to the account; of the service for null. */
export type Report = (account: AccountId | null, text: string) => void;

export interface VerifiedPage {
  /** Where the next page begins; null at the end of the log. */
  readonly next: LogPosition | null;
  readonly sizeBytes: number;
}

/** A small page, because each event may be almost as large as an append may be. */
const PAGE_EVENTS = 100;

export async function verifyPage(context: PageContext, after: LogPosition, report: Report): Promise<VerifiedPage> {
  const { page, unreadable } = await readPage(context.events, after, PAGE_EVENTS);
  const last = page.at(-1)?.position ?? after;
  await context.readModels.accountLogCaughtUp(last);
  await checkForms(context, page, after, report);
  const texts = new Map(page.map((event) => [event, leafText(event)]));
  for (const [account, entries] of entriesByAccount(page)) {
    await checkEntries(context, account, entries, { texts, end: last, fault: (text) => report(account, text) });
  }
  for (const [account, events] of addressesByAccount(page)) {
    const fault = (text: string): void => report(account, text);
    await tellingChanges(fault, () => checkAddresses(context, account, events, fault));
  }
  const sizeBytes = [...texts.values()].reduce((sum, { length }) => sum + length, 0);
  if (unreadable !== null) {
    report(null, unreadable.message);
    return { next: unreadable.position, sizeBytes };
  }
  return { next: page.length < PAGE_EVENTS ? null : last, sizeBytes };
}

async function checkForms(
  context: PageContext,
  page: readonly RecordedEvent[],
  after: LogPosition,
  report: Report,
): Promise<void> {
  const revisions = new Map<StreamName, number>();
  let position = after;
  for (const event of page) {
    const fault = (text: string): void => report(event.accountId, text);
    const where = `${event.stream} revision ${event.revision}`;
    if (event.position <= position) fault(`${where} is at position ${event.position}, not after ${position}`);
    position = event.position;
    const before = revisions.get(event.stream);
    if (before !== undefined && event.revision !== before + 1) fault(`${where} follows revision ${before}`);
    revisions.set(event.stream, event.revision);
    await checkEvent(context, event, { fault, onRead: () => undefined });
  }
}

function entriesByAccount(page: readonly RecordedEvent[]): ReadonlyMap<AccountId, readonly RecordedEvent[]> {
  const entries = page.filter((event) => event.accountId !== null && isEntryOf(event.accountId, event));
  return groupByAccount(entries);
}

function groupByAccount(events: readonly RecordedEvent[]): ReadonlyMap<AccountId, readonly RecordedEvent[]> {
  const groups = new Map<AccountId, RecordedEvent[]>();
  for (const event of events) {
    if (event.accountId === null) continue;
    const group = groups.get(event.accountId) ?? [];
    group.push(event);
    groups.set(event.accountId, group);
  }
  return groups;
}

interface EntryReports {
  /** The canonical texts of the page's events. */
  readonly texts: ReadonlyMap<RecordedEvent, string>;
  /** The last position of the page. */
  readonly end: LogPosition;
  readonly fault: (text: string) => void;
}

/** Compares an account's entries in a page with the places that they got when they were appended. */
async function checkEntries(
  context: PageContext,
  account: AccountId,
  entries: readonly RecordedEvent[],
  { texts, end, fault }: EntryReports,
): Promise<void> {
  const { digest, readModels } = context;
  const expected = new Map<string, EntryPlace>();
  const passed = new Set<string>();
  for (const event of entries) {
    let place = expected.get(event.id);
    if (place === undefined) {
      place = (await readModels.entryPlaceOf(account, event.id)) ?? undefined;
      if (place === undefined) {
        const where = `${event.stream} revision ${event.revision} (event ${event.id})`;
        fault(`${where} is not an entry that the log of account ${account} got: it was moved or inserted`);
        continue;
      }
      // From the place before it: the entry there must still be in the log.
      const range = { from: Math.max(place.sequence - 1, 0), to: place.sequence + entries.length };
      const places = await readModels.entryPlaces(account, null, { ...range, limit: range.to - range.from });
      for (const one of places) expected.set(one.eventId, one);
    }
    passed.add(event.id);
    if (isAt(event, place) && leafHash(digest, texts.get(event) ?? '') === place.leaf) continue;
    await reportChange(context, account, place, fault);
  }
  for (const place of expected.values()) {
    if (!passed.has(place.eventId) && place.position <= end) await reportChange(context, account, place, fault);
  }
}

function isAt({ stream, revision, position }: RecordedEvent, place: EntryPlace): boolean {
  return stream === place.stream && revision === place.revision && position === place.position;
}

function addressesByAccount(page: readonly RecordedEvent[]): ReadonlyMap<AccountId, readonly RecordedEvent[]> {
  return groupByAccount(page.filter(({ sourceAddressRef }) => sourceAddressRef !== null));
}

/** The records of an account that is erased are gone, and the last of them may go while this looks. */
async function checkAddresses(
  { vault, entities }: PageContext,
  account: AccountId,
  events: readonly RecordedEvent[],
  fault: (text: string) => void,
): Promise<void> {
  const refs = new Set(events.flatMap(({ sourceAddressRef }) => parseVaultRef(sourceAddressRef ?? '') ?? []));
  const records = [...refs].map((ref) => ({ field: 'source-address', ref }) as const);
  const found = await vault.discloseAll(account, records);
  const missing = [...refs].find((ref) => !found.has(ref));
  if (missing === undefined) return;
  await entities.barrier();
  if ((await entities.get(accounts, account)).state.status === 'erased') return;
  const first = events.find(({ sourceAddressRef }) => sourceAddressRef === missing);
  const where = `${first?.stream} revision ${first?.revision}`;
  fault(`${where} names the vault record ${missing} of account ${account}, which is not there`);
}
