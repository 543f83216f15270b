/**
 * Random changes of files, written over REST to a real server, and the same commits made by git: their ids are equal.
 * `STRATA_TREE_ROUNDS=2000` makes as many, `STRATA_TREE_SECONDS` as many as it gets done in that time, and
 * `STRATA_TREE_SEED` makes others.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { test } from 'vitest';
import type { TreeChange } from '../../core/git/tree-changes.ts';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { cleanUp } from '../support/cleanup.ts';
import { startImporting } from '../support/imported-commits.ts';
import { expectedFiles, randomChange } from '../support/random-changes.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import { api, createAccount, createRepository, git } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const ZERO = '0'.repeat(40);
/** No content has it. */
const OTHER_BLOB = '1'.repeat(40);
/** Commits until a new branch begins. */
const BRANCH_ROUNDS = 50;
const CHANGES_MAX = 5;
/** Below the limit of a file, with time left for the clone and its check. */
const SPAN_MS = 6 * 60_000;

interface Branch {
  readonly name: string;
  /** The head of another branch that it begins at; null: without files. */
  readonly start: string | null;
  /** Null until its first commit. */
  readonly head: string | null;
  readonly files: ReadonlyMap<string, string>;
}

interface Answered {
  readonly after?: string;
  readonly event_id?: string | null;
  readonly code?: string;
  readonly index?: number;
}

type Contents = Map<ObjectId, Buffer>;

test('Random commits over REST have the ids that git gives them, and git fsck finds no fault', {
  timeout: SPAN_MS + 90_000,
}, async (context) => {
  const seed = Number(process.env['STRATA_TREE_SEED'] ?? 35);
  const seconds = Number(process.env['STRATA_TREE_SECONDS'] ?? 0);
  const rounds = seconds > 0 ? Number.POSITIVE_INFINITY : Number(process.env['STRATA_TREE_ROUNDS'] ?? 150);
  const strata = await startNode(context, await sharedParts(context), { STRATA_RATE_FACTOR: '1000' });
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'random');
  const folder = await tempDir(context);
  await git(folder, ['init', '--quiet', '--bare', 'made.git']);
  const imported = startImporting(path.join(folder, 'made.git'));
  cleanUp(context, () => imported.end());

  const dice = createDice(seed);
  const contents: Contents = new Map();
  const branches = new Map<string, Branch>();
  let branch = newBranch(dice, branches);
  let compared = 0;
  const deadline = performance.now() + (seconds > 0 ? seconds * 1_000 : SPAN_MS);
  let round = 0;
  for (; round < rounds && performance.now() < deadline; round += 1) {
    if (round % BRANCH_ROUNDS === BRANCH_ROUNDS - 1) branch = newBranch(dice, branches);
    if (contents.size < 3 || dice.chance(0.3)) imported.blob(newContent(dice, contents));
    const { files, head, start } = branch;
    const changes = Array.from({ length: 1 + dice.below(CHANGES_MAX) }, () =>
      randomChange(dice, files, [...contents.keys()]),
    );
    const expected = expectedFiles(files, changes);
    const [author, committer] = [randomPerson(dice), dice.chance(0.5) ? null : randomPerson(dice)];
    const message = randomMessage(dice);
    const mayBeEmpty = (head === null && start !== null) || dice.chance(0.2);
    const json = changes.map((change) => changeJson(dice, change, files, contents));
    const stale = expected !== null && dice.chance(0.1) ? dice.below(changes.length) : null;
    const body = {
      branch: branch.name,
      expected: dice.chance(0.3) ? 'any' : (head ?? ZERO),
      ...(head === null && start !== null ? { start } : {}),
      message,
      author: author.json,
      ...(committer === null ? {} : { committer: committer.json }),
      changes: json.map((change, index) => (index === stale ? { ...change, expected_blob: OTHER_BLOB } : change)),
      ...(mayBeEmpty ? { allow_empty: true } : {}),
    };
    const answer = await api(strata, ada.token, 'POST', '/v1/repos/ada/random/commits', body);
    const { after, event_id, code, index } = answer.body as Answered;
    const about = `STRATA_TREE_SEED=${seed}, round ${round}: ${JSON.stringify(body)} was answered ${answer.status}: ${answer.text}`;
    if (expected === null) {
      assert.equal(answer.status, 422, about);
      continue;
    }
    if (stale !== null) {
      assert.deepEqual([answer.status, code, index], [409, 'blob-moved', stale], about);
      continue;
    }
    if (head !== null && !mayBeEmpty && isSame(files, expected)) {
      assert.deepEqual([answer.status, after, event_id], [200, head, null], about);
      continue;
    }
    assert.equal(answer.status, 201, about);
    const parent = head ?? start;
    const made = await imported.commit({
      ...{ ref: `refs/heads/${branch.name}`, parent, author: author.line, committer: (committer ?? author).line },
      ...{ message: message.endsWith('\n') ? message : `${message}\n`, files: expected },
    });
    assert.equal(after, made, about);
    branch = { ...branch, head: made, files: expected };
    branches.set(branch.name, branch);
    compared += 1;
  }
  await context.annotate(
    `STRATA_TREE_SEED=${seed}: ${compared} of ${round} rounds made a commit, on ${branches.size} branches`,
  );
  assert.ok(seconds > 0 || round === rounds, `the time ended after ${round} of ${rounds} rounds`);
  assert.ok(compared > round / 8, `${compared} of ${round} were compared`);

  // Every commit is an ancestor of a branch's head, so this checks them all.
  await git(folder, ['clone', '--quiet', '--mirror', url, 'back.git']);
  const back = path.join(folder, 'back.git');
  await git(back, ['fsck', '--full', '--strict']);
  const heads = [...branches.values()].map(({ name, head }) => `${head} refs/heads/${name}\n`);
  const listed = await git(back, ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads']);
  assert.deepEqual(
    listed.split(/(?<=\n)/),
    heads.toSorted((a, b) => (a.slice(41) < b.slice(41) ? -1 : 1)),
  );
});

/** Half of them begin at the head of another one. */
function newBranch(dice: Dice, branches: ReadonlyMap<string, Branch>): Branch {
  const name = `branch-${branches.size}`;
  if (branches.size === 0 || dice.chance(0.5)) return { name, start: null, head: null, files: new Map() };
  const { head, files } = dice.pick([...branches.values()]);
  return { name, start: head, head: null, files };
}

function newContent(dice: Dice, contents: Contents): Buffer {
  const bytes = Array.from({ length: dice.below(40) }, () => dice.below(256));
  const content = dice.chance(0.3) ? Buffer.from(bytes) : Buffer.from(randomText(dice, '\n'));
  contents.set(objectId(createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')), content);
  return content;
}

const WORDS = ['one', 'Two', 'ä', '日本', '#', '"', '\\', '\t', '😀', '\r\n', ' ', '.', 'Signed-off-by:'];

function randomText(dice: Dice, separator: string): string {
  return Array.from({ length: dice.below(8) }, () => dice.pick(WORDS)).join(dice.chance(0.5) ? separator : ' ');
}

/** `git commit` would strip what is at its ends. */
function randomMessage(dice: Dice): string {
  return `${randomText(dice, '\n\n')}${dice.pick(['m', '\n', '\n\n', ' \n', '# m'])}`;
}

const PEOPLE = [
  { name: 'Ada', email: 'ada@example.org' },
  { name: 'Grace Brewster M. Hopper', email: 'grace' },
  { name: 'Ämilie 日本', email: 'ä@example.org' },
];
const ZONES = ['Z', '+00:00', '+05:30', '-03:30', '+14:00', '-11:00'];

/** An author as the API takes one, and as git writes one. */
function randomPerson(dice: Dice) {
  const { name, email } = dice.pick(PEOPLE);
  const zone = dice.pick(ZONES);
  const seconds = dice.below(2 ** 31);
  const [sign, hours, minutes] = zone === 'Z' ? ['+', '00', '00'] : [zone[0], zone.slice(1, 3), zone.slice(4)];
  const ahead = (sign === '-' ? -60 : 60) * (60 * Number(hours) + Number(minutes));
  const local = new Date((seconds + ahead) * 1_000).toISOString().slice(0, 19);
  return {
    json: { name, email, date: `${local}${zone}` },
    line: `${name} <${email}> ${seconds} ${sign}${hours}${minutes}`,
  };
}

/** The change as JSON, in one of the forms that say the same. */
function changeJson(dice: Dice, change: TreeChange, files: ReadonlyMap<string, string>, contents: Contents): object {
  const there = files.get(Buffer.from(change.path).toString('latin1'));
  const json = {
    action: change.action,
    ...textOrBase64(dice, 'path', Buffer.from(change.path)),
    ...(there !== undefined && dice.chance(0.3) ? { expected_blob: there.slice(7) } : {}),
  };
  if (change.action === 'delete') return json;
  if (change.action === 'move') return { ...json, ...textOrBase64(dice, 'to', Buffer.from(change.to)) };
  const { blob, mode } = change;
  const isReached = [...files.values()].some((file) => file.endsWith(blob));
  const content =
    isReached && dice.chance(0.3) ? { blob } : textOrBase64(dice, 'content', contents.get(blob) ?? Buffer.alloc(0));
  return { ...json, ...content, ...(mode === null ? {} : { mode }) };
}

function textOrBase64(dice: Dice, member: string, bytes: Buffer): object {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && dice.chance(0.7)
    ? { [member]: text }
    : { [`${member}_base64`]: bytes.toString('base64') };
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([file, entry]) => other.get(file) === entry);
}
