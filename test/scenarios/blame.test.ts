/** Who brought the lines of files over REST, compared with git blame and with the activity. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { BLAME_RANGES_MAX } from '../../apps/api/schemas/blame.ts';
import { REQUEST_POINTS } from '../../core/kernel/limits.ts';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  type ApiAnswer,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Range {
  readonly start: number;
  readonly count: number;
  readonly commit: string;
  readonly path: string;
  readonly path_encoded?: string;
  readonly event_id: string | null;
  readonly actor: { readonly kind: string; readonly id: string } | null;
}

interface Blame {
  readonly commit: string;
  readonly ranges: readonly Range[];
  readonly truncated: boolean;
  readonly pagination: object;
}

interface Change {
  readonly id: string;
  readonly actor: { readonly kind: string; readonly id: string };
  readonly ref: string;
}

describe('Who brought the lines of a file', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let second: { readonly id: string; readonly token: string };
  let reader: { readonly id: string; readonly token: string };
  let work: string;

  const newToken = async (name: string, grants: readonly string[]): Promise<typeof second> => {
    const made = await api(strata, ada.token, 'POST', '/v1/access-tokens', { name, scope: 'ALL_REPO', grants });
    assert.equal(made.status, 201, made.text);
    return made.body as typeof second;
  };
  const get = (place: string, token = ada.token): Promise<ApiAnswer> =>
    api(strata, token, 'GET', `/v1/repos/ada/lines/blame/${place}`);
  const blameOf = async (place: string, token = ada.token): Promise<Blame> => {
    const answer = await get(place, token);
    assert.equal(answer.status, 200, answer.text);
    return answer.body as Blame;
  };
  const write = async (name: string, lines: readonly string[]): Promise<string> =>
    commitFile(work, name, lines.map((line) => `${line}\n`).join(''));
  const lines = Array.from({ length: 12 }, (_, index) => `line ${index + 1}`);
  /** Every other line of the long file is of another commit. */
  const long = Array.from({ length: 2 * BLAME_RANGES_MAX + 2 }, (_, index) => `number ${index + 1}`);

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    second = await newToken('<second>', ['ALL']);
    reader = await newToken('reader', ['API_COMMITS_READ']);
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'lines');
    await write('src/old', lines);
    await write('long', long);
    await git(work, ['push', '--quiet', url, 'main']);
    await git(work, ['rm', '--quiet', '--cached', 'src/old']);
    await write('src/new', lines);
    await write('src/new', lines.with(4, '<b>five</b>'));
    await write(
      'long',
      long.map((line, index) => (index % 2 === 0 ? line : `changed ${index + 1}`)),
    );
    await git(work, ['push', '--quiet', gitUrl(strata, { username: 'ada', token: second.token }, 'lines'), 'main']);
  });

  test('over REST is what git blame says of each line, with the push that brought it and who pushed', async () => {
    const porcelain = await git(work, ['blame', '--line-porcelain', 'main', '--', 'src/new']);
    const expected = [...porcelain.matchAll(/^([0-9a-f]{40}) \d+ (\d+)[^]*?^filename (.*)$/gm)];
    const { commit, ranges, truncated, pagination } = await blameOf('src/new');
    const found = ranges.flatMap(({ start, count, ...range }) =>
      Array.from({ length: count }, (_, index) => [range.commit, String(start + index), range.path]),
    );
    assert.deepEqual(
      found,
      expected.map(([, id, number, name]) => [id, number, name]),
    );
    assert.equal(commit, (await git(work, ['rev-parse', 'main'])).trim());
    assert.deepEqual([truncated, pagination], [false, { page: 0, limit: BLAME_RANGES_MAX, total: 3, has_more: false }]);
    const { activity } = (await api(strata, ada.token, 'GET', '/v1/repos/ada/lines/activity')).body as {
      readonly activity: readonly Change[];
    };
    const [newest, oldest] = activity;
    assert.deepEqual([newest?.actor, activity.length], [{ kind: 'token', id: second.id }, 2]);
    assert.deepEqual(
      ranges.map(({ event_id, actor }) => [event_id, actor]),
      [oldest, newest, oldest].map((change) => [change?.id, change?.actor]),
    );
    assert.deepEqual(Object.keys(ranges[0] ?? {}), ['start', 'count', 'commit', 'path', 'event_id', 'actor']);
  });

  test('is told to a token that may not read the activity without the pushes', async () => {
    const own = await blameOf('src/new');
    const { ranges, ...rest } = await blameOf('src/new', reader.token);
    assert.deepEqual(rest, { commit: own.commit, truncated: false, pagination: own.pagination });
    assert.deepEqual(
      ranges,
      own.ranges.map((range) => ({ ...range, event_id: null, actor: null })),
    );
  });

  test('comes in pages of at most a number of ranges, which run on without a gap', async () => {
    const first = await blameOf('long');
    assert.deepEqual([first.ranges.length, first.truncated], [BLAME_RANGES_MAX, true]);
    const all = [...first.ranges];
    for (let number = 1; number <= 2; number += 1) all.push(...(await blameOf(`long?page=${number}`)).ranges);
    assert.deepEqual(
      all.map(({ start, count }) => [start, count]),
      long.map((_, index) => [index + 1, 1]),
    );
    assert.equal((await blameOf('long?page=2')).truncated, false);
    const few = await blameOf('long?page=3&limit=10');
    assert.deepEqual([few.ranges[0]?.start, few.ranges.length], [31, 10]);
    assert.equal((await get(`long?limit=${BLAME_RANGES_MAX + 1}`)).status, 422);
    assert.deepEqual((await blameOf('long?page=9')).ranges, []);
  });

  test('is found at any ref, and 422 or 404 where there is no file', async () => {
    const old = (await git(work, ['rev-parse', 'main~3'])).trim();
    assert.deepEqual(
      (await blameOf(`src/old?ref=${old}`)).ranges.map(({ count, path: name }) => [count, name]),
      [[12, 'src/old']],
    );
    const folder = await get('src');
    assert.deepEqual([folder.status, folder.body], [422, { detail: 'The path does not lead to a file' }]);
    for (const [place, status] of [
      ['src/', 422],
      ['src/nothing', 404],
      ['src/new/', 404],
      ['src/new?ref=nothing', 404],
      ['src/new?nothing=1', 422],
      ['src%2F..%2FREADME', 404],
    ] as const) {
      assert.equal((await get(place)).status, status, place);
    }
    assert.equal((await blameOf('src%2Fnew')).ranges.length, 3);
    await commitFile(work, 'empty', '');
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'lines'), 'HEAD:refs/heads/empty']);
    await git(work, ['reset', '--quiet', '--soft', 'HEAD~1']);
    const { ranges, truncated } = await blameOf('empty?ref=empty');
    assert.deepEqual([ranges, truncated], [[], false]);
  });

  test('names a path that is not UTF-8 by its bytes', async () => {
    const blob = (await git(work, ['hash-object', '-w', '--stdin'], 'x\n')).trim();
    const entry = Buffer.concat([Buffer.from(`100644 blob ${blob}\t`), Buffer.from([0x66, 0xfc]), Buffer.from([0])]);
    const tree = (await git(work, ['mktree', '-z'], entry)).trim();
    const id = (await git(work, ['commit-tree', tree, '-m', 'latin'])).trim();
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'lines'), `${id}:refs/heads/latin`]);
    const [range] = (await blameOf('f%FC?ref=latin')).ranges;
    assert.deepEqual([range?.commit, range?.path, range?.path_encoded], [id, 'f\ufffd', 'f%FC']);
  });

  test('costs as much as the routes that run git, and has an ETag that stays', async () => {
    const remaining = ({ headers }: ApiAnswer): number => Number(headers.get('x-ratelimit-remaining'));
    const costs: number[] = [];
    // Another minute may begin in between.
    for (let tries = 0; tries < 3; tries += 1)
      costs.push(remaining(await get('src/new')) - remaining(await get('src/new')));
    assert.ok(costs.includes(REQUEST_POINTS.costly), costs.join());
    const etag = (await get('src/new')).headers.get('etag') ?? '';
    const again = await fetch(`${strata.url}/v1/repos/ada/lines/blame/src/new`, {
      headers: { authorization: `Bearer ${ada.token}`, 'if-none-match': etag },
    });
    assert.deepEqual([again.status, again.headers.get('etag')], [304, etag]);
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'lines'), 'main:refs/heads/other']);
    assert.equal((await get('src/new')).headers.get('etag'), etag);
    assert.notEqual((await get('src/new', reader.token)).headers.get('etag'), etag);
  });
});
