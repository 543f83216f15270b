/**
 * Many moments of a long history, each cloned with the real git.
 *
 * `STRATA_PAST_SEED=<n>` repeats the choices of one run.
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { assertCloneIs, momentIn } from '../../support/past-clones.ts';
import { startPastHistory } from '../../support/past-history.ts';
import { createDice } from '../../support/seeded.ts';

const SEED = Number(process.env['STRATA_PAST_SEED'] ?? Date.now() % 2 ** 31);
const STEPS = 300;
const MOMENTS = 200;

test('clones as of 200 moments equal a mirror kept by git at each of them', async (context) => {
  const dice = createDice(SEED);
  const history = await startPastHistory(context);
  const outcomes = { equal: 0, expired: 0 };
  try {
    for (let n = 0; n < STEPS; n += 1) {
      await history.step(dice);
      if (!dice.chance(MOMENTS / STEPS / 2)) continue;
      const state = dice.pick(history.states);
      outcomes[await assertCloneIs(context, history, momentIn(dice, state), state)] += 1;
    }
    while (outcomes.equal + outcomes.expired < MOMENTS) {
      const state = dice.pick(history.states);
      outcomes[await assertCloneIs(context, history, momentIn(dice, state), state)] += 1;
    }
  } catch (error) {
    throw new Error(`Seed ${SEED}`, { cause: error });
  }
  for (const count of Object.values(history.counts)) assert.ok(count > 0, JSON.stringify(history.counts));
  // A purge late in the history lets go of most moments.
  assert.ok(outcomes.equal > MOMENTS / 10, JSON.stringify(outcomes));
}, 1_800_000);
