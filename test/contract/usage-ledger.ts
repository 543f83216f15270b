/** The contract of core/ports/usage-ledger.ts, a part of that of the read models. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type Actor, streamName } from '../../core/kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, timestamp } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { TOKEN_USE_ADDRESSES_MAX } from '../../core/kernel/limits.ts';
import { NEWEST_FORMS, type WrittenForms } from '../../core/ports/running-processes.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import type {
  LedgerEntry,
  LedgerPlace,
  RepositoryUse,
  RepositoryUsePlace,
  TokenUse,
  TokenUsePlace,
  UsageLedgerReader,
} from '../../core/ports/usage-ledger.ts';
import type { Ending } from '../support/cleanup.ts';
import { type Appender, layer, newUuid } from '../support/read-models.ts';

type Reads = UsageLedgerReader & UsageReader & { caughtUp(position: Appender['last']): Promise<void> };
type Open = (context: Ending) => Promise<{ readonly append: Appender; readonly reads: Reads }>;

type UsesPage = { readonly after: RepositoryUsePlace | null; readonly limit: number };

const WHOLE = { after: null, limit: 1_000, minutesFrom: '' };
const DELTAS = ({ member, delta }: LedgerEntry): string => `${member} ${delta}`;

const transfer = (append: Appender, account: AccountId, minute: string, data: object): Promise<unknown> =>
  append.append(streamName('transfer', `${account}-node`), account, 'TransferRecorded', {
    ...{ minute, sent_bytes: 0, received_bytes: 0, by_reader: [], refused_reads: [] },
    ...data,
  });

const expire = (append: Appender, account: AccountId, id: RepositoryId, gone: ReturnType<typeof layer>) =>
  append.append(streamName('repository', id), account, 'LayersExpired', {
    ...{ layers: [{ id: gone.id, size_bytes: gone.size_bytes, current: true }], reason: 'purge' },
    ...{ compacted_at: null, shrink_epoch: 1 },
  });

export function usageLedgerContract(open: Open): void {
  test('add up to what the usage says, month by month, from the levels at its beginning', async (context) => {
    const { append, reads } = await open(context);
    append.now = timestamp('2026-10-31T23:59:59.999Z');
    const account = await append.account('ada');
    const [stored, more] = [layer(1_000), layer(70)];
    const kept = await append.repository(account, 'kept');
    const gone = await append.repository(account, 'gone');
    await append.push(account, gone, { layer: stored, received_bytes: 1_100 });
    append.now = timestamp('2026-11-02T10:00:00.000Z');
    await append.push(account, kept, { layer: more, received_bytes: 75 });
    await append.push(account, kept, { received_bytes: 5 });
    await transfer(append, account, '2026-10-31T23:58:00.000Z', { sent_bytes: 40 });
    await transfer(append, account, '2026-11-02T10:00:00.000Z', { sent_bytes: 400 });
    await append.deleteRepository(account, gone, 'gone');
    append.now = timestamp('2026-11-03T10:00:00.000Z');
    await expire(append, account, gone, stored);
    await reads.caughtUp(append.last);
    await reads.usageLedgerCaughtUp(append.last);

    const october = await reads.usageLedger(account, '2026-10', WHOLE);
    assert.deepEqual(october.opening, { repos: 0, storage_bytes: 0 });
    assert.deepEqual(october.totals, { repos: 2, storage_bytes: 1_000, transfer_bytes: 40, ingress_bytes: 1_100 });
    const november = await reads.usageLedger(account, '2026-11', WHOLE);
    assert.deepEqual(november.opening, { repos: 2, storage_bytes: 1_000 });
    assert.deepEqual(
      november.entries.map(DELTAS).toSorted(),
      [
        ...['storage_bytes 70', 'ingress_bytes 75', 'ingress_bytes 5', 'transfer_bytes 400'],
        ...['repos -1', 'storage_bytes -1000'],
      ].toSorted(),
    );
    const { usageOf } = reads;
    const { storageBytes, transferBytes, ingressBytes } = await usageOf(account);
    const used = { storage_bytes: storageBytes, transfer_bytes: transferBytes, ingress_bytes: ingressBytes };
    assert.deepEqual(november.totals, { repos: 1, ...used });
    assert.deepEqual(used, { storage_bytes: 70, transfer_bytes: 400, ingress_bytes: 80 });
    const december = await reads.usageLedger(account, '2026-12', WHOLE);
    assert.deepEqual([december.opening, december.entries], [{ repos: 1, storage_bytes: 70 }, []]);
    const nothing = await reads.usageLedger(newUuid(), '2026-11', WHOLE);
    assert.deepEqual(nothing.totals, { repos: 0, storage_bytes: 0, transfer_bytes: 0, ingress_bytes: 0 });
  });

  test('name the event, the repository and the token of each change', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const token = await append.token(account, 'ci');
    append.actor = { kind: 'token', id: token };
    const id = await append.repository(account, 'engine');
    const other = await append.repository(account, 'other');
    append.actor = { kind: 'trust_rule', id: newUuid() };
    await append.push(account, id, { layer: layer(10), received_bytes: 20 });
    const reader = { kind: 'token', id: token };
    await transfer(append, account, '2026-11-21T10:00:00.000Z', {
      sent_bytes: 100,
      // A person's refused pushes, and those that the event has no room for.
      received_bytes: 9,
      by_reader: [
        { reader, repository_id: id, reads: 2, sent_bytes: 30, received_bytes: 0 },
        { reader: { kind: 'user', id: account }, repository_id: other, reads: 1, sent_bytes: 50, received_bytes: 7 },
      ],
    });
    await reads.usageLedgerCaughtUp(append.last);
    const { entries } = await reads.usageLedger(account, '2026-11', WHOLE);
    const lines = entries.map((one) => [one.member, one.delta, one.repositoryId, one.tokenId]);
    const expected = [
      ['repos', 1, id, token],
      ['repos', 1, other, token],
      ['ingress_bytes', 20, id, null],
      ['storage_bytes', 10, id, null],
      ['transfer_bytes', 30, id, token],
      ['transfer_bytes', 50, other, null],
      ['transfer_bytes', 20, null, null],
      ['ingress_bytes', 7, other, null],
      ['ingress_bytes', 2, null, null],
    ];
    assert.deepEqual(lines.map(String).toSorted(), expected.map(String).toSorted());
    const ofPush = entries
      .filter(({ delta }) => delta === 20 || delta === 10)
      .filter(({ member }) => member !== 'transfer_bytes');
    assert.equal(new Set(ofPush.map(({ eventId }) => eventId)).size, 1, 'one push is one event');
  });

  test('leave out what lies in buckets of users, and keep their traffic', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const own = await append.repository(account, 'own', { storage_bucket_id: newUuid() });
    await append.push(account, own, { layer: layer(1_000), received_bytes: 1_100 });
    await append.deleteRepository(account, own, 'own');
    await reads.usageLedgerCaughtUp(append.last);
    const { entries, totals } = await reads.usageLedger(account, '2026-11', WHOLE);
    assert.deepEqual(entries.map(DELTAS).toSorted(), ['ingress_bytes 1100', 'repos -1', 'repos 1']);
    assert.deepEqual(totals, { repos: 0, storage_bytes: 0, transfer_bytes: 0, ingress_bytes: 1_100 });
    assert.deepEqual((await reads.usageLedger(account, '2026-12', WHOLE)).opening, { repos: 0, storage_bytes: 0 });
  });

  test('show reads by the minute as long as those are kept, and by the day before, with the same totals', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const [token, repository] = [newUuid<AccessTokenId>(), newUuid<RepositoryId>()];
    const reader = { kind: 'token', id: token };
    const read = (bytes: number) => ({
      reader,
      repository_id: repository,
      reads: 1,
      sent_bytes: bytes,
      received_bytes: 0,
    });
    const sum = (day: string, ...days: readonly JsonObject[]): Promise<unknown> =>
      append.append(streamName('usage', account), account, 'UsageRecorded', {
        ...{ day, through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
        transfer: days.map((one) => ({ received_bytes: 0, ...one })),
      });
    append.now = timestamp('2026-11-20T10:01:00.000Z');
    await transfer(append, account, '2026-11-20T10:00:00.000Z', { sent_bytes: 5, by_reader: [read(4)] });
    await transfer(append, account, '2026-11-20T10:01:00.000Z', { sent_bytes: 20, by_reader: [read(20)] });
    append.now = timestamp('2026-11-21T00:00:30.000Z');
    // Sent yesterday and appended today: the sum of yesterday does not hold it.
    await transfer(append, account, '2026-11-20T23:59:00.000Z', { sent_bytes: 300, by_reader: [read(300)] });
    await sum('2026-11-20', { day: '2026-11-20', sent_bytes: 25, by_reader: [{ ...read(24), reads: 2 }] });
    await transfer(append, account, '2026-11-21T00:01:00.000Z', { sent_bytes: 4_000, by_reader: [read(4_000)] });
    const shown = async (minutesFrom: string) => {
      await reads.usageLedgerCaughtUp(append.last);
      const { entries, totals } = await reads.usageLedger(account, '2026-11', { ...WHOLE, minutesFrom });
      assert.equal(
        entries.reduce((all, { delta }) => all + delta, 0),
        totals.transfer_bytes,
      );
      assert.deepEqual(
        entries.map((one) => one.tokenId),
        entries.map((one) => (one.delta === 1 ? null : token)),
      );
      return entries.map(({ at, delta }) => `${at.slice(8, 16)} ${delta}`);
    };
    const minutes = ['20T10:00 1', '20T10:00 4', '20T10:01 20', '20T23:59 300', '21T00:01 4000'];
    assert.deepEqual((await shown('2026-11-20')).toSorted(), minutes);
    const summed = ['20T00:00 1', '20T00:00 24', '20T23:59 300', '21T00:01 4000'];
    assert.deepEqual((await shown('2026-11-21')).toSorted(), summed, 'what no day holds yet stays');
    assert.deepEqual((await shown('2026-11-22')).toSorted(), summed);
    append.now = timestamp('2026-11-22T00:00:30.000Z');
    const late = { day: '2026-11-20', sent_bytes: 300, by_reader: [read(300)] };
    await sum('2026-11-21', late, { day: '2026-11-21', sent_bytes: 4_000, by_reader: [read(4_000)] });
    assert.deepEqual((await shown('2026-11-20')).toSorted(), minutes);
    const days = ['20T00:00 1', '20T00:00 24', '20T00:00 300'];
    assert.deepEqual((await shown('2026-11-21')).toSorted(), [...days, '21T00:01 4000']);
    assert.deepEqual((await shown('2026-11-22')).toSorted(), [...days, '21T00:00 4000']);
    const { uses } = await reads.tokenUses(account, token, { after: null, limit: 10 });
    assert.deepEqual(
      uses.map((use) => use.reads),
      [1, 1, 1, 1],
      'a day is no use of its own',
    );
  });

  test('have refused pushes as ingress, by the minute and then by the day, from versions of events that hold them', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const who = { reader: { kind: 'token', id: newUuid() }, repository_id: newUuid(), reads: 1 };
    /** The event has no room for two of the bytes. */
    const sums = (sent_bytes: number, received_bytes: number): JsonObject => ({
      ...{ sent_bytes, received_bytes: received_bytes + 2 },
      by_reader: [{ ...who, sent_bytes, received_bytes }],
    });
    const sumDay = (day: string, data: JsonObject): Promise<unknown> =>
      append.append(streamName('usage', account), account, 'UsageRecorded', {
        ...{ day, through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
        transfer: [{ day, ...data }],
      });
    const shown = async (minutesFrom: string) => {
      await reads.caughtUp(append.last);
      await reads.usageLedgerCaughtUp(append.last);
      const { entries, totals } = await reads.usageLedger(account, '2026-11', { ...WHOLE, minutesFrom });
      const usage = await reads.usageOf(account);
      assert.deepEqual(totals, { ...totals, transfer_bytes: usage.transferBytes, ingress_bytes: usage.ingressBytes });
      return entries.map(({ at, member, delta }) => `${at.slice(8, 16)} ${member} ${delta}`).toSorted();
    };
    const older: WrittenForms = { versionOf: (type) => ({ TransferRecorded: 3 })[type] ?? 1 };
    append.now = timestamp('2026-11-20T10:01:00.000Z');
    await transfer(append, account, '2026-11-20T10:00:00.000Z', sums(5, 7));
    append.written = older;
    await transfer(append, account, '2026-11-20T10:01:00.000Z', sums(30, 40));
    const received = ['ingress_bytes 2', 'ingress_bytes 7'];
    const minutes = [...received, 'transfer_bytes 5'].map((entry) => `20T10:00 ${entry}`);
    assert.deepEqual(await shown('2026-11-20'), [...minutes, '20T10:01 transfer_bytes 30']);
    append.now = timestamp('2026-11-21T00:00:30.000Z');
    append.written = NEWEST_FORMS;
    await sumDay('2026-11-20', sums(35, 7));
    const first = [...received, 'transfer_bytes 35'].map((entry) => `20T00:00 ${entry}`);
    assert.deepEqual(await shown('2026-11-21'), first);
    append.written = older;
    await transfer(append, account, '2026-11-21T00:00:00.000Z', sums(50, 60));
    append.now = timestamp('2026-11-22T00:00:30.000Z');
    await sumDay('2026-11-21', sums(50, 60));
    assert.deepEqual(await shown('2026-11-22'), [...first, '21T00:00 transfer_bytes 50']);
  });

  test('come in pages that neither repeat nor leave out an entry, also of one event', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const id = await append.repository(account, 'engine');
    const by_reader = Array.from({ length: 5 }, () => ({
      ...{ reader: { kind: 'token', id: newUuid() }, repository_id: id, reads: 1, sent_bytes: 1, received_bytes: 0 },
    }));
    await transfer(append, account, '2026-11-21T09:59:00.000Z', { sent_bytes: 5, by_reader });
    await append.push(account, id, { layer: layer(10), received_bytes: 20 });
    await reads.usageLedgerCaughtUp(append.last);
    const { entries } = await reads.usageLedger(account, '2026-11', WHOLE);
    assert.equal(entries.length, 8);
    const paged: LedgerEntry[] = [];
    for (let after: LedgerPlace | null = null, more = true; more; ) {
      const page: Awaited<ReturnType<Reads['usageLedger']>> = await reads.usageLedger(account, '2026-11', {
        ...{ ...WHOLE, after, limit: 3 },
      });
      paged.push(...page.entries);
      after = page.entries.at(-1) ?? null;
      more = page.hasMore;
      assert.deepEqual(page.totals, { repos: 1, storage_bytes: 10, transfer_bytes: 5, ingress_bytes: 20 });
    }
    assert.deepEqual(paged, entries);
    const times = entries.map(({ at }) => at);
    assert.deepEqual(times, times.toSorted());
  });

  test('say who read, pushed to and restored a repository in each minute, and from where', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const [first, second] = [await append.repository(account, 'first'), await append.repository(account, 'second')];
    const token = newUuid();
    const [near, far] = ['a'.repeat(64), 'b'.repeat(64)];
    const read = (kind: string, id: string, times: number, address_refs: readonly string[] = []) => ({
      reader: { kind, id },
      ...{ repository_id: first, reads: times, sent_bytes: 0, received_bytes: 0, address_refs },
    });
    const minute = timestamp('2026-11-21T10:00:00.000Z');
    append.now = timestamp('2026-11-21T10:00:30.000Z');
    append.actor = { kind: 'token', id: token };
    append.sourceAddressRef = near;
    await append.push(account, first, { received_bytes: 5 });
    await append.push(account, first, { received_bytes: 0, restored: { event_id: newUuid() } });
    await append.push(account, second, { received_bytes: 5 });
    append.actor = { kind: 'admin', id: 'storage adopt' };
    append.sourceAddressRef = null;
    await append.push(account, first, {});
    await transfer(append, account, minute, {
      by_reader: [read('token', token, 2, [far]), read('user', account, 1)],
    });
    await transfer(append, account, '2026-11-21T10:01:00.000Z', { by_reader: [read('user', account, 3)] });
    await reads.usageLedgerCaughtUp(append.last);
    const uses = async (range: { since?: string; until?: string } = {}, page: Partial<UsesPage> = {}) => {
      const [since, until] = [range.since, range.until].map((at) => (at === undefined ? null : timestamp(at)));
      const wanted = { account, repository: first, since: since ?? null, until: until ?? null, minutesFrom: '' };
      return (await reads.repositoryUses(wanted, { after: null, limit: 100, ...page })).uses;
    };
    const row = (kind: 'admin' | 'token' | 'user', id: string, counts: Partial<RepositoryUse>): RepositoryUse => ({
      ...{ minute, wholeDay: false, kind, id, reads: 0, pushes: 0, restores: 0, addressRefs: [], ...counts },
    });
    const later = timestamp('2026-11-21T10:01:00.000Z');
    const expected = [
      row('admin', 'storage adopt', { pushes: 1 }),
      row('token', token, { reads: 2, pushes: 1, restores: 1, addressRefs: [near, far] }),
      row('user', account, { reads: 1 }),
      row('user', account, { reads: 3, minute: later }),
    ];
    assert.deepEqual(await uses(), expected);
    const paged: RepositoryUse[] = [];
    for (let page = await uses({}, { limit: 1 }); page.length > 0; ) {
      paged.push(...page);
      page = await uses({}, { limit: 1, after: page.at(-1) ?? null });
    }
    assert.deepEqual(paged, expected);
    assert.deepEqual(await uses({ since: '2026-11-21T10:00:59.999Z' }), expected, 'the minute of since is included');
    assert.deepEqual(await uses({ since: later }), expected.slice(3));
    assert.deepEqual(await uses({ until: later }), expected.slice(0, 3));
    assert.deepEqual(await uses({ until: '2026-11-21T10:01:00.001Z' }), expected);
    assert.deepEqual(await uses({ until: '9999-12-31T23:59:59.999Z' }), expected);
    const nobody = { account: newUuid<AccountId>(), repository: first, since: null, until: null, minutesFrom: '' };
    assert.deepEqual((await reads.repositoryUses(nobody, { after: null, limit: 100 })).uses, []);
  });

  test('have the reads of a day in one row where its minutes have passed the retention', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const repository = await append.repository(account, 'engine');
    const sum = {
      reader: { kind: 'user', id: account },
      ...{ repository_id: repository, reads: 4, sent_bytes: 9, received_bytes: 0 },
    };
    const day = '2026-11-21';
    append.now = timestamp('2026-11-21T10:01:00.000Z');
    await transfer(append, account, '2026-11-21T10:00:00.000Z', {
      ...{ sent_bytes: 9, by_reader: [{ ...sum, address_refs: [] }] },
    });
    append.now = timestamp('2026-11-22T00:10:00.000Z');
    await append.append(streamName('usage', account), account, 'UsageRecorded', {
      ...{ day, through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
      transfer: [{ day, sent_bytes: 9, received_bytes: 0, by_reader: [sum] }],
    });
    await reads.usageLedgerCaughtUp(append.last);
    const shown = async (minutesFrom: string, since: string | null = null) => {
      const wanted = { account, repository, since: since === null ? null : timestamp(since), until: null, minutesFrom };
      const { uses } = await reads.repositoryUses(wanted, { after: null, limit: 10 });
      return uses.map((use) => `${use.minute.slice(8, 16)} ${use.wholeDay ? 'day' : 'minute'} ${use.reads}`);
    };
    assert.deepEqual(await shown(day), ['21T10:00 minute 4']);
    assert.deepEqual(await shown('2026-11-22'), ['21T00:00 day 4']);
    // Nobody knows when on that day.
    assert.deepEqual(await shown('2026-11-22', '2026-11-21T12:00:00.000Z'), ['21T00:00 day 4']);
    assert.deepEqual(await shown('2026-11-22', '2026-11-22T00:00:00.000Z'), []);
  });

  test('say what a token read and wrote in each minute and repository, and from where', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const token = await append.token(account, 'ci');
    const [first, second] = [await append.repository(account, 'first'), await append.repository(account, 'second')];
    const reader: Actor = { kind: 'token', id: token };
    const read = (repository_id: RepositoryId, times: number, address_refs: readonly string[] = []) => ({
      reader: { kind: 'token', id: token },
      ...{ repository_id, reads: times, sent_bytes: 9, received_bytes: 0, address_refs },
    });
    const minute = timestamp('2026-11-21T10:00:00.000Z');
    const uses = async (after: TokenUsePlace | null = null, limit = 100) =>
      (await reads.tokenUses(account, token, { after, limit })).uses;
    append.actor = reader;
    const refs = Array.from({ length: TOKEN_USE_ADDRESSES_MAX + 1 }, (_, n) => n.toString(16).padStart(64, '0'));
    append.now = timestamp('2026-11-21T10:00:59.999Z');
    for (const ref of refs.slice(1)) {
      append.sourceAddressRef = ref;
      await append.push(account, first, { received_bytes: 0 });
    }
    append.actor = { kind: 'user', id: account };
    await append.push(account, first, { received_bytes: 50 });
    await transfer(append, account, minute, {
      sent_bytes: 18,
      by_reader: [read(first, 2), read(second, 3, refs.slice(1, 3))],
    });
    await transfer(append, account, minute, { sent_bytes: 9, by_reader: [read(second, 4, refs.slice(2, 4))] });
    await transfer(append, account, '2026-11-21T10:01:00.000Z', { sent_bytes: 9, by_reader: [read(first, 1)] });
    await reads.usageLedgerCaughtUp(append.last);
    const writes = TOKEN_USE_ADDRESSES_MAX;
    const inOrder = [
      { minute, repositoryId: first, reads: 2, writes, addressRefs: refs.slice(1) },
      { minute, repositoryId: second, reads: 7, writes: 0, addressRefs: refs.slice(1, 4) },
    ].toSorted((a, b) => (a.repositoryId < b.repositoryId ? -1 : 1));
    const later = { minute: '2026-11-21T10:01:00.000Z', repositoryId: first, reads: 1, writes: 0, addressRefs: [] };
    const expected = [...inOrder, later];
    assert.deepEqual(await uses(), expected);
    const paged: TokenUse[] = [];
    for (let page = await uses(null, 1); page.length > 0; page = await uses(page.at(-1), 1)) paged.push(...page);
    assert.deepEqual(paged, expected);
    assert.deepEqual(await reads.tokenUses(newUuid(), token, { after: null, limit: 1 }), { uses: [], hasMore: false });
    // One address more than are shown.
    append.actor = reader;
    append.sourceAddressRef = refs[0] ?? '';
    await append.push(account, first, {});
    await reads.usageLedgerCaughtUp(append.last);
    const [busy] = (await uses()).filter((use) => use.writes > 0);
    assert.deepEqual([busy?.writes, busy?.addressRefs], [writes + 1, refs.slice(0, writes)]);
    const { entries } = await reads.usageLedger(account, '2026-11', WHOLE);
    assert.ok(
      entries.every(({ delta }) => delta !== 0),
      'what changed no figure is no entry',
    );
  });
}
