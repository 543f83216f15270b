/**
 * Folds events into the entries of the usage ledger and their sums by month, and into the list of who signed in and
 * what was refused.
 *
 * Invariants: the number of statements does not grow with the events of a batch, nor with the readers of an event.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { LedgerMember } from '../../core/ports/usage-ledger.ts';
import { signIns } from '../../core/sign-in/evolve.ts';
import { usageEventKinds } from '../../core/usage/events.ts';
import { LEDGER_CATEGORIES, type LedgerRow, ledgerRowsOf, monthOf } from '../../core/usage/ledger.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { SignInChanges } from '../sign-ins/changes.ts';
import { UnsummedChanges } from '../unsummed-transfer.ts';
import { usageLedgerTables } from './table.ts';

export const usageLedgerProjection: Projection = {
  name: 'usage_ledger',
  version: 6,
  categories: [...LEDGER_CATEGORIES, signIns.category],
  tables: usageLedgerTables,
  onPoison: 'park',
  weight: ({ data }) => {
    const days: readonly unknown[] = Array.isArray(data['transfer']) ? data['transfer'] : [data];
    const refused: readonly unknown[] = Array.isArray(data['refused_reads']) ? data['refused_reads'] : [];
    return days.reduce((sum: number, day) => sum + readersIn(day), 1 + refused.length);
  },
  open: (table) => ({
    prepare: async (events) => {
      const changes = new Changes();
      for (const event of events) changes.add(event);
      return changes.toWrite(table);
    },
  }),
};

const NO_MINUTE = { stream: null, appended_on: null, position: null };

function minuteOf({ stream, appendedOn }: NonNullable<LedgerRow['minute']>, position: LogPosition): object {
  return { stream, appended_on: appendedOn, position: String(position) };
}

function readersIn(sums: unknown): number {
  const isSums = typeof sums === 'object' && sums !== null && 'by_reader' in sums;
  if (!isSums || !Array.isArray(sums.by_reader)) return 0;
  const hasReceived = 'received_bytes' in sums && sums.received_bytes !== 0;
  return (hasReceived ? 2 : 1) * (sums.by_reader.length + 1);
}

type MonthSums = { readonly account_id: string; readonly month: string } & Record<LedgerMember, number>;

class Changes {
  readonly #entries: object[] = [];
  readonly #months = new Map<string, MonthSums>();
  readonly #storage = new Map<string, { repository_id: string; month: string; storage_bytes: number }>();
  readonly #inBuckets = new Map<string, string>();
  readonly #unsummed = new UnsummedChanges();
  readonly #signIns = new SignInChanges();

  add(recorded: RecordedEvent): void {
    const { accountId, stream, revision } = recorded;
    this.#addBucket(recorded);
    const category = categoryOf(stream);
    const rows = ledgerRowsOf(recorded);
    if (rows.length === 0 && category !== 'usage' && category !== signIns.category) return;
    // Events of these streams always name the account.
    if (accountId === null) throw new TypeError(`${stream} revision ${revision} names no account`);
    if (category === 'transfer') this.#unsummed.addTransfer(accountId, recorded);
    if (category === 'usage') {
      this.#unsummed.addSums(accountId, recorded);
      this.#signIns.sum(accountId, readEvent(usageEventKinds, recorded).data.day);
    }
    if (category === 'transfer' || category === signIns.category) this.#signIns.add(recorded);
    for (const one of rows)
      if (one.delta !== 0 || one.reads + one.writes > 0) this.#addEntry(accountId, one, recorded.position);
  }

  #addBucket(recorded: RecordedEvent): void {
    if (categoryOf(recorded.stream) !== 'account') return;
    const event = readEvent(accountEventKinds, recorded);
    if (event.type !== 'RepositoryCreated' || event.data.storage_bucket_id === null) return;
    this.#inBuckets.set(event.data.repository_id, entityIdOf(recorded.stream));
  }

  #addEntry(account_id: string, row: LedgerRow, position: LogPosition): void {
    const { at, eventId, index, member, delta, repositoryId, tokenId, reader, reads, writes, restores } = row;
    const ids = { repository_id: repositoryId, token_id: tokenId };
    const who = { reader_kind: reader?.kind ?? null, reader_id: reader?.id ?? null };
    const use = { ...who, reads, writes, restores, address_refs: row.addressRefs.join(',') };
    const own = row.minute === null ? NO_MINUTE : minuteOf(row.minute, position);
    const columns = { account_id, at, event_id: eventId, index, member, delta, ...ids, ...use, ...own };
    this.#entries.push({ ...columns, is_day_sum: row.isDaySum });
    // The sums of a month hold the days of reads; their minutes only count until a day has them.
    if (row.minute !== null) return;
    const month = monthOf(at);
    const key = `${account_id} ${month}`;
    const none = { repos: 0, storage_bytes: 0, transfer_bytes: 0, ingress_bytes: 0 };
    const sums = this.#months.get(key) ?? { account_id, month, ...none };
    sums[member] += delta;
    this.#months.set(key, sums);
    if (member !== 'storage_bytes' || repositoryId === null) return;
    const place = `${repositoryId} ${month}`;
    const stored = this.#storage.get(place) ?? { repository_id: repositoryId, month, storage_bytes: 0 };
    stored.storage_bytes += delta;
    this.#storage.set(place, stored);
  }

  toWrite(table: TableOf): Write {
    return {
      lists: [
        {
          items: this.#entries,
          text: `INSERT INTO ${table('ledger_entries')} SELECT * FROM json_to_recordset($1) AS e(account_id uuid, at text,
            event_id uuid, index integer, member text, delta bigint, repository_id uuid, token_id uuid,
            reader_kind text, reader_id text, reads integer, writes integer, restores integer, address_refs text, stream text, appended_on text, position bigint, is_day_sum boolean)`,
        },
        {
          items: [...this.#months.values()],
          text: `INSERT INTO ${table('ledger_months')} AS m SELECT * FROM json_to_recordset($1) AS r(account_id uuid,
              month text, repos bigint, storage_bytes bigint, transfer_bytes bigint, ingress_bytes bigint)
            ON CONFLICT (account_id, month) DO UPDATE SET repos = m.repos + excluded.repos,
              storage_bytes = m.storage_bytes + excluded.storage_bytes,
              transfer_bytes = m.transfer_bytes + excluded.transfer_bytes,
              ingress_bytes = m.ingress_bytes + excluded.ingress_bytes`,
        },
        {
          items: [...this.#storage.values()],
          text: `INSERT INTO ${table('ledger_storage')} AS s
            SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, month text, storage_bytes bigint)
            ON CONFLICT (repository_id, month) DO UPDATE SET storage_bytes = s.storage_bytes + excluded.storage_bytes`,
        },
        ...this.#unsummed.toLists(table('ledger_minutes'), table('ledger_recorded')),
        ...this.#signIns.toLists(table('sign_in_facts'), table('ledger_recorded')),
        {
          items: [...this.#inBuckets].map(([repository_id, account_id]) => ({ repository_id, account_id })),
          text: `INSERT INTO ${table('ledger_in_buckets')}
            SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid)`,
        },
      ],
    };
  }
}
