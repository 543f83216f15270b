/** Repositories as of a moment: what is read from the log, how often, and how much of it at a time. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { plusMs } from '../../../../core/kernel/ids.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import {
  createPastRepositories,
  PAST_REPOSITORIES_READ_AT_ONCE_MAX,
} from '../../../../core/use-cases/as-of/repository-as-of.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { createApiFixture } from '../../../support/api-fixture.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { TEST_RETENTION_MS } from '../../../support/past-repositories.ts';

const NEVER = new AbortController().signal;

/** A service whose reads of past accounts are counted, and can be held back. */
async function openPast(context: TestContext) {
  const fixture = await createApiFixture();
  context.onTestFinished(() => fixture.close());
  const past = createPastEntities({
    ...{ events: fixture.context.events, entities: fixture.context.entities, snapshots: createMemorySnapshots() },
    complete: async (event) => event,
    onFault: (_what, cause) => {
      throw cause;
    },
  });
  const counts = { reads: 0, reading: 0 };
  let held: Promise<void> | null = null;
  const repositories = createPastRepositories({
    ...fixture.context,
    retentionMs: TEST_RETENTION_MS,
    past: {
      ...past,
      accountAt: async (id, position) => {
        counts.reads += 1;
        counts.reading += 1;
        await held;
        counts.reading -= 1;
        return past.accountAt(id, position);
      },
    },
  });
  const asOf = async (repository: FoundRepository, at = fixture.clock.now(), signal = NEVER) => {
    const seen = await fixture.context.entities.barrier();
    return repositories.asOf(repository, { at }, { seen, signal });
  };
  const hold = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  return { fixture, counts, asOf, hold };
}

describe('A repository as of a moment', () => {
  test('is read from the log once, for all times between the same two events', async (context) => {
    const { fixture, counts, asOf } = await openPast(context);
    const repository = await fixture.repository(await fixture.account('ada'), 'one');
    const at = fixture.clock.now();
    fixture.clock.advance(10_000);
    for (const ms of [0, 1, 9_999]) {
      const found = await asOf(repository, plusMs(at, ms));
      assert.ok(!('denied' in found));
      assert.deepEqual([found.id, found.asOf], [repository.id, { at: plusMs(at, ms) }]);
    }
    assert.equal(counts.reads, 1);
    await fixture.repository(repository.accountId, 'two');
    await asOf(repository);
    assert.equal(counts.reads, 2);
  });

  test('is read once at a time for an account, and a few times at the same time for all', async (context) => {
    const { fixture, counts, asOf, hold } = await openPast(context);
    const found: FoundRepository[] = [];
    for (let n = 0; n <= PAST_REPOSITORIES_READ_AT_ONCE_MAX; n += 1) {
      found.push(await fixture.repository(await fixture.account(`ada${n}`), 'one'));
    }
    const at = fixture.clock.now();
    fixture.clock.advance(1_000);
    const [first] = found;
    assert.ok(first !== undefined);
    await fixture.repository(first.accountId, 'two');
    const release = hold();
    const two = [asOf(first, at), asOf(first)];
    await sleep(20);
    assert.equal(counts.reading, 1);
    const all = found.map((repository) => asOf(repository));
    await sleep(20);
    assert.equal(counts.reading, PAST_REPOSITORIES_READ_AT_ONCE_MAX);
    release();
    for (const outcome of await Promise.all([...two, ...all])) assert.ok(!('denied' in outcome));
  });

  test('is waited for no longer than the client does', async (context) => {
    const { fixture, asOf, hold } = await openPast(context);
    const repository = await fixture.repository(await fixture.account('ada'), 'one');
    const release = hold();
    const reading = asOf(repository);
    const gone = new AbortController();
    const waiting = asOf(repository, fixture.clock.now(), gone.signal);
    await sleep(20);
    gone.abort(new Error('gone'));
    await assert.rejects(waiting, /gone/);
    release();
    assert.ok(!('denied' in (await reading)));
  });
});
