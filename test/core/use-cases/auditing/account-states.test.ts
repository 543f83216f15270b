/** The state of an account as of a moment, from the log. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { leafText } from '../../../../core/audit/entry.ts';
import { type LogPosition, type RecordedEvent, streamName } from '../../../../core/kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../../../core/kernel/ids.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import {
  ACCOUNT_STATES_AT_ONCE_MAX,
  type AccountStates,
  createAccountStates,
} from '../../../../core/use-cases/auditing/account-states.ts';
import { ENTRIES_READ_LENGTH_MAX } from '../../../../core/use-cases/auditing/limits.ts';
import { withUpdatesInPlace } from '../../../../core/use-cases/pushing/restore-wide-updates.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { startNode } from '../../../support/node.ts';
import { appendRandomAccount } from '../../../support/random-account.ts';
import { Appender } from '../../../support/read-models.ts';
import { branch, moved, oid } from '../../../support/repository-history.ts';
import { createDice } from '../../../support/seeded.ts';
import { settle, watchLog } from '../../../support/watched-log.ts';

/** Smaller than those of the service, so that short logs reach them. */
const BOUNDS = { snapshotEntries: 500, refsMax: 100 };

/** A node that shows states of accounts. */
async function openStates() {
  const log = watchLog();
  const snapshots = createMemorySnapshots();
  const append = new Appender(log);
  const node = await startNode(log, { snapshots });
  const faults: unknown[] = [];
  const onFault = (_what: string, cause: unknown): void => void faults.push(cause);
  const complete = (event: RecordedEvent) => withUpdatesInPlace({ events: log, digest }, event);
  const past = createPastEntities({ events: log, entities: node.entities, snapshots, complete, onFault });
  const readModels = createMemoryAccountLog({ events: log, digest });
  const context = {
    events: log,
    readModels,
    past,
    snapshots,
    complete,
    digest,
    clock: node.clock,
    onFault,
    foldBounds: BOUNDS,
  };
  return { log, append, node, snapshots, faults, context, states: createAccountStates(context) };
}

const NEVER = new AbortController().signal;

/** Returns the text, or the code of the refusal. */
async function shown(
  states: AccountStates,
  account: AccountId,
  at: Timestamp | null,
  seen: LogPosition,
): Promise<string> {
  const state = await states.stateAt(account, at, { seen, signal: NEVER });
  if ('refused' in state) return state.refused.code;
  let text = '';
  for await (const piece of state.chunks) text += piece;
  state.close();
  return text;
}

/** Appends entries to an account, many at a time, until it has this many. */
async function grow(append: Appender, account: AccountId, from: number, to: number): Promise<void> {
  const plan = (n: number) => ({ type: 'PlanChanged', data: { plan: n % 2 === 0 ? 'FREE' : 'PRO' } });
  for (let at = from; at < to; at += 100) {
    const events = Array.from({ length: Math.min(100, to - at) }, (_, n) => plan(at + n));
    append.now = plusMs(append.now, 100);
    await append.together(streamName('account', account), account, events);
  }
}

describe('The state of an account from the log', () => {
  test('is the same from the first entry and from a snapshot, which any node may have left', async () => {
    const { append, context, states, log } = await openStates();
    const account = await append.account('ada');
    const start = append.now;
    await grow(append, account, 1, BOUNDS.snapshotEntries + 300);
    const cold = await shown(states, account, null, append.last);
    const early = plusMs(start, 500);
    const fromStart = await shown(states, account, early, append.last);
    const other = createAccountStates(context);
    let entriesRead = 0;
    log.on.read = (): void => void (entriesRead += 1);
    assert.equal(await shown(other, account, null, append.last), cold);
    // The pages of 200 entries after the snapshot, each read as one run of a stream.
    assert.equal(entriesRead, 2);
    assert.equal(await shown(other, account, early, append.last), fromStart);
    assert.equal(JSON.parse(fromStart).sequence, 501);
  });

  test('has its snapshots before anybody asks for it, if the log is long', async () => {
    const { append, context, states, log, faults, snapshots } = await openStates();
    const account = await append.account('ada');
    const short = await append.account('eve');
    await grow(append, account, 1, 2 * BOUNDS.snapshotEntries + 10);
    await states.keepSnapshots(NEVER);
    let pagesRead = 0;
    log.on.read = (): void => void (pagesRead += 1);
    await states.keepSnapshots(NEVER);
    assert.equal(pagesRead, 0, 'nothing to do');
    await shown(createAccountStates(context), account, null, append.last);
    assert.equal(pagesRead, 1, 'the entries behind the snapshot');
    assert.equal(await snapshots.latest(streamName('accountState', short), 20_007), null);
    assert.deepEqual(faults, []);
  });

  // The attack: somebody who can write to the table of snapshots, or a restored backup, shows another past.
  test('is not read from a snapshot whose last entry the log does not hold, nor from a broken one', async () => {
    const { append, snapshots, states, faults } = await openStates();
    const account = await append.account('ada');
    await grow(append, account, 1, BOUNDS.snapshotEntries + 1);
    const right = await shown(states, account, null, append.last);
    const stream = streamName('accountState', account);
    const known = await snapshots.latest(stream, 20_007);
    assert.ok(known !== null, 'the version of this test is that of the code');
    const text = JSON.stringify(known.state).replace('"ada"', '"mallory"');
    await snapshots.save({ ...known, state: JSON.parse(text) });
    assert.match(await shown(states, account, null, append.last), /"mallory"/, 'the snapshot is used');
    const { lastEventId } = JSON.parse(text);
    await snapshots.save({ ...known, state: JSON.parse(text.replace(lastEventId, account)) });
    assert.equal(await shown(states, account, null, append.last), right);
    await snapshots.save({ ...known, state: { account: null } });
    assert.equal(await shown(states, account, null, append.last), right);
    assert.equal(faults.length, 1);
  });

  // The attack: an account has the largest entries that fit, and asks for its state with all the requests it may.
  test('reads as many entries in one step as have the bound of length together, and not one more', async () => {
    const { append, states, log } = await openStates();
    const account = await append.account('ada');
    const id = await append.repository(account, 'large');
    const stream = streamName('repository', id);
    let [entries, most, reads] = [0, 0, 0];
    const { readStream } = log;
    const counted = async (...wanted: Parameters<typeof readStream>) => {
      const events = await readStream(...wanted);
      [reads, entries] = [reads + 1, entries + events.length];
      const length = events.reduce((sum, event) => sum + leafText(event).length, 0);
      most = Math.max(most, length);
      return events;
    };
    Object.assign(log, { readStream: counted });
    const push = (push_options: readonly string[]) => append.push(account, id, { push_options });
    await push(['']);
    const [first] = await readStream(stream, { direction: 'forwards', limit: 1 });
    assert.ok(first !== undefined);
    const rest = leafText(first).length;
    // Four of them have the bound exactly, in the one stream; the account's own two entries are read beside them.
    const own = await readStream(streamName('account', account), { direction: 'forwards', limit: 9 });
    const others = own.reduce((sum, event) => sum + leafText(event).length, rest);
    for (let n = 0; n < 3; n += 1) {
      const length = n < 2 ? 700_000 : ENTRIES_READ_LENGTH_MAX - others - 2 * 700_000;
      await push(['x'.repeat(length - rest)]);
    }
    await shown(states, account, null, append.last);
    assert.deepEqual([reads, entries], [2, 6], 'each stream in one read');
    assert.equal(most, ENTRIES_READ_LENGTH_MAX - own.reduce((sum, event) => sum + leafText(event).length, 0));
    await push(['x']);
    [entries, most, reads] = [0, 0, 0];
    await shown(states, account, null, append.last);
    assert.deepEqual([reads, entries], [3, 7], 'the last in a read of its own');
  });

  test('holds wide pushes, and the refs of repositories that have more than the fold keeps', async () => {
    const { append, states, context } = await openStates();
    const account = await append.account('ada');
    const id = await append.repository(account, 'large');
    const count = BOUNDS.refsMax + 1;
    const updates = Array.from({ length: count }, (_, n) => moved(branch(`x-${n}`), null, oid('a1')));
    for (let at = 0; at < count; at += 2_000) {
      await append.push(account, id, { updates: updates.slice(at, at + 2_000) });
    }
    const moment = append.now;
    append.now = plusMs(append.now, 1_000);
    await append.push(account, id, { updates: [moved(branch('x-0'), oid('a1'), null)] });
    const refsAt = async (at: Timestamp | null) =>
      JSON.parse(await shown(states, account, at, append.last)).repositories[0].refs.length;
    assert.deepEqual([await refsAt(moment), await refsAt(null)], [count, count - 1]);
    const other = await appendRandomAccount(append, createDice(9), 60);
    context.clock.set(append.now);
    assert.equal(JSON.parse(await shown(states, other, null, append.last)).account.username, 'ada');
  });

  test('is refused before the account was made, and in the future', async () => {
    const { append, states, node } = await openStates();
    const account = await append.account('ada');
    const made = append.now;
    assert.equal(await shown(states, account, plusMs(made, -1), append.last), 'account-not-found');
    assert.equal(await shown(states, account, plusMs(node.clock.now(), 1), append.last), 'moment-in-future');
  });

  // The attack: one account asks for its state a thousand times at the same time, or many accounts do.
  test('is made for one request of an account at a time, and for few of all; who leaves the line frees it', async () => {
    const { append, states } = await openStates();
    const ada = await append.account('ada');
    const ask = (account: AccountId, signal: AbortSignal = NEVER) =>
      states.stateAt(account, null, { seen: append.last, signal });
    const first = await ask(ada);
    assert.ok('close' in first);
    const leaving = new AbortController();
    const left = ask(ada, leaving.signal);
    let second: unknown = null;
    const waiting = ask(ada).then((state) => (second = state));
    const others = [];
    for (let n = 1; n <= ACCOUNT_STATES_AT_ONCE_MAX; n += 1) others.push(await append.account(`other-${n}`));
    const taken = await Promise.all(others.slice(1).map((account) => ask(account)));
    let last: unknown = null;
    const lastWaiting = ask(others[0] as AccountId).then((state) => (last = state));
    await settle();
    assert.deepEqual([second, last], [null, null]);
    leaving.abort(new Error('The client went away'));
    await assert.rejects(left, /went away/);
    first.close();
    await settle();
    assert.equal([second, last].filter((state) => state !== null).length, 1, 'a slot for one of the two');
    for (const state of taken) if ('close' in state) state.close();
    await Promise.all([waiting, lastWaiting]);
    assert.ok(second !== null && last !== null);
  });
});
