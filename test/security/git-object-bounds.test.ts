/**
 * The attack: a push of a few hundred kilobytes whose commits name a million parents each. One commit is stored whole,
 * the others as deltas of a hundred bytes. Inflating them all takes gigabytes: every read model stopped at them, every
 * read of every user got 503, and the server died again after each start.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { TAG_BYTES_MAX } from '../../core/git/object-bounds.ts';
import { PUSH_OPTIONS_BYTES_MAX } from '../../core/git/wire/command-list.ts';
import { COMMIT_PARENTS_MAX, TAG_CHAIN_LENGTH_MAX } from '../../core/kernel/limits.ts';
import { type Ending, suiteEnding } from '../support/cleanup.ts';
import {
  CAPABILITIES,
  commandList,
  packet,
  postService,
  reportOf,
  type WireTarget,
  wirePush,
  wireRefs,
} from '../support/git-wire.ts';
import { commitBytes, EMPTY_TREE, packOfLargeCommits, packOfTags, tagBytes } from '../support/hostile-packs.ts';
import { rawEntry, rawId, rawPack } from '../support/raw-pack.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { pushUnchecked } from '../support/unchecked-push.ts';
import { startWatchedServer } from '../support/watched-push.ts';

const MAIN = 'refs/heads/main';
/** Node's default heap on a small machine. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=1024' };

describe('A push of commits with a million parents', () => {
  test('is refused with the limit, and no other user is affected', async (context) => {
    const strata = await startNode(context, await sharedParts(context, 'postgres'), SMALL_HEAP);
    const mallory = await createAccount(strata, 'mallory', 'FREE');
    const ada = await createAccount(strata, 'ada', 'FREE');
    await createRepository(strata, mallory, 'attack');
    const { bytes, tip } = packOfLargeCommits({ commits: 12, parents: 1_000_000 });
    assert.ok(bytes.length < 187_000);
    const target = { strata, account: mallory, name: 'attack' };
    const report = await wirePush(target, [{ ref: MAIN, after: tip }], bytes);
    assert.match(
      report.unpack ?? '',
      /^commit [0-9a-f]{40} has \d{8} bytes, at most 1048576 are allowed$|^the pack takes more memory than a push may/,
    );
    assert.match(report.remote, /at most 1048576 are allowed|more memory than a push may/);
    assert.equal((await wireRefs(target)).size, 0);
    await worksFor(context, strata, ada);
    assert.equal((await api(strata, mallory.token, 'GET', '/v1/repos/mallory/attack/branches')).status, 200);
  });

  test('that an older program version accepted parks that repository and no other, after a restart too', async (context) => {
    const shared = await sharedParts(context, 'postgres');
    const first = await startNode(context, shared, SMALL_HEAP);
    const mallory = await createAccount(first, 'mallory', 'FREE');
    const ada = await createAccount(first, 'ada', 'FREE');
    await createRepository(first, mallory, 'attack');
    const repository = await repositoryId(first, mallory);
    const { bytes: pack, tip } = packOfLargeCommits({ commits: 12, parents: 1_000_000 });
    await pushUnchecked(shared, { account: mallory.id, repository, ref: MAIN, tip, pack });
    await isParked(first, mallory, repository);
    await worksFor(context, first, ada);

    const again = await first.restart();
    await worksFor(context, again, { ...ada }, 'after');
    await isParked(again, mallory, repository);
    // An operator's replay fails without harm to other repositories.
    await assert.rejects(admin(again, ['projections', 'replay', '--stream', `repository-${repository}`]));
    await isParked(again, mallory, repository);
    await worksFor(context, again, { ...ada }, 'later');
    assert.equal(again.process.exitCode ?? again.process.signalCode, null);
  });
});

describe('A push beyond a limit of single objects', () => {
  const ending = suiteEnding();
  let target: WireTarget;
  beforeAll(async () => {
    const server = await startWatchedServer(ending);
    target = await server.newTarget();
  });

  const TREE = { type: 'tree', bytes: Buffer.alloc(0) } as const;
  const root = commitBytes([], 'root');
  const packed = (type: 'commit' | 'tag', bytes: Buffer) => ({
    tip: rawId(type, bytes),
    pack: rawPack([rawEntry(TREE), rawEntry({ type: 'commit', bytes: root }), rawEntry({ type, bytes })]),
  });

  test('is refused with the limit: parents, tags, push options', async () => {
    const parents = Array<string>(COMMIT_PARENTS_MAX + 1).fill(rawId('commit', root));
    const wide = packed('commit', commitBytes(parents, 'wide'));
    const refused = await wirePush(target, [{ ref: MAIN, after: wide.tip }], wide.pack);
    assert.match(refused.unpack ?? '', /^commit [0-9a-f]{40} has more than 1000 parents$/);
    assert.equal(refused.refs.get(MAIN), 'unpacker error');

    const long = packed('tag', tagBytes(EMPTY_TREE, 'tree', 'm'.repeat(TAG_BYTES_MAX)));
    const large = await wirePush(target, [{ ref: 'refs/tags/v1', after: long.tip }], long.pack);
    assert.match(large.unpack ?? '', /^tag [0-9a-f]{40} has \d{7} bytes, at most 1048576 are allowed$/);

    // The tags alone are harmless: only the ref that leads through all of them is refused.
    const tags = packOfTags(TAG_CHAIN_LENGTH_MAX + 1);
    const [deep = '', allowed = ''] = tags.ids;
    const commands = [
      { ref: 'refs/tags/deep', after: deep },
      { ref: 'refs/tags/within', after: allowed },
    ];
    const chained = await wirePush(target, commands, tags.bytes);
    assert.equal(chained.refs.get('refs/tags/deep'), 'it is a chain of more than 50 tags');
    assert.equal(chained.refs.get('refs/tags/within'), 'ok');

    const small = packed('commit', commitBytes([], 'small'));
    const list = commandList([{ ref: MAIN, after: small.tip }], `${CAPABILITIES} push-options`);
    const push = async (options: readonly string[]) => {
      const lines = options.map((option) => packet(`${option}\n`));
      const body = Buffer.concat([list, ...lines, Buffer.from('0000'), small.pack]);
      return reportOf(await postService(target, 'git-receive-pack', body));
    };
    const half = 'x'.repeat(PUSH_OPTIONS_BYTES_MAX / 2);
    assert.equal((await push([half, half, 'x'])).unpack, 'push options of more than 4096 bytes in sum');
    assert.equal((await push([half, half])).refs.get(MAIN), 'ok');
  });
});

async function repositoryId(strata: Strata, { token, username }: Account): Promise<string> {
  const { body } = await api(strata, token, 'GET', `/v1/repos/${username}/attack`);
  return (body as { readonly id: string }).id;
}

/** Checks that a push and the reads after it work, within the time that requests may take. */
async function worksFor(context: Ending, strata: Strata, account: Account, name = 'notes'): Promise<void> {
  await createRepository(strata, account, name);
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', gitUrl(strata, account, name), 'main']);
  for (const what of ['branches', 'commits', 'contents']) {
    const { status, text } = await api(strata, account.token, 'GET', `/v1/repos/${account.username}/${name}/${what}`);
    assert.equal(status, 200, `${what}: ${text}`);
  }
}

interface Parked {
  readonly parked: readonly { readonly model: string; readonly stream: string; readonly error: string }[];
}

async function isParked(strata: Strata, account: Account, repository: string): Promise<void> {
  const deadline = Date.now() + 30_000;
  const read = () => api(strata, account.token, 'GET', `/v1/repos/${account.username}/attack/branches`);
  let answer = await read();
  while (answer.headers.get('retry-after') !== '60' && Date.now() < deadline) {
    await sleep(100);
    answer = await read();
  }
  assert.equal(answer.status, 503, answer.text);
  assert.match(answer.text, /operator/);
  const { parked } = (await admin(strata, ['projections', 'parked'])) as Parked;
  assert.deepEqual(
    parked.map(({ model, stream }) => [model, stream]),
    [['history', `repository-${repository}`]],
  );
  assert.match(parked[0]?.error ?? '', /has \d{8} bytes, at most 1048576 are allowed/);
  const metrics = await (await fetch(`${strata.url}/metrics`)).text();
  assert.match(metrics, /^strata_projection_parked_streams 1$/m);
}
