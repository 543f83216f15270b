/**
 * Changes of refs under an `Idempotency-Key` on two real servers: races, and servers that are killed at every step. A
 * key makes one change, and every node answers its repeats from that.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
import {
  type Account,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

/** The steps of a change that is stored in parts, and whether it is made from then on. */
const POINTS: readonly (readonly [point: FailpointName, made: boolean])[] = [
  ['push-pack-received', false],
  ['push-parts-appended', false],
  ['push-appended', true],
  ['push-installed', true],
];
/** Few refs whose names are too long for one event. */
const WIDE_NAMES = Array.from({ length: 200 }, (_, n) => `refs/heads/${`${'long'.repeat(60)}/`.repeat(8)}${n}`);
const MAIN = 'refs/heads/main';
const ZERO = '0'.repeat(40);

interface Answer {
  readonly status: number;
  readonly repeated: boolean;
  readonly body: {
    readonly event_id?: string | null;
    readonly code?: string;
    readonly updates?: readonly object[];
    readonly after?: string;
  };
}

async function post(node: Strata, ada: Account, path: string, body: object): Promise<Answer> {
  const response = await fetch(`${node.url}/v1/repos/ada/${path}`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${ada.token}`,
      ...(body instanceof FormData ? {} : { 'Content-Type': 'application/json' }),
      'Idempotency-Key': '"one change"',
    },
    body: body instanceof FormData ? body : JSON.stringify(body),
  });
  const repeated = response.headers.get('idempotent-replayed') === 'true';
  return { status: response.status, repeated, body: (await response.json()) as Answer['body'] };
}

function change(node: Strata, ada: Account, name: string, updates: readonly object[]): Promise<Answer> {
  return post(node, ada, `${name}/refs`, { updates });
}

const COMMIT = {
  ...{ branch: 'main', expected: 'any', message: 'One change' },
  changes: [{ action: 'put', path: 'file', content: 'text' }],
};

/** A commit whose content comes in a part of its own. */
function commitInParts(): FormData {
  const form = new FormData();
  form.append('commit', JSON.stringify({ ...COMMIT, changes: [{ action: 'put', path: 'file', part: 'large' }] }));
  form.append('large', new Blob([new Uint8Array(2_000_000)]));
  return form;
}

describe('A change with an Idempotency-Key', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let first: Strata;
  let second: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    [first, second] = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
    ada = await createAccount(first, 'ada');
  });

  /** A repository with two commits, of which `main` names the second. */
  async function pushed(context: Parameters<typeof newWorkTree>[0], name: string) {
    const url = await createRepository(second, ada, name);
    const work = await newWorkTree(context);
    await git(work, ['commit', '--quiet', '--allow-empty', '-m', 'second']);
    await git(work, ['push', '--quiet', url, 'main']);
    const [head = '', before = ''] = (await git(work, ['rev-list', 'main'])).trim().split('\n');
    const start = await shared.log.head();
    const events = async (): Promise<readonly string[]> =>
      (await shared.log.since(start)).flatMap(({ type, id }) => (type === 'RefsUpdated' ? id : []));
    return { url, work, head, before, events };
  }

  for (const [point, made] of POINTS) {
    test(`that a server was killed in at ${point} is made once, on whichever node it is repeated`, async (context) => {
      const { work, head, before, events } = await pushed(context, point);
      const names = WIDE_NAMES.map((ref) => ({ ref, expected: 'any', after: before }));
      const updates = [{ ref: MAIN, expected: head, after: before }, ...names];
      first = await first.restart({ STRATA_FAILPOINT: point });
      await assert.rejects(change(first, ada, point, updates));
      await first.exited();
      const answer = await change(second, ada, point, updates);
      assert.deepEqual([answer.status, answer.repeated], [200, made], JSON.stringify(answer.body).slice(0, 500));
      assert.equal(answer.body.updates?.length, updates.length);
      assert.deepEqual(await events(), [answer.body.event_id]);
      first = await first.restart({ STRATA_FAILPOINT: '' });
      assert.deepEqual(await change(first, ada, point, updates), { ...answer, repeated: true });
      assert.deepEqual(await events(), [answer.body.event_id]);
      const listed = await git(work, ['ls-remote', gitUrl(first, ada, point)]);
      assert.deepEqual(new Set(listed.trim().split('\n')).size, 2 + WIDE_NAMES.length);
      assert.match(listed, new RegExp(`^${before}\tHEAD\n`));
      const parts = (await shared.log.since()).filter(({ type }) => type === 'RefUpdatesPart');
      const streams = parts.map(({ stream }) => stream);
      assert.equal(new Set(streams).size, POINTS.findIndex(([name]) => name === point) + 1, 'one for each change');
      assert.deepEqual(await leftovers(first), []);
    });
  }

  for (const [point, made, what, body] of [
    ['push-layer-stored', false, 'commit', COMMIT],
    ['push-appended', true, 'commit', COMMIT],
    ['push-pack-received', false, 'commit in parts', commitInParts()],
    ['push-appended', true, 'commit in parts', commitInParts()],
  ] as const) {
    test(`that a server was killed in at ${point} is one ${what}, on whichever node it is repeated`, async (context) => {
      const name = `${what.replaceAll(' ', '-')}-${point}`;
      const { work, head, events } = await pushed(context, name);
      first = await first.restart({ STRATA_FAILPOINT: point });
      await assert.rejects(post(first, ada, `${name}/commits`, body));
      await first.exited();
      const answer = await post(second, ada, `${name}/commits`, body);
      assert.deepEqual([answer.status, answer.repeated], [201, made], JSON.stringify(answer.body));
      first = await first.restart({ STRATA_FAILPOINT: '' });
      assert.deepEqual(await post(first, ada, `${name}/commits`, body), { ...answer, repeated: true });
      assert.deepEqual(await events(), [answer.body.event_id]);
      await git(work, ['fetch', '--quiet', gitUrl(first, ada, name), 'main']);
      assert.equal(await git(work, ['rev-list', `${head}..FETCH_HEAD`]), `${answer.body.after}\n`);
      assert.deepEqual(await leftovers(first), []);
    });
  }

  test('that wrote a commit or an annotated tag shows it as it was made, wherever its ref is now', async (context) => {
    const { work, url, head, before } = await pushed(context, 'written');
    const tag = { name: 'v1', target: head, expected: ZERO, message: 'Version 1' };
    const commit = await post(first, ada, 'written/commits', COMMIT);
    const tagged = await post(first, ada, 'written/tags', tag);
    assert.deepEqual([commit.status, tagged.status], [201, 201]);
    await git(work, ['push', '--quiet', '--force', url, `${before}:main`, `${before}:refs/tags/v1`]);
    assert.deepEqual(await post(second, ada, 'written/commits', COMMIT), { ...commit, repeated: true });
    assert.deepEqual(await post(second, ada, 'written/tags', tag), { ...tagged, repeated: true });
    assert.equal((await post(second, ada, 'written/commits', { ...COMMIT, message: 'Another' })).status, 422);
    assert.equal((await post(second, ada, 'written/tags', { ...tag, message: 'Version 2' })).status, 422);
  });

  test('is made after a dry run of it, which is not remembered, and a dry run after it is no repeat', async (context) => {
    await pushed(context, 'dry');
    const dry = { ...COMMIT, dry_run: true };
    const tried = await post(first, ada, 'dry/commits', dry);
    assert.deepEqual([tried.status, tried.repeated, 'tree' in tried.body], [200, false, true]);
    const commit = await post(first, ada, 'dry/commits', COMMIT);
    assert.deepEqual([commit.status, commit.repeated], [201, false]);
    const again = await post(first, ada, 'dry/commits', dry);
    assert.deepEqual([again.status, again.repeated], [200, false]);
  });

  for (const [what, path, bodyOf] of [
    ['a move', 'refs', (before: string) => ({ updates: [{ ref: MAIN, expected: 'any', after: before }] })],
    ['a commit', 'commits', () => COMMIT],
  ] as const) {
    test(`of ${what} is made once however many send it at the same moment to both nodes`, async (context) => {
      for (let round = 0; round < 5; round += 1) {
        const name = `race-of-${path}-${round}`;
        const { before, events } = await pushed(context, name);
        const until = async (node: Strata): Promise<Answer> => {
          for (;;) {
            const answer = await post(node, ada, `${name}/${path}`, bodyOf(before));
            if (answer.status < 300) return answer;
            assert.deepEqual([answer.status, answer.body.code], [409, 'key-in-use'], JSON.stringify(answer.body));
            await sleep(5);
          }
        };
        const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => until(n % 2 === 0 ? first : second)));
        const [event, ...others] = await events();
        assert.deepEqual(others, []);
        assert.ok(answers.every(({ body }) => body.event_id === event));
        assert.equal(answers.filter(({ repeated }) => !repeated).length, 1);
      }
    });
  }
});
