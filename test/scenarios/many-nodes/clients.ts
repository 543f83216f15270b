/**
 * What users of a service do all the time, one loop each: each loop remembers the answers it got and checks every later
 * answer against them.
 *
 * Invariants: each client is the only writer of what it checks, so only its unanswered requests are uncertain. Any
 * failure except a broken connection or a 503 fails the scenario.
 */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Answer,
  checkRegister,
  createRecorder,
  type Recorder,
  type Value,
} from '../../support/linearizability.ts';
import { isConnectionFault, readRegister, setRegister } from '../../support/register.ts';
import type { Dice } from '../../support/seeded.ts';
import {
  type Account,
  type ApiAnswer,
  api,
  commitFile,
  type Finished,
  git,
  gitUrl,
  tryGit,
} from '../../support/strata.ts';
import type { Tally } from './tally.ts';

/** Where clients send their requests, and when they stop. */
export interface Surroundings {
  readonly strata: { readonly url: string };
  readonly account: Account;
  readonly tally: Tally;
  readonly over: () => boolean;
}

/** The pause before the retry of an unanswered request. */
const PAUSE_MS = 50;
/** Three clients with this pause make only as many operations as the search through their history can handle. */
const REGISTER_PAUSE_MS = 60;
const REGISTER_CLIENTS = 3;

/** Clients that compare-and-set and read one branch. The returned `check` verifies the whole history. */
export async function useRegister(
  around: Surroundings,
  name: string,
  dice: Dice,
): Promise<{ check(readOnEach: readonly { readonly url: string }[]): Promise<void> }> {
  const recorder = createRecorder();
  const clients = Array.from({ length: REGISTER_CLIENTS }, (_, client) =>
    runRegister(around, name, recorder, client, dice),
  );
  await Promise.all(clients);
  return {
    async check(readOnEach) {
      for (const strata of readOnEach) {
        for (const over of ['git', 'rest'] as const) {
          const answered = recorder.call(REGISTER_CLIENTS);
          const answer = await readRegister({ strata, account: around.account, name }, over);
          assert.ok(answer !== null, 'a node that is not being killed does not answer');
          answered(answer);
          around.tally.read += 1;
        }
      }
      const verdict = checkRegister(recorder.history, null);
      if (verdict.linearizable) return;
      const [order, stuckAt] = [verdict.order.slice(-10), verdict.stuckAt].map((part) => JSON.stringify(part, null, 1));
      assert.fail(`${name}: after ${order} none of these can follow: ${stuckAt}`);
    },
  };
}

async function runRegister(
  { strata, account, tally, over }: Surroundings,
  name: string,
  recorder: Recorder,
  client: number,
  dice: Dice,
): Promise<void> {
  const target = { strata, account, name };
  let seen: Value = null;
  let hasSet = false;
  for (let number = 0; !over(); number += 1) {
    const answered = recorder.call(client);
    const reads: boolean = hasSet || dice.chance(0.3);
    const answer: Answer | null = reads
      ? await readRegister(target, dice.chance(0.5) ? 'git' : 'rest')
      : await setRegister(target, seen, `${name} ${client} ${number}`);
    if (answer !== null) answered(answer);
    if (answer === null || (answer.kind === 'compare-and-set' && answer.outcome === 'unknown')) tally.unanswered += 1;
    else if (answer.kind === 'read') tally.read += 1;
    else if (answer.outcome === 'done') tally.written += 1;
    if (answer?.kind === 'read') seen = answer.value;
    else if (answer?.outcome === 'done') seen = answer.to;
    // A stale answer would show in the read right after a set, so that read follows without a pause.
    hasSet = !reads;
    if (!hasSet) await sleep(REGISTER_PAUSE_MS);
  }
}

/**
 * What git prints when its connection breaks or the service answers 503, or reports an outage, and nothing else.
 * "Authentication failed" is among it: when a connection breaks under a request with credentials, libcurl repeats the
 * request on a new connection without them. The proxy records whether a server ever denied credentials.
 */
const UNANSWERED =
  /returned error: 503|Recv failure|Empty reply from server|Connection reset|unexpected disconnect|hung up unexpectedly|transfer closed|Failed to connect|early EOF|RPC failed; (curl|HTTP 503)|Authentication failed for|nothing was changed|may have been committed/;

/** Runs git; returns null when it was not answered, and fails on any other failure. */
async function answeredGit(tally: Tally, cwd: string, args: readonly string[]): Promise<Finished | null> {
  const finished = await tryGit(cwd, args);
  if (finished.code === 0) return finished;
  assert.match(finished.stderr, UNANSWERED, `git ${args[0]} failed in another way: ${finished.stderr}`);
  tally.unanswered += 1;
  await sleep(PAUSE_MS);
  return null;
}

/**
 * A person who commits, pushes, lists and clones with real git. The returned `check` verifies a clone from each node.
 */
export async function pushAndClone(
  { strata, account, tally, over }: Surroundings,
  name: string,
  work: string,
): Promise<{ check(readOnEach: readonly { readonly url: string }[]): Promise<void> }> {
  const url = gitUrl(strata, account, name);
  let pushed = (await git(work, ['rev-parse', 'HEAD'])).trim();
  for (let number = 0; !over(); number += 1) {
    const next = await commitFile(work, `file-${number % 10}`, `${number}\n`);
    let answered = false;
    while (!answered && !over()) {
      // When git pushes again after a failure, it finds out whether the first push was committed.
      answered = (await answeredGit(tally, work, ['push', '--quiet', url, 'HEAD:main'])) !== null;
      const known = answered ? [next] : [pushed, next];
      const listed = await answeredGit(tally, work, ['ls-remote', url, 'refs/heads/main']);
      if (listed === null) continue;
      tally.read += 1;
      assert.ok(known.includes(listed.stdout.slice(0, 40)), `${name}: ${listed.stdout} is not one of ${known.join()}`);
    }
    if (!answered) break;
    tally.written += 1;
    pushed = next;
    if (number % 4 !== 0) continue;
    const copy = path.join(work, '.git', 'copy');
    if ((await answeredGit(tally, work, ['clone', '--quiet', '--bare', url, copy])) !== null) {
      tally.read += 1;
      assert.equal((await git(copy, ['rev-parse', 'main'])).trim(), pushed, `${name}: the clone is stale`);
    }
    await rm(copy, { recursive: true, force: true });
  }
  return {
    async check(readOnEach) {
      for (const [index, node] of readOnEach.entries()) {
        const copy = path.join(work, '.git', `last-${index}`);
        await git(work, ['clone', '--quiet', '--bare', gitUrl(node, account, name), copy]);
        await git(copy, ['fsck', '--strict']);
        tally.read += 1;
        // Throws unless the clone holds every acknowledged push.
        await git(copy, ['merge-base', '--is-ancestor', pushed, 'main']);
      }
    },
  };
}

/** Sends a request; returns null when it was not answered, and fails on any status but 503 and the expected ones. */
async function answeredApi(
  { strata, tally }: Surroundings,
  token: string,
  call: {
    readonly method: string;
    readonly target: string;
    readonly body?: unknown;
    readonly expect: readonly number[];
  },
): Promise<ApiAnswer | null> {
  try {
    const answer = await api(strata, token, call.method, call.target, call.body);
    if (answer.status !== 503) {
      const unexpected = `${call.method} ${call.target} answered ${answer.status}, not ${call.expect.join(' or ')}`;
      assert.ok(call.expect.includes(answer.status), `${unexpected}: ${answer.text}`);
      return answer;
    }
  } catch (error) {
    if (!isConnectionFault(error)) throw error;
  }
  tally.unanswered += 1;
  await sleep(PAUSE_MS);
  return null;
}

/** A person who creates, narrows and revokes tokens, and checks after each change that it takes effect immediately. */
export async function changeTokens(
  around: Surroundings,
  name: string,
): Promise<{ check(readOnEach: readonly { readonly url: string }[]): Promise<void> }> {
  const { account, tally, over } = around;
  const branches = `/v1/repos/${account.username}/${name}/branches`;
  const kept: string[] = [];
  const revoked: string[] = [];

  /** Reads with the token three times, each time through the next node. */
  async function expectStatus(token: string, status: number): Promise<void> {
    for (let times = 0; times < 3; times += 1) {
      const answer = await answeredApi(around, token, { method: 'GET', target: branches, expect: [status] });
      if (answer !== null) tally.read += 1;
    }
  }

  /**
   * Returns whether the list of tokens has this one; null when there was no answer. The list comes from the read
   * models, which another node may write.
   */
  async function lists(id: string): Promise<boolean | null> {
    const answer = await answeredApi(around, account.token, {
      method: 'GET',
      target: '/v1/access-tokens',
      expect: [200],
    });
    if (answer === null) return null;
    tally.read += 1;
    return idsOf(answer).has(id);
  }

  /** Repeats an idempotent change until it is answered. */
  async function change(method: string, target: string, body: unknown, expect: readonly number[]): Promise<void> {
    while ((await answeredApi(around, account.token, { method, target, body, expect })) === null) {
      // The next attempt reports the result.
    }
    tally.written += 1;
  }

  for (let number = 0; !over(); number += 1) {
    const body = { name: `${name} ${number}`, scope: 'ALL_REPO', grants: ['ALL'] };
    const created = await answeredApi(around, account.token, {
      ...{ method: 'POST', target: '/v1/access-tokens', body, expect: [201] },
    });
    if (created === null) continue;
    tally.written += 1;
    const { id, token } = created.body as { readonly id: string; readonly token: string };
    assert.notEqual(await lists(id), false, 'a new token is not listed');
    await expectStatus(token, 200);
    await change('PUT', `/v1/access-tokens/${id}`, { grants: ['GIT_HTTP_READ'] }, [200]);
    await expectStatus(token, 403);
    if (number % 3 === 0) {
      kept.push(id);
      continue;
    }
    // A second attempt finds nothing to revoke when the first one succeeded.
    await change('DELETE', `/v1/access-tokens/${id}`, undefined, [204, 404]);
    revoked.push(id);
    assert.notEqual(await lists(id), true, 'a revoked token is listed');
    await expectStatus(token, 401);
  }
  return {
    async check(readOnEach) {
      for (const node of readOnEach) {
        const answer = await api(node, account.token, 'GET', '/v1/access-tokens');
        tally.read += 1;
        const listed = idsOf(answer);
        assert.deepEqual(
          kept.filter((id) => !listed.has(id)),
          [],
          'tokens that were lost',
        );
        assert.deepEqual(
          revoked.filter((id) => listed.has(id)),
          [],
          'tokens that came back',
        );
      }
    },
  };
}

function idsOf(answer: ApiAnswer): ReadonlySet<string> {
  const { access_tokens } = answer.body as { readonly access_tokens: readonly { readonly id: string }[] };
  return new Set(access_tokens.map(({ id }) => id));
}
