/**
 * Watches a server under attack from outside: what another account feels, and what the server takes of the machine.
 *
 * Invariants: the watch costs little beside the attack: at most some requests every 100 ms, one clone a second.
 */
import { statSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ending } from './cleanup.ts';
import { filesBelow } from './files-below.ts';
import { basicAuthorization } from './git-wire.ts';
import { familyOf, textOfProcess } from './process-family.ts';
import { type Account, type Strata, tryGit } from './strata.ts';
import { tempDir } from './temp-dir.ts';

const ASKED_EVERY_MS = 100;
const CLONED_EVERY_MS = 1_000;
const MEASURED_EVERY_MS = 250;
/** Where an answer takes longer, it counts as none. */
const ANSWER_MS_MAX = 60_000;

/** Durations in milliseconds. */
export interface Span {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

function spanOf(durations: readonly number[]): Span {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

export interface Watched {
  /** REST reads and `ls-refs` of the other account. */
  readonly answers: Span;
  /** Its `git clone --depth 1`, the client's own time included. */
  readonly clones: Span;
  /** What failed of either, in words; at most 20. */
  readonly failures: readonly string[];
  readonly loop: { readonly p99Ms: number; readonly maxMs: number };
  /** The most that the server and the processes below it held at any moment: their proportional set sizes. */
  readonly memoryBytesMax: number;
  /** Processes of the server, itself included. PostgreSQL, which the tests share, is not one of them. */
  readonly processesMax: number;
  /** The largest sizes of the data directory and the layers, without what they had when the watch began. */
  readonly diskBytesMax: number;
}

export interface WatchedServer {
  readonly strata: Strata;
  readonly layersDir: string;
  readonly loopFile: string;
  /** The account that does no harm, and its repository. */
  readonly other: Account;
  readonly repository: string;
}

/** Begins to watch; the result ends the watch and returns what was seen. */
export async function watch(ending: Ending, server: WatchedServer): Promise<() => Promise<Watched>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const clones = await tempDir(ending);
  const folders = [server.strata.dataDir, server.layersDir];
  const before = await bytesBelow(folders);
  const answers: number[] = [];
  const cloned: number[] = [];
  const failures: string[] = [];
  const failed = (what: string): void => void (failures.length < 20 && failures.push(what));
  let memoryBytesMax = 0;
  let processesMax = 0;
  let diskBytesMax = 0;
  let ended = false;

  const every = async (ms: number, step: () => Promise<void> | void): Promise<void> => {
    while (!ended) {
      const begun = performance.now();
      await step();
      await sleep(Math.max(0, ms - (performance.now() - begun)));
    }
  };
  const ask = async (): Promise<void> => {
    for (const asked of [branches, lsRefs]) {
      const begun = performance.now();
      const status = await asked(agent, server);
      answers.push(performance.now() - begun);
      if (status !== 200) failed(`${asked.name}: ${status}`);
    }
  };
  const clone = async (): Promise<void> => {
    const folder = path.join(clones, 'clone');
    const url = `${server.strata.url}/r/${server.other.username}/${server.repository}.git`;
    const header = `http.extraHeader=Authorization: ${basicAuthorization(server.other)}`;
    const begun = performance.now();
    const { code, stderr } = await tryGit(clones, ['-c', header, 'clone', '--quiet', '--depth=1', url, folder]);
    cloned.push(performance.now() - begun);
    if (code !== 0) failed(`clone: ${stderr.slice(0, 200)}`);
    await rm(folder, { recursive: true, force: true });
  };
  const measure = (): void => {
    const pids = familyOf(server.strata.process.pid ?? 0);
    processesMax = Math.max(processesMax, pids.length);
    memoryBytesMax = Math.max(
      memoryBytesMax,
      pids.reduce((sum, pid) => sum + proportionalSetSize(pid), 0),
    );
  };
  await writeFile(`${server.loopFile}.again`, '');
  const watching = Promise.all([
    every(ASKED_EVERY_MS, ask),
    every(CLONED_EVERY_MS, clone),
    every(MEASURED_EVERY_MS, measure),
    every(1_000, async () => {
      diskBytesMax = Math.max(diskBytesMax, (await bytesBelow(folders)) - before);
    }),
  ]);
  watching.catch(() => undefined);

  return async () => {
    ended = true;
    await watching;
    agent.destroy();
    const loop = JSON.parse(await readFile(server.loopFile, 'utf8')) as Watched['loop'];
    const spans = { answers: spanOf(answers), clones: spanOf(cloned) };
    return { ...spans, failures, loop, memoryBytesMax, processesMax, diskBytesMax };
  };
}

/** Milliseconds of one REST read of the other account, or null when it failed. */
export async function answerTime(server: WatchedServer): Promise<number | null> {
  const agent = new Agent({ keepAlive: false });
  const begun = performance.now();
  const status = await branches(agent, server);
  return status === 200 ? performance.now() - begun : null;
}

function branches(agent: Agent, { strata, other, repository }: WatchedServer): Promise<number | string> {
  const target = `/v1/repos/${other.username}/${repository}/branches`;
  return send(agent, strata.url + target, { authorization: `Bearer ${other.token}` });
}

function lsRefs(agent: Agent, { strata, other, repository }: WatchedServer): Promise<number | string> {
  const headers = {
    authorization: basicAuthorization(other),
    'content-type': 'application/x-git-upload-pack-request',
    'git-protocol': 'version=2',
  };
  const body = '0014command=ls-refs\n00010009peel\n0000';
  return send(agent, `${strata.url}/r/${other.username}/${repository}.git/git-upload-pack`, headers, body);
}

/** Resolves to the status, or to why there is none. */
function send(
  agent: Agent,
  url: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<number | string> {
  return new Promise((resolve) => {
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request(url, { agent, method, headers, timeout: ANSWER_MS_MAX }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
      answer.on('error', (error) => resolve(error.message));
    });
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${ANSWER_MS_MAX} ms`)));
    sent.on('error', (error) => resolve(error.message));
    sent.end(body);
  });
}

function proportionalSetSize(pid: number): number {
  const [, kibibytes] = /^Pss:\s+(\d+) kB$/m.exec(textOfProcess(`/proc/${pid}/smaps_rollup`)) ?? [];
  return Number(kibibytes ?? 0) * 1024;
}

async function bytesBelow(folders: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const folder of folders) {
    for (const file of await filesBelow(folder)) {
      bytes += statSync(path.join(folder, file), { throwIfNoEntry: false })?.size ?? 0;
    }
  }
  return bytes;
}
