/**
 * Packs that hold more than the push creates. The attack: whoever may push to `main` puts a blob into the pack that
 * nothing refers to, hands its id around, and the service serves a file that no listing, no clone and no purge knows.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { type Ending, suiteEnding } from '../support/cleanup.ts';
import {
  blob,
  CAPABILITIES,
  commit,
  deltaOf,
  EMPTY_TREE,
  pack,
  packEntry,
  packOfEntries,
  tree,
  type WireObject,
  type WireTarget,
  wireFetch,
  wireObject,
  wirePush,
} from '../support/git-wire.ts';
import { api, git, gitUrl } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { cannotBeFetched, startWatchedServer, type WatchedServer } from '../support/watched-push.ts';
import { type Story, story } from '../support/wire-story.ts';

const MAIN = 'refs/heads/main';
/** More objects than a pack may have that is checked in process. */
const MANY = 600;

/** Makes a commit of enough files that git checks its pack. */
function wideStory(text: string, parents: readonly string[] = []): Pick<Story, 'tip' | 'all'> {
  const files = Array.from({ length: MANY }, (_, n) => blob(`${text} ${n}\n`));
  const entries = files.map(({ id }, n) => ({ mode: '100644', name: `f${String(n).padStart(4, '0')}`, id }));
  const folder = tree(entries);
  const tip = commit(text, folder.id, parents);
  return { tip, all: [tip, folder, ...files] };
}

function tag(target: WireObject, name: string): WireObject {
  return wireObject(
    'tag',
    `object ${target.id}\ntype ${target.type}\ntag ${name}\ntagger A <a@b.c> 1 +0000\n\n${name}\n`,
  );
}

describe('An object of a pack that the push leads to by no ref', () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  const open = story('open to all');

  beforeAll(async () => {
    server = await startWatchedServer(ending);
  });

  async function newTarget(): Promise<WireTarget> {
    const target = await server.newTarget();
    await pushes(target, [{ ref: MAIN, after: open.tip.id }], open.all);
    return target;
  }

  async function pushes(target: WireTarget, commands: Parameters<typeof wirePush>[1], packed: Packed): Promise<void> {
    const report = await wirePush(target, commands, packed);
    for (const [ref, word] of report.refs) assert.equal(word, 'ok', `${ref}: ${report.remote}`);
    assert.equal(report.refs.size, commands.length, report.remote);
  }

  /** Neither protocol version nor REST shows them, and a clone holds exactly what the refs reach. */
  async function areNotServed(target: WireTarget, hidden: readonly WireObject[], served: readonly WireObject[]) {
    for (const { id, type } of hidden) {
      await cannotBeFetched(target, id);
      if (type === 'commit') await isNotShown(target, id);
    }
    for (const { id } of served) {
      for (const version of [0, 2] as const) assert.ok('pack' in (await wireFetch(target, id, version)), `${id}`);
    }
    await clonesWhole(ending, target);
  }

  async function isNotShown({ strata, account, name }: WireTarget, id: string): Promise<void> {
    const repository = `/v1/repos/${account.username}/${name}`;
    for (const read of [`commits?ref=${id}`, `contents?ref=${id}`, `archive/${id}.tar.gz`, `commits/${id}`]) {
      const answer = await api(strata, account.token, 'GET', `${repository}/${read}`);
      assert.equal(answer.status, 404, `${read}: ${answer.text}`);
    }
  }

  test('is not served of a first push, whatever checks its pack', async () => {
    for (const made of [story('first'), wideStory('first')]) {
      const target = await server.newTarget();
      const secret = story('secret beside it', [made.tip.id]);
      const lone = blob('a secret of nobody');
      await pushes(target, [{ ref: MAIN, after: made.tip.id }], [...made.all, ...secret.all, lone]);
      await areNotServed(target, [...secret.all, lone], made.all.slice(0, 5));
    }
  });

  test('is not served of a later push, whatever checks its pack', async () => {
    for (const make of [story, wideStory]) {
      const target = await newTarget();
      const made = make('second', [open.tip.id]);
      const secret = story('secret beside it', [made.tip.id]);
      const lone = blob('a secret of nobody');
      const packed = [lone, ...made.all, ...secret.all];
      await pushes(target, [{ ref: MAIN, before: open.tip.id, after: made.tip.id }], packed);
      await areNotServed(target, [...secret.all, lone], [...open.all, ...made.all.slice(0, 5)]);
      // What is built upon the new tip is stored as ever.
      const next = story('third', [made.tip.id]);
      await pushes(target, [{ ref: MAIN, before: made.tip.id, after: next.tip.id }], next.all);
      await areNotServed(target, [...secret.all, lone], next.all);
    }
  });

  test('is not served of a pack that lacks bases, whichever object is made from them', async () => {
    const target = await newTarget();
    const made = story('open to all, and more', [open.tip.id]);
    const lone = blob(`a secret about ${open.file.bytes.toString()}`);
    const base = Buffer.from(open.file.id, 'hex');
    const thin = packOfEntries([
      packEntry('ref-delta', deltaOf(open.file.bytes, made.file.bytes), { base }),
      packEntry('ref-delta', deltaOf(open.file.bytes, lone.bytes), { base }),
      packEntry('commit', made.tip.bytes),
      packEntry('tree', made.folder.bytes),
    ]);
    await pushes(target, [{ ref: MAIN, before: open.tip.id, after: made.tip.id }], thin);
    await areNotServed(target, [lone], [...open.all, ...made.all]);
  });

  test('is not served beside tags of tags, trees and blobs, all of which are', async () => {
    const target = await newTarget();
    const [made, secret, lone] = [story('tagged'), story('secret'), blob('lone')];
    const inner = tag(made.tip, 'inner');
    const tags = [tag(inner, 'outer'), tag(made.folder, 'tree'), tag(blob('a tagged blob'), 'blob')];
    const commands = tags.map(({ id }, index) => ({ ref: `refs/tags/t${index}`, after: id }));
    const hidden = [...secret.all, lone, tag(made.tip, 'hidden'), tag(inner, 'hidden too')];
    await pushes(target, commands, [...hidden, inner, ...tags, ...made.all, blob('a tagged blob')]);
    await areNotServed(target, hidden, [inner, ...tags, ...made.all, blob('a tagged blob'), ...open.all]);
  });

  test('is not served when one ref is created and another deleted, in one atomic push too', async () => {
    for (const capabilities of [CAPABILITIES, `${CAPABILITIES} atomic`]) {
      const target = await newTarget();
      const [gone, made, secret] = [story('gone', [open.tip.id]), story('made', [open.tip.id]), story('secret')];
      await pushes(target, [{ ref: 'refs/heads/gone', after: gone.tip.id }], gone.all);
      const commands = [
        { ref: 'refs/heads/gone', before: gone.tip.id },
        { ref: 'refs/heads/made', after: made.tip.id },
      ];
      const report = await wirePush(target, commands, [...secret.all, ...made.all], { capabilities });
      assert.deepEqual([...report.refs.values()], ['ok', 'ok'], report.remote);
      await areNotServed(target, secret.all, [...open.all, ...made.all, gone.folder, gone.file]);
    }
  });

  test('is not served of a push whose tips are there already, which stores nothing', async () => {
    const target = await newTarget();
    const secret = story('secret', [open.tip.id]);
    await pushes(target, [{ ref: 'refs/heads/same', after: open.tip.id }], secret.all);
    await areNotServed(target, secret.all, open.all);
    await pushes(target, [{ ref: 'refs/heads/again', after: open.tip.id }], pack([]));
    await pushes(target, [{ ref: 'refs/heads/more', after: open.tip.id }], open.all);
    await areNotServed(target, secret.all, open.all);
  });

  test('is not served though a submodule of the pushed tree has its id', async () => {
    const target = await newTarget();
    const secret = story('secret');
    const folder = tree([{ mode: '160000', name: 'module', id: secret.tip.id }]);
    const made = commit('a submodule', folder.id, [open.tip.id]);
    await pushes(target, [{ ref: MAIN, before: open.tip.id, after: made.id }], [made, folder, ...secret.all]);
    await areNotServed(target, secret.all, [made, folder]);
  });

  test('is not served beside the empty tree', async () => {
    const target = await newTarget();
    const made = commit('nothing', EMPTY_TREE, [open.tip.id]);
    const lone = blob('lone');
    await pushes(target, [{ ref: MAIN, before: open.tip.id, after: made.id }], [made, tree([]), lone]);
    await areNotServed(target, [lone], [made]);
  });
});

type Packed = Parameters<typeof wirePush>[2];

/** Checks that a clone is whole, and that the refs reach every object that it got. */
async function clonesWhole(ending: Ending, { strata, account, name }: WireTarget): Promise<void> {
  const folder = path.join(await tempDir(ending), 'clone.git');
  await git('/', ['clone', '--quiet', '--mirror', gitUrl(strata, account, name), folder]);
  assert.equal((await git(folder, ['fsck', '--full', '--strict', '--unreachable'])).trim(), '');
}
