/**
 * The two ways of answering a list of commits, the read model and the walk of objects, compared with each other and
 * with `git log`: on random histories with merges and wrong clocks, and on texts of every kind.
 *
 * Invariants: the read model is the real one on PostgreSQL, and the objects are read by the real adapter from what real
 * pushes stored. `STRATA_COMMIT_LIST_SEED=<n>` repeats the random histories of one run.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { createKnownAnswers } from '../../../../apps/front-door/known-answers.ts';
import type { CommitRow } from '../../../../core/git/commit-row.ts';
import { refName } from '../../../../core/git/ref-name.ts';
import type { RecordedEvent } from '../../../../core/kernel/envelope.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import {
  COMMIT_CROWDED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_MESSAGE_LENGTH_MAX,
  COMMITS_PAGE_BYTES_MAX,
} from '../../../../core/kernel/limits.ts';
import type { Page } from '../../../../core/kernel/page.ts';
import { withUpdatesInPlace } from '../../../../core/use-cases/pushing/restore-wide-updates.ts';
import {
  type CommitList,
  type ListCommitsContext,
  listCommits,
} from '../../../../core/use-cases/reading/list-commits.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { createModels } from '../../../../projections/models.ts';
import { createReadModels } from '../../../../projections/read-models.ts';
import { accepted } from '../../../support/accounts.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { newDatabase } from '../../../support/read-model-database.ts';
import { newRunner } from '../../../support/read-models.ts';
import { CLOCKS, importHistories, randomShapes, seededNumbers } from '../../git/history/random-histories.ts';

interface BothWays extends GitReading {
  readonly context: ListCommitsContext;
}

async function startBothWays(test: TestContext): Promise<BothWays> {
  const reading = await startGitReading();
  cleanUp(test, () => reading.close());
  const { events, objects } = reading.node;
  const database = await newDatabase(test);
  const complete = (event: RecordedEvent) => withUpdatesInPlace({ events, digest }, event);
  const models = createModels({ digest, workflows: [], objects, events, complete });
  const { runner } = newRunner(test, { events, database, models: Object.values(models) });
  const readModels = createReadModels({ digest, database, models, runner, clock: reading.node.clock });
  await runner.start();
  return { ...reading, context: { ...reading.node, ...createKnownAnswers(), readModels } };
}

const FIELDS = ['%H', '%P', '%an', '%ae', '%cn', '%ce', '%at', '%ct', '%B'];

/** What `git log` shows from this commit, in its order. */
function logOf({ git }: BothWays, tip: ObjectId): readonly CommitRow[] {
  const shown = git.git(['log', '-z', '--encoding=UTF-8', `--format=${FIELDS.join('%x01')}`, tip]).toString();
  // A NUL ends each record.
  return shown
    .split('\0')
    .slice(0, -1)
    .map((record) => {
      const [id = '', parents = '', an = '', ae = '', cn = '', ce = '', at = '', ct = '', message = ''] =
        record.split('\x01');
      return {
        id: objectId(id),
        message,
        author: { name: an, email: ae },
        committer: { name: cn, email: ce },
        authoredAt: Number(at),
        committedAt: Number(ct),
        parents: parents === '' ? [] : parents.split(' ').map(objectId),
      };
    });
}

/** Lists the default branch, for which the read model answers, and the id of its tip, for which the objects do. */
async function listBothWays({ context }: BothWays, repository: FoundRepository, page: Page) {
  const tip = repository.entity.state.refs.get(refName('refs/heads/main'))?.id ?? assert.fail('no branch');
  const list = async (ref: string | null): Promise<CommitList> =>
    accepted(await listCommits(context, repository, { ref, ofPath: null, page }));
  const walk = await list(tip);
  assert.equal(walk.ref, tip);
  return { model: await list(null), walk: { ...walk, ref: 'main' } };
}

/** Makes a line of commits with these messages, as bytes that git need not have made, and returns the last. */
function lineOf({ git }: BothWays, messages: readonly (string | Buffer)[]): ObjectId {
  const tree = git.tree([]);
  let tip: ObjectId | null = null;
  for (const [index, message] of messages.entries()) {
    const person = `Ada L\u00f6velace <ada@example.org> ${1_700_000_000 + index} +0000`;
    const head = `tree ${tree}\n${tip === null ? '' : `parent ${tip}\n`}author ${person}\ncommitter ${person}\n\n`;
    tip = git.object('commit', Buffer.concat([Buffer.from(head), Buffer.from(message)]));
  }
  return tip ?? assert.fail('no message');
}

const SEED = Number(process.env['STRATA_COMMIT_LIST_SEED'] ?? Date.now() % 2 ** 31);

describe('A list of commits', () => {
  test('is the same from the read model, from the objects and from git log, on random histories', async (test) => {
    await test.annotate(`seed ${SEED}`);
    const random = seededNumbers(SEED);
    const both = await startBothWays(test);
    for (const clock of CLOCKS) {
      const [commits = []] = importHistories(both.git.path, [randomShapes(60, clock, random)]);
      let at = 0;
      for (let move = 0; move < 6; move += 1) {
        // Mostly forwards, sometimes to any commit.
        at = random(4) > 0 ? Math.min(commits.length - 1, at + 1 + random(12)) : random(commits.length);
        const tip = commits[at]?.id ?? assert.fail('no commit');
        const repository = await both.push({ 'refs/heads/main': tip });
        const expected = logOf(both, tip);
        const limit = 1 + random(30);
        for (let offset = 0; offset <= expected.length; offset += limit) {
          const { model, walk } = await listBothWays(both, repository, { offset, limit });
          const where = `seed ${SEED}, clock ${clock}, move ${move}, offset ${offset}, limit ${limit}`;
          assert.deepEqual(model.commits, expected.slice(offset, offset + limit), `the read model; ${where}`);
          assert.deepEqual(walk, model, `the objects; ${where}`);
          assert.deepEqual([model.total, model.hasMore], [expected.length, offset + limit < expected.length], where);
        }
      }
    }
  });

  test('shows the same texts from the read model and from the objects, and those of git log if they are UTF-8', async (test) => {
    const both = await startBothWays(test);
    const utf8 = [
      'subject',
      '',
      '\n\nblank lines first\n',
      'trailing space \n\n\n',
      'H\u00e9 \u4e2d\u6587 \u{1f600}\r\n\ttab\n',
    ];
    const repository = await both.push({ 'refs/heads/main': lineOf(both, utf8) });
    const page = { offset: 0, limit: 50 };
    const shown = await listBothWays(both, repository, page);
    assert.deepEqual(shown.walk, shown.model);
    assert.deepEqual(shown.model.commits, logOf(both, shown.model.commits[0]?.id ?? assert.fail()));

    const others = [Buffer.from('latin \u00e9\n', 'latin1'), Buffer.from([0xed, 0xa0, 0x80, 0xff]), 'x'.repeat(70_000)];
    const odd = await listBothWays(both, await both.push({ 'refs/heads/main': lineOf(both, others) }), page);
    assert.deepEqual(odd.walk, odd.model);
    assert.equal(odd.model.commits[0]?.message, 'x'.repeat(COMMIT_LISTED_MESSAGE_LENGTH_MAX));
  });

  test('cuts the same messages of a page that is too large in bytes, to the same number of characters', async (test) => {
    const both = await startBothWays(test);
    // In UTF-16 code units, a page of these has less than half of the bytes that it has in UTF-8.
    for (const [character, bytes] of [
      ['m', 1],
      ['\n', 2],
      ['\u00e9', 2],
      ['\u4e2d', 3],
      ['\u{1f600}', 4],
    ] as const) {
      const length = 30_000;
      const fits = Math.floor(COMMITS_PAGE_BYTES_MAX / (length * bytes + 300));
      const message = character.repeat(length);
      const tip = lineOf(
        both,
        Array.from({ length: fits + 1 }, () => message),
      );
      const repository = await both.push({ 'refs/heads/main': tip });
      const whole = await listBothWays(both, repository, { offset: 0, limit: fits });
      const crowded = await listBothWays(both, repository, { offset: 0, limit: fits + 1 });
      assert.deepEqual(whole.walk, whole.model, `a page that fits: ${character}`);
      assert.deepEqual(crowded.walk, crowded.model, `a page that is too large: ${character}`);
      const cut = `${character.repeat(COMMIT_CROWDED_MESSAGE_LENGTH_MAX - 1)}\u2026`;
      assert.deepEqual(new Set(whole.model.commits.map((row) => row.message)), new Set([message]));
      assert.deepEqual(new Set(crowded.model.commits.map((row) => row.message)), new Set([cut]));
    }
  });
});
