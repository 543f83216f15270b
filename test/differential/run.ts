/**
 * A run of the differential test: cases that a seed makes, each asked of git and of this service, and what differed.
 *
 * Invariants: a difference is reported with the seed and number that `--replay` takes, and as the smallest case that
 * still differs.
 */

import { diceOf } from '../fuzz/inputs.ts';
import type { FuzzOptions } from '../fuzz/options.ts';
import type { Ending } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { observed, toldBy } from './answers.ts';
import { type Case, shown } from './cases.ts';
import { runClient } from './client.ts';
import { type Compared, judge, shownDifference, smallest } from './judging.ts';
import { caseOf } from './making.ts';
import { packReader } from './packs.ts';
import { makeSource } from './repository.ts';
import { type Side, startBackend, startOurs } from './sides.ts';

/** The dice of the repositories; those of cases have numbers from 0 on. */
const REPOSITORY_NUMBER = -1;
const FAULTS_MAX = 20;
const FAULT_LENGTH_MAX = 2_000;
const PROGRESS_EVERY = 100;

export interface Differences {
  readonly cases: number;
  readonly seconds: number;
  /** Cases by kind and by what the first command or request came to at git. */
  readonly kinds: ReadonlyMap<string, number>;
  /** How often each row of meant differences explained a case. */
  readonly meant: ReadonlyMap<string, number>;
  readonly faults: readonly string[];
}

export async function compareWithGit(
  ending: Ending,
  { seed, seconds, inputs, replay }: FuzzOptions,
  say: (text: string) => void,
): Promise<Differences> {
  const folder = await tempDir(ending);
  const source = makeSource(folder, diceOf(seed, REPOSITORY_NUMBER));
  const compare = comparison(folder, packReader(folder, source.path), {
    git: await startBackend(ending, source),
    ours: await startOurs(ending, source),
  });
  const [kinds, meant] = [new Map<string, number>(), new Map<string, number>()];
  const faults: string[] = [];
  const since = performance.now();
  const last = replay === null ? (inputs ?? Number.POSITIVE_INFINITY) : replay + 1;
  let next = replay ?? 0;
  while (next < last && faults.length < FAULTS_MAX) {
    if (seconds !== null && replay === null && performance.now() - since > seconds * 1_000) break;
    const given = caseOf(source.words, diceOf(seed, next));
    if (replay !== null) say(shown(given));
    const compared = await compare(given);
    const verdict = judge(given, compared);
    count(kinds, kindOf(given, compared));
    if (typeof verdict === 'object') count(meant, verdict.name);
    if (verdict === 'differs') {
      const found = await smallest(given, compare);
      const fault = [`case ${seed}:${next}`, shown(found.given), shownDifference(found.compared)].join('\n');
      say(`DIFFERENCE ${fault}`);
      faults.push(fault);
    }
    next += 1;
    if (next % PROGRESS_EVERY === 0) say(`${next} cases, ${faults.length} differences`);
  }
  const cases = next - (replay ?? 0);
  return { cases, seconds: (performance.now() - since) / 1_000, kinds, meant, faults };
}

function kindOf(given: Case, { git }: Compared): string {
  if (given.kind === 'client') {
    return `clients, protocol ${given.protocol}: ${git['exit status of command 1']?.[0] === '0' ? 'served' : 'refused'}`;
  }
  const what = given.lines === null ? 'advertisements' : `requests, ${given.protocol}`;
  return `${what}: ${git['outcome']?.[0] ?? ''}`;
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function comparison(
  folder: string,
  objectsOf: (pack: Buffer) => readonly string[],
  { git, ours }: { readonly git: Side; readonly ours: Side },
): (given: Case) => Promise<Compared> {
  return async (given) => {
    ours.takeFaults();
    const found = given.kind === 'client' ? await clients(given) : await requests(given);
    const logged = ours.takeFaults().map((line) => `in the log: ${line.slice(0, FAULT_LENGTH_MAX)}`);
    return { ...found, faults: [...found.faults, ...logged] };
  };

  async function clients(given: Case & { readonly kind: 'client' }): Promise<Compared> {
    const [ofGit, ofOurs] = await Promise.all([runClient(folder, git, given), runClient(folder, ours, given)]);
    const faults = ofOurs.isOutage ? ['the client of this service saw an outage'] : [];
    const messages = `of git: ${ofGit.messages}\nof this service: ${ofOurs.messages}`;
    return { git: ofGit.observation, ours: ofOurs.observation, told: ofOurs.told, faults, messages };
  }

  async function requests(given: Case & { readonly kind: 'request' }): Promise<Compared> {
    const [ofGit, ofOurs] = await Promise.all([git.send(given), ours.send(given)]);
    const faults = ofOurs.status === null || ofOurs.status >= 500 ? [`answered ${ofOurs.status ?? 'by a cut'}`] : [];
    const messages = `of this service: ${ofOurs.body.toString('latin1', 0, 200)}`;
    return {
      git: observed(ofGit, objectsOf),
      ours: observed(ofOurs, objectsOf),
      told: toldBy(ofOurs),
      faults,
      messages,
    };
  }
}
