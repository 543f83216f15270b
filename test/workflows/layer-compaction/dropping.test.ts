/** The step of a compaction, on a repository of the real git. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { RETENTION_MS_MIN } from '../../../apps/server/settings.ts';
import type { AccountCommand } from '../../../core/account/commands.ts';
import { decideAccount } from '../../../core/account/decide.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../../core/kernel/ids.ts';
import { ACCOUNT_CLOSED_SPAN_MS, COMPACTION_IDLE_MS } from '../../../core/kernel/limits.ts';
import type { LayerCompactions } from '../../../core/ports/layer-compactions.ts';
import type { LayerDrops } from '../../../core/ports/layer-drops.ts';
import { execute } from '../../../core/runtime/execute.ts';
import { DROPPING_WAIT_MS, type DropsContext } from '../../../workflows/layer-compaction/drops.ts';
import { DROPPING_RETRY_MS } from '../../../workflows/layer-compaction/limits.ts';
import { createCompactionSteps } from '../../../workflows/layer-compaction/steps.ts';
import { accepted, newWebhook } from '../../support/accounts.ts';
import { startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { keepLog } from '../../support/log.ts';
import { CAUSE } from '../../support/node.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;

/** A repository of 12 layers, with something to drop. */
async function fixture(
  context: TestContext,
  keep?: LayerDrops['keep'],
  more: Partial<Pick<DropsContext, 'notifiedTo' | 'retentionMs'>> = {},
) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { node, git, account, database } = reading;
  for (let n = 0; n < 11; n += 1) {
    await reading.push({ 'refs/heads/main': git.commit({ [`file-${n}`]: randomBytes(200) }) });
  }
  await reading.push({ 'refs/heads/main': git.commit({ forced: randomBytes(200) }, { parents: [] }) });
  const { id } = await reading.current();
  const rows: Timestamp[] = [];
  const done: number[] = [];
  const compactions: LayerCompactions = {
    find: async () => ({ account, repository: id }),
    want: async (_wanted, dueAt) => {
      rows.push(dueAt);
    },
    done: async (_repository, revision) => {
      done.push(revision);
    },
  };
  const log = keepLog();
  const steps = createCompactionSteps({
    ...{ ...node, layers: layersIn(database.layers), compactions, log },
    objects: keep === undefined ? database.database : { ...database.database, keep },
    ...{ failpoint: async () => undefined, retentionMs: RETENTION_MS, notifiedTo: async () => null, ...more },
  });
  const due = { id, step: 'compact', revision: 7, at: node.clock.now() } as const;
  const run = (signal = NEVER) => steps.compact(due, signal);
  const layers = async () => [...(await reading.current()).entity.state.layers].length;
  return { reading, clock: node.clock, run, layers, rows, done, log };
}

describe('The step of a compaction', () => {
  test('merges small layers, and drops nothing that is inside the retention', async (context) => {
    const { run, reading, layers, done } = await fixture(context);
    await run();
    assert.deepEqual([await layers(), (await reading.current()).entity.state.clean, done], [1, false, [7]]);
  });

  test('looks once more after a merge, for pushes that came in between and asked for nothing', async (context) => {
    const { clock, run, rows } = await fixture(context);
    await run();
    const once = [plusMs(clock.now(), COMPACTION_IDLE_MS)];
    assert.deepEqual(rows, once);
    await run();
    assert.deepEqual(rows, once, 'nothing was left to merge');
  });

  test('drops what is due to be dropped', async (context) => {
    const { run, reading, clock, layers, rows, done } = await fixture(context);
    clock.advance(RETENTION_MS);
    await run();
    assert.deepEqual(rows, [plusMs(clock.now(), COMPACTION_IDLE_MS)], 'pushes came in between that asked for nothing');
    assert.deepEqual([await layers(), (await reading.current()).entity.state.clean, done], [1, true, [7]]);
  });

  test('leaves what a closed account has until it is reopened or erased', async (context) => {
    const { run, reading, clock, rows, done } = await fixture(context);
    const { node, account } = reading;
    clock.advance(RETENTION_MS);
    const eraseAt = plusMs(clock.now(), ACCOUNT_CLOSED_SPAN_MS);
    const decide = async (command: AccountCommand): Promise<void> => {
      const about = { account, cause: CAUSE };
      accepted(await execute(node, accounts, account, about, (state) => decideAccount(state, command)));
    };
    await decide({ type: 'CloseAccount', eraseAt });
    await run();
    assert.deepEqual([rows, done], [[eraseAt], [7]]);
    clock.advance(ACCOUNT_CLOSED_SPAN_MS);
    await run();
    assert.deepEqual(rows.slice(1), [plusMs(clock.now(), DROPPING_RETRY_MS)], 'it may be erased late');
    await decide({ type: 'EraseAccount' });
    await run();
    assert.equal(rows.length, 2);
  });

  test('tries again after hours, when the objects cannot be read, and merges in between', async (context) => {
    let tried = 0;
    const keep = async (): Promise<never> => {
      tried += 1;
      throw new Error('the disk is full');
    };
    const { clock, run, layers, rows, done, log } = await fixture(context, keep);
    clock.advance(RETENTION_MS);
    const [soon, again] = [plusMs(clock.now(), COMPACTION_IDLE_MS), plusMs(clock.now(), DROPPING_RETRY_MS)];
    await run();
    assert.deepEqual([tried, rows, done, log.lines.length, await layers()], [1, [soon, again], [7], 1, 1]);
    await run();
    assert.deepEqual([tried, rows], [1, [soon, again, again]], 'not at every look');
    clock.set(again);
    await run();
    assert.equal(tried, 2);
  });

  test('comes back in a minute where webhooks are still to be notified of what it would drop', async (context) => {
    const late = { notifiedTo: async () => LOG_START, retentionMs: RETENTION_MS_MIN };
    const { clock, run, layers, rows, reading } = await fixture(context, undefined, late);
    await newWebhook(reading.node, reading.account);
    clock.advance(RETENTION_MS_MIN);
    await run();
    assert.deepEqual(rows, [plusMs(clock.now(), COMPACTION_IDLE_MS), plusMs(clock.now(), DROPPING_WAIT_MS)]);
    assert.deepEqual([await layers(), (await reading.current()).entity.state.clean], [1, false]);
  });

  test('takes the time of an engine for a drop only once', async (context) => {
    const ending = new AbortController();
    const keep = async (): Promise<never> => {
      ending.abort(new Error('the time is over'));
      throw new Error('killed');
    };
    const { clock, run, rows, done } = await fixture(context, keep);
    clock.advance(RETENTION_MS);
    await assert.rejects(run(ending.signal), /killed/);
    assert.deepEqual([rows, done], [[], []]);
    await run();
    const again = plusMs(clock.now(), DROPPING_RETRY_MS);
    assert.deepEqual([rows, done], [[plusMs(clock.now(), COMPACTION_IDLE_MS), again], [7]]);
  });
});
