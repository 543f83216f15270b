/**
 * `npm run soak`: a server on which honest and hostile clients of 51 accounts work for some minutes, and whether what
 * it takes of the machine is flat at the end.
 *
 * Invariants: everything runs on the loopback interface and is bounded in time. Whatever happens, the soak ends the
 * server that it started, by id, and removes its folder. It exits with 1 if the server ended or had an internal error,
 * if an honest client failed, if a figure grows that should be flat, or if anything is left over when all clients have
 * gone.
 */
import { randomInt } from 'node:crypto';
import { chmod, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { createAuthority } from '../support/certificates.ts';
import { cleanUp } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
import { createOwnEnding } from '../support/own-ending.ts';
import { isAlive } from '../support/processes.ts';
import { answering, startReceiver } from '../support/receiver.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import { chooseTestGit } from '../support/test-git.ts';
import { createWebhook } from '../support/webhook-receiver.ts';
import { createFilling, FILLING_FIGURES, FREE_PLAN, LONG_ANSWER } from './filling.ts';
import { isTelling, judge, renderFigures, SAMPLES_MIN, type Sample } from './flatness.ts';
import { type Act, HONEST_ACTS } from './honest.ts';
import { HOSTILE_ACTS } from './hostile.ts';
import { readOptions, type SoakOptions, USAGE, UsageError } from './options.ts';
import { descriptorsOf, type Measured, measure, processesOf } from './sampling.ts';
import { createQueue, type Person, type Scene, setScene } from './scene.ts';
import { type SoakServer, startServer } from './server.ts';

/** For two processors. */
const HONEST_WORKERS = 3;
const HOSTILE_WORKERS = 2;
const SAMPLED_EVERY_MS = 10_000;
/** In a short run there are at least this many samples. */
const SAMPLES_LEAST = 12;
const QUIET_SPAN_MS = 60_000;
/** Beyond what was open before the clients came; files of packs that stay open are among them. */
const DESCRIPTORS_LEFT_MAX = 48;
const WEBHOOKS = 10;
const FAILURES_SHOWN = 20;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** What clients did. */
class Tally {
  /** How long each took, in milliseconds, by name. */
  readonly #done = new Map<string, number[]>();
  readonly failures: string[] = [];
  failed = 0;
  operations = 0;

  ended(name: string, ms: number): void {
    this.operations += 1;
    const spans = this.#done.get(name);
    if (spans === undefined) this.#done.set(name, [ms]);
    else spans.push(ms);
  }

  fail(name: string, person: Person, error: unknown): void {
    this.failed += 1;
    const reason = error instanceof Error ? error.message : String(error);
    if (this.failures.length < FAILURES_SHOWN) this.failures.push(`${name} of ${person.account.username}: ${reason}`);
  }

  text(): string {
    return [...this.#done].map(([name, spans]) => `${name} ${spans.length} (${spansText(spans)})`).join(', ');
  }
}

function spansText(spans: readonly number[]): string {
  const sorted = spans.toSorted((a, b) => a - b);
  const at = (share: number): string => String(Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0));
  return `median ${at(0.5)} ms, p95 ${at(0.95)} ms`;
}

interface Crew {
  readonly name: 'honest' | 'hostile' | 'filling';
  readonly people: readonly Person[];
  readonly acts: ReadonlyMap<string, { readonly weight: number; readonly act: Act }>;
  readonly workers: number;
  /** Whether what fails counts. */
  readonly isJudged: boolean;
}

/** Lets a crew work until the time is over. */
async function work(scene: Scene, crew: Crew, tally: Tally, seed: number, endsAt: number): Promise<void> {
  const queue = createQueue(crew.people, createDice(seed));
  const names = [...crew.acts].flatMap(([name, { weight }]) => Array.from({ length: weight }, () => name));
  const worker = async (dice: Dice): Promise<void> => {
    while (Date.now() < endsAt && scene.server.ended() === null) {
      const name = dice.pick(names);
      const person = queue.take();
      const begun = Date.now();
      try {
        await crew.acts.get(name)?.act(scene, person, dice);
      } catch (error) {
        if (crew.isJudged) tally.fail(name, person, error);
      } finally {
        queue.giveBack(person);
        tally.ended(name, Date.now() - begun);
      }
    }
  };
  await Promise.all(Array.from({ length: crew.workers }, (_, n) => worker(createDice(seed + n + 1))));
}

async function soak({ minutes, seed }: SoakOptions, folder: string, end: (step: () => unknown) => void) {
  const authority = createAuthority();
  const authorityFile = path.join(folder, 'authority.pem');
  await writeFile(authorityFile, authority.cert);
  const receiver = await startReceiver(
    { onTestFinished: end },
    authority.issue(['127.0.0.1', 'localhost']),
    answering('HTTP/1.1 204 No Content\r\n\r\n'),
  );
  const failing = await startReceiver(
    { onTestFinished: end },
    authority.issue(['127.0.0.1', 'localhost']),
    answering(LONG_ANSWER),
  );
  const plans = path.join(folder, 'plans.json');
  await writeFile(plans, JSON.stringify({ FREE: FREE_PLAN }));
  const server = await startServer(folder, {
    STRATA_PLANS: plans,
    STRATA_ALLOW_PRIVATE_TARGETS: 'true',
    NODE_EXTRA_CA_CERTS: authorityFile,
  });
  let stopped: Promise<string | null> | null = null;
  const stop = (): Promise<string | null> => (stopped ??= server.stop());
  end(stop);
  const database = new Pool({ connectionString: server.database, max: 1 });
  database.on('error', () => undefined);
  let closed: Promise<void> | null = null;
  const closeDatabase = (): Promise<void> => (closed ??= database.end());
  end(closeDatabase);

  say(`Making 51 accounts (seed ${seed})`);
  const scene = await setScene(server, folder);
  for (const person of scene.honest.slice(0, WEBHOOKS)) {
    await createWebhook(server, person.account, `https://127.0.0.1:${receiver.port}/hook`);
  }
  const filling = await createFilling(scene, scene.filling, `https://127.0.0.1:${failing.port}/hook`);
  const idle = { processes: processesOf(server.pid).length, descriptors: descriptorsOf(server.pid) };

  say(`Clients work for ${minutes} minutes`);
  const spanMs = minutes * 60_000;
  const begun = Date.now();
  const tallies = { honest: new Tally(), hostile: new Tally(), filling: new Tally() };
  const crews: readonly Crew[] = [
    { name: 'honest', people: scene.honest, acts: HONEST_ACTS, workers: HONEST_WORKERS, isJudged: true },
    { name: 'hostile', people: scene.hostile, acts: HOSTILE_ACTS, workers: HOSTILE_WORKERS, isJudged: false },
    { name: 'filling', people: [scene.filling], acts: filling.acts, workers: 1, isJudged: false },
  ];
  const working = Promise.all(
    crews.map((crew, n) => work(scene, crew, tallies[crew.name], seed + n * 1_000, begun + spanMs)),
  );
  working.catch(() => undefined);
  const samples: Sample[] = [];
  let last: Measured | null = null;
  const everyMs = Math.min(SAMPLED_EVERY_MS, spanMs / SAMPLES_LEAST);
  for (let n = 0; Date.now() < begun + spanMs && server.ended() === null; n += 1) {
    await sleep(Math.max(0, begun + n * everyMs - Date.now()));
    const machine = await measure(server, database);
    const values = new Map([...machine.values, ...(await filling.measure(database))]);
    last = { figures: [...machine.figures, ...FILLING_FIGURES], values };
    samples.push({ operations: Object.values(tallies).reduce((sum, { operations }) => sum + operations, 0), values });
  }
  await working;

  say('Clients have gone; waiting until nothing is under way');
  const left = await untilQuiet(server, idle);
  await closeDatabase();
  const own = processesOf(server.pid).filter((pid) => pid !== server.pid);
  const died = server.ended();
  const badEnd = await stop();
  const alive = own.filter((pid) => isAlive(pid));
  const faults = server.faults();
  const judged = (last?.figures ?? []).map((figure) => judge(figure, samples));

  say(`\nSeed ${seed}, ${minutes} minutes, ${samples.length} samples; ${os.availableParallelism()} processors.`);
  say(`Honest clients: ${tallies.honest.text()}.`);
  say(`An account that fills the disk: ${tallies.filling.text()}.`);
  say(`Hostile clients: ${tallies.hostile.text()}. Webhooks received: ${receiver.requests.length}.`);
  say(`Times that the server or PostgreSQL had to wait too long for the machine: ${faults.waits}.\n`);
  const telling = judged.filter(isTelling);
  say(renderFigures(telling));
  say(`${judged.length - telling.length} other figures of tables did not change.\n`);
  const growing = judged.filter(({ verdict }) => verdict === 'GROWS').map(({ name }) => `${name} grows`);
  return [
    ...(died === null ? [] : [`the server ended by itself: ${died}`]),
    ...(badEnd === null ? [] : [`the server did not stop in order: ${badEnd}`]),
    ...(faults.count === 0 ? [] : [`${faults.count} faults:\n${faults.lines.join('\n')}`]),
    ...(tallies.honest.failed === 0
      ? []
      : [`${tallies.honest.failed} acts of honest clients failed:\n${tallies.honest.failures.join('\n')}`]),
    ...(samples.length < SAMPLES_MIN ? ['there are too few samples'] : growing),
    ...(receiver.requests.length === 0 ? ['no webhook arrived'] : []),
    ...left,
    ...(alive.length === 0 ? [] : [`processes outlive the server: ${alive.join(', ')}`]),
  ];
}

/** Waits until the server holds no more than it did before its clients came. Resolves with what is left over. */
async function untilQuiet(
  server: SoakServer,
  idle: { readonly processes: number; readonly descriptors: number },
): Promise<readonly string[]> {
  for (const deadline = Date.now() + QUIET_SPAN_MS; ; await sleep(500)) {
    const left: string[] = [];
    if (server.ended() !== null) return left;
    const files = await leftovers(server);
    if (files.length > 0) left.push(`files are left over: ${files.slice(0, 10).join(', ')}`);
    const processes = processesOf(server.pid).length;
    if (processes > idle.processes) left.push(`${processes} processes are left, of ${idle.processes} before`);
    const descriptors = descriptorsOf(server.pid);
    if (descriptors > idle.descriptors + DESCRIPTORS_LEFT_MAX) {
      left.push(`${descriptors} file descriptors are left, of ${idle.descriptors} before`);
    }
    if (left.length === 0 || Date.now() > deadline) return left;
  }
}

async function main(): Promise<number> {
  chooseTestGit();
  let options: SoakOptions;
  try {
    options = readOptions(process.argv.slice(2), () => randomInt(2 ** 32));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}`);
    return 2;
  }
  const folder = await mkdtemp(path.join(await realpath(os.tmpdir()), 'strata-soak-'));
  // When root runs the soak, the embedded PostgreSQL runs as another user, who must be able to traverse this folder.
  await chmod(folder, 0o711);
  const { ending, end } = createOwnEnding();
  ending.onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  try {
    const problems = await soak(options, folder, (step) => cleanUp(ending, step));
    for (const problem of problems) say(`FAILED: ${problem}`);
    if (problems.length === 0) say('Everything that should be flat is flat, and nothing is left over.');
    return problems.length === 0 ? 0 : 1;
  } finally {
    await end();
  }
}

process.exitCode = await main();
