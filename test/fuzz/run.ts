/**
 * A fuzz run: sends inputs until its bounds, looks for faults every ten seconds and at the end, and counts.
 *
 * Invariants: whatever is found is printed with the inputs that may have caused it, in the form that `--replay`
 * takes. An input is counted when its sending is over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plan } from '../../core/account/plans.ts';
import { treeCpuSeconds } from '../bench/processes.ts';
import type { Ending } from '../support/cleanup.ts';
import { createHonest, type Honest } from './honest.ts';
import { type FileSamples, fileInput, fileSamples } from './in-process.ts';
import { diceOf, FILES, type Input, inputOf, KINDS } from './inputs.ts';
import { createLanes, type Lanes, type Sent } from './lanes.ts';
import type { Scene } from './making.ts';
import type { FuzzOptions } from './options.ts';
import { keepUsable, makeScene } from './scene.ts';
import { type Service, startService } from './service.ts';
import { createWatch, type Watch } from './watch.ts';

const ROUND_MS = 10_000;
/** The plans of the accounts that send inputs. */
const PLANS: readonly Plan[] = ['PRO', 'FREE', 'PLATFORM', 'PRO', 'FREE', 'PLATFORM'];
const SHOWN_BYTES_MAX = 1_500;
const FAULTS_MAX = 50;

export interface KindCount {
  sent: number;
  answered: number;
  /** Answers by the hundreds of their status. */
  readonly statuses: Map<number, number>;
  tooOften: number;
}

export interface FuzzResult {
  readonly seed: number;
  readonly inputs: number;
  readonly seconds: number;
  readonly kinds: ReadonlyMap<string, KindCount>;
  readonly honest: Pick<Honest, 'rounds' | 'longestMs'>;
  readonly memoryBytesMax: number;
  /** For each input, on average: of the server without PostgreSQL, and of this process. */
  readonly cpuMs: { readonly server: number; readonly fuzzer: number };
  readonly descriptors: { readonly before: number; readonly after: number };
  readonly faults: readonly string[];
}

interface Run {
  readonly options: FuzzOptions;
  readonly say: (text: string) => void;
  readonly service: Service;
  readonly scene: Scene;
  readonly samples: FileSamples;
  readonly watch: Watch;
  readonly faults: string[];
  readonly kinds: Map<string, KindCount>;
  /** Set while a round runs. */
  deadline: number;
  next: number;
  over: number;
}

export async function fuzz(ending: Ending, options: FuzzOptions, say: (text: string) => void): Promise<FuzzResult> {
  const service = await startService(ending);
  const scene = await makeScene(ending, service, PLANS);
  const honest = await createHonest(ending, service);
  await honest.round();
  const run: Run = {
    ...{ options, say, service, scene, samples: await fileSamples() },
    ...{ watch: createWatch(service), faults: [], kinds: new Map(), deadline: 0, next: options.replay ?? 0, over: 0 },
  };
  for (const { name } of [...KINDS, { name: 'heads' }, FILES]) run.kinds.set(name, newCount());
  // What a start has logged is not the inputs' doing.
  for (const fault of await run.watch.lookQuiet()) say(`At the start, ${fault}`);
  const descriptors = { before: service.descriptors() };
  const working = honest.start((what) => report(run, `the honest client: ${what}`));
  const [since, serverSeconds, own] = [performance.now(), treeCpuSeconds(service.pid), process.cpuUsage()];
  try {
    await sendInRounds(run);
  } finally {
    await working.end();
  }
  const seconds = (performance.now() - since) / 1_000;
  const used = process.cpuUsage(own);
  const server = (1_000 * (treeCpuSeconds(service.pid) - serverSeconds)) / run.over;
  const cpuMs = { server, fuzzer: (used.user + used.system) / 1_000 / run.over };
  for (const fault of await run.watch.lookQuiet()) report(run, fault);
  const { rounds, longestMs } = honest;
  return {
    ...{ seed: options.seed, inputs: run.over, seconds, kinds: run.kinds, honest: { rounds, longestMs } },
    cpuMs,
    memoryBytesMax: run.watch.memoryBytesMax,
    descriptors: { ...descriptors, after: service.isRunning() ? service.descriptors() : 0 },
    faults: run.faults,
  };
}

async function sendInRounds(run: Run): Promise<void> {
  const { options, service, watch } = run;
  const lanes = createLanes(service.port, (sent) => count(run, sent));
  const end = performance.now() + (options.seconds ?? Number.POSITIVE_INFINITY) * 1_000;
  const last = options.replay === null ? (options.inputs ?? Number.POSITIVE_INFINITY) : options.replay + 1;
  while (performance.now() < end && run.next < last && service.isRunning() && run.faults.length < FAULTS_MAX) {
    const first = run.next;
    run.deadline = Math.min(end, performance.now() + ROUND_MS);
    await sendRound(run, lanes, last);
    for (const fault of await watch.lookQuiet()) {
      report(run, `among the inputs ${options.seed}:${first} to ${options.seed}:${run.next - 1}: ${fault}`);
    }
    if (service.isRunning()) await keepUsable(service, run.scene);
    run.say(`${run.over} inputs, ${Math.round(service.isRunning() ? service.memoryBytes() / 2 ** 20 : 0)} MiB`);
  }
}

/** Sends for ten seconds, and looks at the server every second. */
async function sendRound(run: Run, lanes: Lanes, last: number): Promise<void> {
  const { options, scene, samples, service } = run;
  let isSending = true;
  const next = async (): Promise<Input | null> => {
    while (run.next < last && performance.now() < run.deadline && service.isRunning()) {
      const index = run.next++;
      const dice = diceOf(options.seed, index);
      const input = inputOf(scene, options.seed, index, dice);
      if (options.replay !== null && input !== null) run.say(shown(input));
      if (input !== null) return input;
      await fileInput(dice, samples).catch((error: unknown) => {
        report(run, `input ${options.seed}:${index}, a file: ${error instanceof Error ? error.stack : String(error)}`);
      });
      countOf(run, FILES.name).sent += 1;
      run.over += 1;
    }
    return null;
  };
  const looking = (async () => {
    while (isSending) {
      for (const fault of run.watch.look()) report(run, `before input ${options.seed}:${run.next}: ${fault}`);
      await sleep(1_000);
    }
  })();
  await lanes.run(next);
  isSending = false;
  await looking;
}

function count(run: Run, { input, status }: Sent): void {
  const counted = countOf(run, input.kind);
  counted.sent += 1;
  run.over += 1;
  if (run.options.replay !== null) run.say(`Answered ${status === 0 ? 'nothing' : status}`);
  if (status === 0) return;
  counted.answered += 1;
  if (status === 429) counted.tooOften += 1;
  const hundred = Math.floor(status / 100);
  counted.statuses.set(hundred, (counted.statuses.get(hundred) ?? 0) + 1);
  if (status >= 500 && status !== 503 && status !== 501) {
    report(run, `input ${run.options.seed}:${input.index} was answered ${status}\n${shown(input)}`);
  }
}

function countOf({ kinds }: Run, name: string): KindCount {
  const known = kinds.get(name) ?? newCount();
  kinds.set(name, known);
  return known;
}

function newCount(): KindCount {
  return { sent: 0, answered: 0, statuses: new Map(), tooOften: 0 };
}

function report(run: Run, fault: string): void {
  if (run.faults.length < FAULTS_MAX) run.say(`FAULT ${fault}`);
  run.faults.push(fault);
}

/** The input as text, cut, with the account's secrets: they are of this run alone. */
function shown({ index, kind, account, bytes, sending }: Input): string {
  const { cutAt, pauseMs, after } = sending;
  const how = `${cutAt === null ? 'whole' : `up to byte ${cutAt}`}, ${pauseMs} ms, then ${after}`;
  const text = JSON.stringify(bytes.toString('latin1', 0, SHOWN_BYTES_MAX)).replaceAll('\\r\\n', '\n    ');
  return `  ${index}: ${kind} of ${account}, ${bytes.length} bytes, sent ${how}\n    ${text}`;
}
