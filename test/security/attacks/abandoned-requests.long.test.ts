/**
 * Clients that leave at any byte and at any moment of any kind of request, many at the same time, for minutes, by
 * accounts of each plan. test/security/abandoned-requests.test.ts does the same at each call that a request makes, one
 * by one.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { beforeAll, describe, test } from 'vitest';
import type { Plan } from '../../../core/account/plans.ts';
import { advertisement, fetchV0, fetchV2, lsRefs, push } from '../../fuzz/git-inputs.ts';
import { type Draft, requestBytes } from '../../fuzz/heads.ts';
import { diceOf, type Input, type Sending } from '../../fuzz/inputs.ts';
import { createLanes } from '../../fuzz/lanes.ts';
import { type FuzzAccount, type Making, PUSHED, type Scene } from '../../fuzz/making.ts';
import { operationDraft } from '../../fuzz/rest-inputs.ts';
import { makeScene } from '../../fuzz/scene.ts';
import { FUZZED_SETTINGS } from '../../fuzz/service.ts';
import { formInput, pageInput } from '../../fuzz/site.ts';
import { leftAfter } from '../../fuzz/watch.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { noteFigure } from '../../support/figures.ts';
import { NO_PROC } from '../../support/git-below.ts';
import { basicAuthorization, commandList } from '../../support/git-wire.ts';
import { packOfLargeCommits } from '../../support/hostile-packs.ts';
import { eventually } from '../../support/processes.ts';
import type { Dice } from '../../support/seeded.ts';
import { skippedFor } from '../../support/skipped.ts';

/**
 * For each plan. All plans, with the start of a server, must fit in a file's limit; else run them one by one
 * (`-t FREE`).
 */
const SPAN_MS = Number(process.env['STRATA_ABANDONED_MS'] ?? 60_000);
/** What the server may take until it has answered and let go of everything. */
const REST_MS = 8 * 60_000;
const PLANS: readonly Plan[] = ['FREE', 'PRO'];
const PARENTS = 1_000_000;
/** Connections to PostgreSQL come and go with the work. */
const DESCRIPTORS_SLACK = 20;
const INTERNAL_ERROR = /"level":"(error|fatal)"|"status":500|unhandled/i;
const ERRORS_SHOWN = 5;

type Make = (making: Making) => Draft;

describe('Clients that leave at any moment', skippedFor(NO_PROC), () => {
  // The attack: a push of 360 bytes, abandoned while the server read its account's quota, ended the process of a
  // default server, and a push of commits with a million parents stalled it. Any free account could send both, again
  // and again.
  const ending = suiteEnding();
  let stage: Stage;
  let scene: Scene;
  let kinds: readonly (readonly [name: string, make: Make])[];

  beforeAll(async () => {
    stage = await setStage(ending, { env: FUZZED_SETTINGS });
    scene = await makeScene(ending, stage.strata, PLANS);
    const { bytes, tip } = packOfLargeCommits({ commits: 1, parents: PARENTS });
    const hostile = Buffer.concat([commandList([{ ref: 'refs/heads/hostile', after: tip }]), bytes]);
    kinds = [
      ...scene.operations.map(
        (operation) => [operation.operationId, (of: Making) => operationDraft(of, operation)] as const,
      ),
      ['an advertisement', advertisement],
      ['ls-refs', lsRefs],
      ['a fetch in version 2', fetchV2],
      ['a fetch in version 0', fetchV0],
      ['a push', push],
      ['a page', pageInput],
      ['a form', formInput],
      ['a commit of a million parents', ({ account }) => pushOf(account, hostile)],
    ];
  });

  for (const plan of PLANS) {
    test(`leave nothing behind, of the plan ${plan}`, { timeout: SPAN_MS + REST_MS }, async (context) => {
      const { strata } = stage;
      const seed = randomInt(2 ** 32);
      const account = scene.accounts.find((one) => one.plan === plan);
      assert.ok(account !== undefined && strata.process.pid !== undefined);
      const { pid } = strata.process;
      const descriptors = descriptorsOf(pid);
      const statuses = new Map<number, number>();
      const failed: string[] = [];
      const lanes = createLanes(Number(new URL(strata.url).port), ({ input, status }) => {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 500) failed.push(`${input.kind}, ${seed}:${input.index}`);
      });
      let index = 0;
      const attack = async (): Promise<void> => {
        const end = performance.now() + SPAN_MS;
        await lanes.run(async () => {
          if (performance.now() > end || strata.process.exitCode !== null) return null;
          return abandoned(account, seed, index++);
        });
        const errors = strata
          .log()
          .split('\n')
          .filter((line) => INTERNAL_ERROR.test(line));
        assert.deepEqual(errors.slice(0, ERRORS_SHOWN), []);
      };
      // Most of the requests would be honest ones, had they not been abandoned: their events are their own.
      const bounds = { eventsMax: 300 * Math.ceil(SPAN_MS / 1_000) };
      await underAttack(context, stage, `abandoned requests, ${plan}`, attack, bounds);
      noteFigure(
        context,
        `abandoned by ${plan}: ${index} requests of ${kinds.length} kinds, seed ${seed}; ${countsOf(statuses)}`,
      );
      assert.deepEqual(failed, []);
      assert.deepEqual(await leftAfter({ ...strata, pid }), []);
      await eventually('the descriptors are closed', () => descriptorsOf(pid) <= descriptors + DESCRIPTORS_SLACK);
      assert.ok(index >= kinds.length, `each kind was sent: ${index}`);
    });
  }

  /** A request as a client would send it, of each kind in turn, that the client abandons. */
  function abandoned(account: FuzzAccount, seed: number, index: number): Input {
    const dice = diceOf(seed, index);
    const [kind, make] = kinds[index % kinds.length] ?? ['nothing', advertisement];
    const bytes = requestBytes(dice, make({ scene, account, dice, isMutated: false }));
    const sending = abandoning(dice, bytes.length);
    return { index, kind, account: account.username, bytes, isHead: false, sending };
  }
});

/** Most requests are cut; some are whole, and their clients leave before the answer, or stay. */
function abandoning(dice: Dice, length: number): Sending {
  const pauseMs = dice.chance(0.3) ? 0 : dice.below(dice.chance(0.9) ? 30 : 1_000);
  const chosen = dice.below(100);
  if (chosen < 40) return { cutAt: dice.below(length), pauseMs, after: 'destroy' };
  if (chosen < 55) return { cutAt: dice.below(length), pauseMs, after: 'end' };
  if (chosen < 90) return { cutAt: null, pauseMs, after: 'destroy' };
  return { cutAt: null, pauseMs: 0, after: 'wait' };
}

function pushOf(account: FuzzAccount, body: Buffer): Draft {
  const headers: Draft['headers'] = [
    ['Authorization', basicAuthorization(account)],
    ['Content-Type', 'application/x-git-receive-pack-request'],
  ];
  return { method: 'POST', target: `/r/${account.username}/${PUSHED}.git/git-receive-pack`, headers, body };
}

function countsOf(statuses: ReadonlyMap<number, number>): string {
  const inOrder = [...statuses].toSorted(([a], [b]) => a - b);
  return inOrder.map(([status, count]) => `${count} × ${status === 0 ? 'none' : status}`).join(', ');
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
