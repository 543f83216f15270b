/**
 * A server under attack: one account attacks it, or a stranger, while another account works; at the end the figures
 * are noted beside their targets, and the bounds are asserted.
 *
 * Invariants: the server survives in the same process and reports no internal error; all of its processes together
 * stay below 1 GiB; the other account is always answered. Times are printed and never asserted.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Plan } from '../../core/account/plans.ts';
import { answerTime, type Watched, type WatchedServer, watch } from './attack-watch.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { noteFigure } from './figures.ts';
import { type Account, createAccount, createRepository, git, newWorkTree } from './strata.ts';
import { type SharedParts, sharedParts, startNode } from './strata-on-postgres.ts';
import { tempDir } from './temp-dir.ts';

const MIB = 1024 * 1024;
const MEMORY_BYTES_MAX = 1024 * MIB;
/** The watch sees what is usual for this long before the attack. */
const CALM_MS = 2_000;
const TARGETS = { othersP99Ms: 250, loopP99Ms: 100, recoveryMs: 15_000 };
const RECOVERY_SPAN_MS = 60_000;

export interface Stage extends WatchedServer {
  readonly shared: SharedParts;
  readonly attacker: Account;
}

/** Starts a server with an attacker's account, and another account with a small repository that is cloned. */
export async function setStage(
  ending: Ending,
  options: { readonly env?: Readonly<Record<string, string>>; readonly plan?: Plan } = {},
): Promise<Stage> {
  const shared = await sharedParts(ending);
  const loopFile = path.join(await tempDir(ending), 'loop.json');
  await writeFile(loopFile, '{"p99Ms":0,"maxMs":0}');
  const probe = pathToFileURL(path.join(import.meta.dirname, 'loop-delay.ts')).href;
  const measured = { NODE_OPTIONS: `--import=${probe}`, LOOP_DELAY_FILE: loopFile };
  const strata = await startNode(ending, shared, { ...measured, ...options.env });
  const attacker = await createAccount(strata, 'mallory', options.plan ?? 'FREE');
  const other = await createAccount(strata, 'ada', 'FREE');
  const work = await newWorkTree(ending);
  await writeFile(path.join(work, 'file'), randomBytes(256 * 1024));
  await git(work, ['add', 'file']);
  await git(work, ['commit', '--quiet', '-m', 'Add a file']);
  await git(work, ['push', '--quiet', await createRepository(strata, other, 'work'), 'main']);
  return { strata, shared, layersDir: shared.layersDir, loopFile, attacker, other, repository: 'work' };
}

/** What the attack may cost at most. */
export interface Bounds {
  readonly diskBytesMax: number;
  /** The server itself and its helper processes are among them. */
  readonly processesMax: number;
  /** Events appended during the attack, by whomever. */
  readonly eventsMax: number;
}

/** Where a test states no other. */
const BOUNDS: Bounds = { diskBytesMax: 128 * MIB, processesMax: 64, eventsMax: 1_200 };

export interface AttackFigures extends Watched {
  readonly events: number;
  /** How long after the attack the other account's answers were as fast as before; null if not within a minute. */
  readonly recoveryMs: number | null;
}

interface RunningTest extends Ending {
  readonly task: { readonly meta: { figures?: readonly string[] } };
}

/**
 * Runs the attack to its end while the other account works, notes the figures under `name`, and asserts the bounds.
 * The attack ends by itself, within a bounded time.
 */
export async function underAttack(
  test: RunningTest,
  stage: Stage,
  name: string,
  attack: () => Promise<void>,
  bounds: Partial<Bounds> = {},
): Promise<AttackFigures> {
  const { strata, shared } = stage;
  const calm = await watch(test, stage);
  await sleep(CALM_MS);
  const before = await calm();
  const head = await shared.log.head();

  const end = await watch(test, stage);
  let ended: Watched | null = null;
  cleanUp(test, async () => void (ended ?? (await end())));
  await attack();
  const recoveryMs = await recovery(stage, before);
  ended = await end();
  const events = (await shared.log.since(head)).length;
  const figures: AttackFigures = { ...ended, events, recoveryMs };

  noteFigure(test, lineOf(name, figures));
  assert.equal(strata.process.exitCode ?? strata.process.signalCode, null, 'the server ended');
  assert.doesNotMatch(strata.log(), /"status":500|"level":"(error|fatal)"/, 'the server had an internal error');
  assert.deepEqual(figures.failures, [], 'the other account was not answered');
  assert.ok(figures.memoryBytesMax < MEMORY_BYTES_MAX, `memory: ${figures.memoryBytesMax}`);
  const { diskBytesMax, processesMax, eventsMax } = { ...BOUNDS, ...bounds };
  assert.ok(figures.diskBytesMax <= diskBytesMax, `disk: ${figures.diskBytesMax}`);
  assert.ok(figures.processesMax <= processesMax, `processes: ${figures.processesMax}`);
  assert.ok(figures.events <= eventsMax, `events: ${figures.events}`);
  return figures;
}

/** Resolves to the time until five answers in a row were at most twice as slow as before, or below 50 ms. */
async function recovery(stage: Stage, before: Watched): Promise<number | null> {
  const usualMs = Math.max(50, 2 * before.answers.p99);
  const begun = performance.now();
  let recoveredAt = begun;
  for (let row = 0; row < 5; ) {
    const took = await answerTime(stage);
    row = took !== null && took <= usualMs ? row + 1 : 0;
    if (row === 0) recoveredAt = performance.now();
    if (recoveredAt - begun > RECOVERY_SPAN_MS) return null;
    await sleep(20);
  }
  return recoveredAt - begun;
}

function lineOf(name: string, figures: AttackFigures): string {
  const { answers, clones, loop, memoryBytesMax, diskBytesMax, processesMax, events, recoveryMs } = figures;
  const recovered = recoveryMs === null ? 'not recovered' : `recovered in ${(recoveryMs / 1_000).toFixed(1)} s`;
  return [
    `${name}: others p50 ${answers.p50.toFixed(0)}, p99 ${answers.p99.toFixed(0)} ms (target ${TARGETS.othersP99Ms})`,
    `clones p50 ${clones.p50.toFixed(0)}, max ${clones.max.toFixed(0)} ms`,
    `event loop p99 ${loop.p99Ms.toFixed(0)} ms (target ${TARGETS.loopP99Ms}), max ${loop.maxMs.toFixed(0)} ms`,
    `${recovered} (target ${TARGETS.recoveryMs / 1_000} s)`,
    `memory ${mebibytes(memoryBytesMax)}, disk ${mebibytes(diskBytesMax)}`,
    `${processesMax} processes, ${events} events`,
  ].join('; ');
}

function mebibytes(bytes: number): string {
  return `${(bytes / MIB).toFixed(0)} MiB`;
}
