/** A repository as of a moment, read with the real git. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { streamName } from '../../../core/kernel/envelope.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { systemCause } from '../../../core/runtime/system-cause.ts';
import { deleteRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { expireDeleted } from '../../../core/use-cases/sweeping/expire-deleted.ts';
import { undeleteRepository } from '../../../core/use-cases/undo/undelete-repository.ts';
import type { TestToken } from '../../support/api-fixture.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { createMemoryPolicyMarks } from '../../support/memory/delivery-store.ts';
import { assertCloneIs, momentIn } from '../../support/past-clones.ts';
import { type PastHistory, startPastHistory } from '../../support/past-history.ts';
import { TEST_RETENTION_MS } from '../../support/past-repositories.ts';
import { createDice } from '../../support/seeded.ts';
import { git, tryGit } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';

const STEPS = 30;
const MOMENTS = 20;
/** What chance might leave out. */
const FORCED: { readonly [n: number]: 'push' | 'force' | 'merge' | 'drop' } = {
  ...{ 0: 'push', 3: 'force', 20: 'merge', 25: 'drop', 29: 'push' },
};

describe('A clone as of a moment', () => {
  const ending = suiteEnding();
  const dice = createDice(8);
  let history: PastHistory;

  beforeAll(async () => {
    history = await startPastHistory(ending);
    for (let n = 0; n < STEPS; n += 1) await history.step(dice, FORCED[n]);
  });

  test('equals a mirror kept by git at that moment, whatever was pushed, deleted and compacted since', async () => {
    const { force, delete: deleted, merge, dropped, 'default-branch': changed } = history.counts;
    for (const count of [force, deleted, merge, dropped, changed]) assert.ok(count > 0, JSON.stringify(history.counts));
    const outcomes = { equal: 0, expired: 0 };
    for (let n = 0; n < MOMENTS; n += 1) {
      const state = dice.pick(history.states);
      outcomes[await assertCloneIs(ending, history, momentIn(dice, state), state)] += 1;
    }
    assert.ok(outcomes.equal > MOMENTS / 2, JSON.stringify(outcomes));
  });

  const lastWith = (part: string) => history.states.findLast(({ listed }) => listed.includes(part)) ?? assert.fail();

  for (const version of ['0', '1', '2']) {
    test(`speaks protocol version ${version}, and is shallow or partial as asked`, async (context) => {
      const state = lastWith('\trefs/heads/main\n');
      const url = history.url(momentIn(dice, state));
      const protocol = ['-c', `protocol.version=${version}`];
      const listed = await git(history.mirror, [...protocol, 'ls-remote', '--symref', url]);
      assert.equal(listed, state.listed);
      const clones = await tempDir(context);
      const clone = [...protocol, 'clone', '--quiet', '--no-checkout', '--branch', 'main'];
      await git(clones, [...clone, '--depth', '1', url, 'shallow']);
      await git(clones, [...clone, '--filter', 'blob:none', url, 'partial']);
      const shallow = path.join(clones, 'shallow');
      assert.equal((await git(shallow, ['rev-list', '--count', 'HEAD'])).trim(), '1');
      await git(shallow, [...protocol, 'fetch', '--quiet', '--unshallow']);
      const partial = path.join(clones, 'partial');
      const head = (await git(partial, ['rev-parse', 'HEAD'])).trim();
      assert.match(state.listed, new RegExp(`^${head}\trefs/heads/main$`, 'm'));
      // Fetches the blobs by their ids.
      await git(partial, [...protocol, 'checkout', '--quiet', 'main']);
      const tree = ['ls-tree', '-r', head];
      assert.equal(await git(partial, tree), await git(history.mirror, tree));
      assert.equal(await git(partial, ['status', '--porcelain']), '');
    });
  }

  test('shows no object but what its refs reached, whoever knows the id of another one', async (context) => {
    const url = history.url(lastWith('\trefs/heads/main\n').from);
    const work = await tempDir(context);
    await git(work, ['init', '--quiet']);
    const pushed = await history.push('refs/heads/later', 'newest of all');
    for (const version of ['0', '1', '2']) {
      const fetched = await tryGit(work, ['-c', `protocol.version=${version}`, 'fetch', '--quiet', url, pushed]);
      assert.match(fetched.stderr, /not our ref/);
    }
    await git(work, ['fetch', '--quiet', history.url(null), pushed]);
  });

  test('fits a folder name on Windows', async (context) => {
    const { from } = lastWith('\trefs/heads/main\n');
    const clones = await tempDir(context);
    const moment = from.replaceAll(/[-:]/g, '');
    await git(clones, ['clone', '--quiet', '--branch', 'main', history.url(moment)]);
    await git(path.join(clones, `past@${moment}`), ['rev-parse', 'HEAD']);
    assert.doesNotMatch(moment, /[<>:"/\\|?*]/);
  });

  test('takes no push, and says where pushes go', async () => {
    const { from } = lastWith('\trefs/heads/main\n');
    for (const moment of [from, history.states.at(-1)?.event ?? assert.fail()]) {
      const pushed = await tryGit(history.mirror, ['push', history.url(moment), ':refs/heads/main']);
      assert.notEqual(pushed.code, 0);
      assert.match(pushed.stderr, /remote: .*read only: push to ada\/past\.git without the moment/);
    }
    assert.match(await git(history.mirror, ['ls-remote', history.url(null)]), /refs\/heads\/main/);
  });

  test('of a moment that it cannot show is not found, and git says why', async () => {
    const { clock, context } = history.fixture;
    const other = await history.fixture.repository(history.account, 'other');
    const [foreign] = await context.events.readStream(streamName('account', history.account), {
      direction: 'backwards',
      limit: 1,
    });
    const { owned } = await history.current();
    for (const [moment, reason] of [
      [plusMs(clock.now(), 1_000), 'this moment has not come yet'],
      ['99991231T235959Z', 'this moment has not come yet'],
      [plusMs(owned.createdAt, -1), `it was made later, at ${owned.createdAt}`],
      [foreign?.id ?? '', 'this event is not one of its own'],
      [other.id, 'this event is not one of its own'],
      ['yesterday', '"yesterday" is neither a time, such as 20261103T140200Z, nor the id of an event'],
      ['2026%ZZ', '"2026%ZZ" is neither a time'],
    ] as const) {
      const { code, stderr } = await tryGit(history.mirror, ['ls-remote', history.url(moment)]);
      assert.equal(code, 128);
      assert.ok(stderr.includes(`remote: Repository not found: ${reason}`), stderr);
      assert.match(stderr, /not found/);
    }
    const eve = await history.fixture.token(await history.fixture.account('eve'));
    const { stderr } = await tryGit(history.mirror, ['ls-remote', history.url('20261103T140200Z', eve)]);
    assert.match(stderr, /^remote: Repository not found\n/);
  });

  test('of a repository that is deleted now is not found, and git says what brings it back', async () => {
    const { clock, context } = history.fixture;
    const { id } = await history.fixture.repository(history.account, 'gone');
    const url = (moment: string | null, token?: TestToken) => history.url(moment, token).replace('/past', '/gone');
    await git(history.mirror, ['push', '--quiet', url(null), 'refs/heads/main:refs/heads/main']);
    const stream = streamName('repository', id);
    const [pushed] = await context.events.readStream(stream, { direction: 'forwards', limit: 1 });
    const shown = clock.now();
    const before = plusMs(shown, -24 * 60 * 60_000);
    clock.advance(1_000);
    const origin = { account: history.account, cause: systemCause(context.ids, 'test') };
    await deleteRepository(context, origin, id);
    const answer = async (moment: string, token?: TestToken) =>
      (await tryGit(history.mirror, ['ls-remote', url(moment, token)])).stderr;
    const undelete = `remote: Repository not found: it is deleted; strata repo undelete ${id} brings it back, with its past`;
    for (const moment of [shown, pushed?.id ?? '']) assert.ok((await answer(moment)).startsWith(undelete), moment);
    assert.match(await answer(clock.now()), /^remote: Repository not found: it was deleted at that moment\n/);
    // Nobody else learns that there was one.
    const eve = await history.fixture.token(await history.fixture.account('eva'));
    const reader = await history.fixture.token(history.account, { grants: ['GIT_HTTP_READ'] });
    for (const token of [eve, reader]) assert.match(await answer(shown, token), /^remote: Repository not found\n/);
    assert.match((await tryGit(history.mirror, ['ls-remote', url(null)])).stderr, /^remote: Repository not found\n/);
    const never = history.url(before).replace('/past', '/never-there');
    assert.match((await tryGit(history.mirror, ['ls-remote', never])).stderr, /^remote: Repository not found\n/);

    assert.ok(!('refused' in (await undeleteRepository(context, origin, { id, name: 'back' }))));
    assert.match(await answer(shown), /^remote: Repository not found: it is back now\n/);
    const back = history.url(shown).replace('/past', '/back');
    assert.match(await git(history.mirror, ['ls-remote', back]), /refs\/heads\/main/);

    await deleteRepository(context, origin, id);
    const again = (await tryGit(history.mirror, ['ls-remote', back])).stderr;
    assert.ok(again.startsWith(undelete), again);
    clock.advance(TEST_RETENTION_MS + 1);
    const expiring = { ...context, marks: createMemoryPolicyMarks(), retentionMs: TEST_RETENTION_MS };
    await expireDeleted(expiring, { aborted: false });
    const [expired] = await context.events.readStream(stream, { direction: 'backwards', limit: 1 });
    assert.equal(expired?.type, 'LayersExpired');
    const gone = await answer(shown);
    assert.match(gone, new RegExp(`^remote: .*passed retention: it was removed by the event ${expired.id}\n`));
    assert.match(gone, /error: 410/);
  });

  test('of the event of a first push has the default branch that the push chose', async () => {
    const { id } = await history.fixture.repository(history.account, 'fresh');
    const url = (moment: string | null) => history.url(moment).replace('/past', '/fresh');
    await git(history.mirror, ['push', '--quiet', url(null), 'refs/heads/main:refs/heads/main']);
    const stream = streamName('repository', id);
    const [pushed] = await history.fixture.context.events.readStream(stream, { direction: 'forwards', limit: 1 });
    assert.ok(pushed?.type === 'RefsUpdated' && pushed.data['door'] === 'git');
    const listed = await git(history.mirror, ['ls-remote', '--symref', url(pushed.id), 'HEAD']);
    assert.match(listed, /^ref: refs\/heads\/main\tHEAD\n/);
  });

  test('of the time between creation and the first push is empty', async (context) => {
    const { owned } = await history.current();
    const url = history.url(owned.createdAt);
    assert.equal(await git(history.mirror, ['ls-remote', url]), '');
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', url, 'empty']);
    assert.equal(await git(path.join(clones, 'empty'), ['symbolic-ref', 'HEAD']), 'refs/heads/main\n');
  });

  test('that has passed retention is gone, and git names the event that removed it', async (context) => {
    const { clock, context: fixed } = history.fixture;
    const secret = await history.push('refs/heads/secret', 'a secret');
    const shown = clock.now();
    clock.advance(1_000);
    await history.delete('refs/heads/secret');
    const deleted = clock.now();
    clock.advance(1_000);
    const work = await tempDir(context);
    await git(work, ['init', '--quiet']);
    await git(work, ['fetch', '--quiet', history.url(shown), secret]);
    clock.advance(TEST_RETENTION_MS);
    await history.drop();
    const { entity } = await history.current();
    const [drop] = await fixed.events.readStream(entity.stream, { direction: 'backwards', limit: 1 });
    assert.equal(drop?.type, 'LayersCompacted');
    const gone = await tryGit(work, ['ls-remote', history.url(shown)]);
    assert.match(gone.stderr, new RegExp(`^remote: .*passed retention: it was removed by the event ${drop?.id}\n`));
    assert.match(gone.stderr, /error: 410/);
    const empty = await tempDir(context);
    await git(empty, ['init', '--quiet']);
    const fetched = await tryGit(empty, ['fetch', history.url(deleted), secret]);
    assert.match(fetched.stderr, /not our ref/);
    assert.doesNotMatch(await git(work, ['ls-remote', history.url(deleted)]), /secret/);
  });
});
