/** Hostile packs: the server refuses each with a clear reason, in bounded time and memory, and keeps nothing of it. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  blob,
  commit,
  EMPTY_TREE,
  pack,
  packEntry,
  packOfEntries,
  tree,
  type WireEntry,
  type WireObject,
  type WireTarget,
  wireFetch,
  wireObject,
  wirePush,
  wireRefs,
} from '../support/git-wire.ts';
import { api, git, gitUrl } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { assertRefused, startWatchedServer, type WatchedServer } from '../support/watched-push.ts';

const FILE = blob('a file\n');
const FOLDER = tree([{ mode: '100644', name: 'file', id: FILE.id }]);
const FIRST = commit('first', FOLDER.id);
const MAIN = 'refs/heads/main';
const GIB = 1024 ** 3;

const DAMAGED =
  /unpack (the pack (ends too early|does not match its checksum|is broken)|.*follows the pack|.*not a pack)/;
const TOO_COSTLY = /unpack the pack (takes more memory|is broken)/;
const BROKEN_DELTAS = /unpack the pack (has deltas whose base|is broken)/;
const NOT_CONNECTED = /unpack object [0-9a-f]{40} is referred to/;
const FORBIDDEN_TREE =
  /object [0-9a-f]{40}: (hasDotgit|hasDotdot|hasDot|emptyName|badTree|fullPathname|duplicateEntries|treeNotSorted|nullSha1)/;
const FORBIDDEN_FILE = /object [0-9a-f]{40}: gitmodules[A-Z]/;
const MALFORMED = /object [0-9a-f]{40}: (missingAuthor|nulInHeader|cannot be parsed)|a tag cannot be parsed/;

/** The size of a delta's base or result: gitformat-pack(5). */
function deltaSize(size: number): Buffer {
  const bytes: number[] = [];
  for (let rest = size; ; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) | (rest >= 128 ? 0x80 : 0));
    if (rest < 128) return Buffer.from(bytes);
  }
}

/** A delta that copies the first 65,536 bytes of its base repeatedly. */
function bombDelta(baseSize: number, resultSize: number): Buffer {
  const copies = Math.ceil(resultSize / 65_536);
  return Buffer.concat([deltaSize(baseSize), deltaSize(resultSize), Buffer.alloc(copies, 0x80)]);
}

function refDelta(base: string, delta: Buffer): Buffer {
  return packEntry('ref-delta', delta, { base: Buffer.from(base, 'hex') });
}

/** A delta that copies a whole small base. */
function copyDelta(size: number): Buffer {
  return Buffer.concat([deltaSize(size), deltaSize(size), Buffer.from([0x90, size])]);
}

/** Changes the pack and writes a matching checksum. */
function resealed(packed: Buffer, change: (bytes: Buffer) => void): Buffer {
  const body = Buffer.from(packed.subarray(0, -20));
  change(body);
  return Buffer.concat([body, createHash('sha1').update(body).digest()]);
}

describe('A pack', () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  let target: WireTarget;

  beforeAll(async () => {
    server = await startWatchedServer(ending);
    target = await server.newTarget();
    const pushed = await wirePush(target, [{ ref: MAIN, after: FIRST.id }], [FIRST, FOLDER, FILE]);
    assert.equal(pushed.refs.get(MAIN), 'ok', pushed.remote);
  });

  /** Checks that a push of this tip with this pack is refused, and that none of the ids can be fetched afterwards. */
  const refuses = async (
    what: string,
    tip: string,
    packed: readonly WireObject[] | Buffer,
    reason: RegExp,
    ids: readonly string[] = [],
  ): Promise<void> => {
    const objects = Buffer.isBuffer(packed) ? [] : packed.map(({ id }) => id);
    const push = () => wirePush(target, [{ ref: MAIN, before: FIRST.id, after: tip }], packed);
    const report = await server.leavesNothing(target, [...objects, ...ids], push);
    assertRefused(report, reason, what);
    assert.notEqual(report.unpack, 'ok', what);
    assert.doesNotMatch(report.remote, /\/tmp\/|\/work\/|quarantine|\.pack\b/, `${what} names a folder of the server`);
  };

  test('that is damaged is refused, however it is damaged', async () => {
    const next = commit('next', FOLDER.id, [FIRST.id]);
    const whole = pack([next]);
    const middle = Math.floor(whole.length / 2);
    for (const [what, packed] of [
      ['no pack', Buffer.alloc(0)],
      ['half a header', whole.subarray(0, 7)],
      ['a header alone', whole.subarray(0, 12)],
      ['cut in an object', whole.subarray(0, middle)],
      ['cut in its trailer', whole.subarray(0, -3)],
      ['a wrong trailer', Buffer.concat([whole.subarray(0, -20), Buffer.alloc(20)])],
      ['a flipped byte', resealed(whole, (bytes) => void (bytes[middle] = (bytes[middle] ?? 0) ^ 0x10))],
      ['version 9', resealed(whole, (bytes) => bytes.writeUInt32BE(9, 4))],
      ['another signature', resealed(whole, (bytes) => bytes.write('KCAP'))],
      ['a count too low', resealed(pack([next, blob('more')]), (bytes) => bytes.writeUInt32BE(1, 8))],
      ['a count too high', resealed(whole, (bytes) => bytes.writeUInt32BE(2, 8))],
      ['an unknown type of object', packOfEntries([Buffer.concat([Buffer.from([0x50]), whole.subarray(13, -20)])])],
      ['bytes after its end', Buffer.concat([whole, Buffer.from('and more')])],
      ['a second pack after its end', Buffer.concat([whole, whole])],
      ['no objects and a wrong trailer', resealed(pack([]), () => undefined).fill(1, 12)],
      ['prose', Buffer.from('this is no pack at all, but it is long enough to be one')],
    ] as const) {
      await refuses(what, next.id, packed, DAMAGED, [next.id]);
    }
  });

  test('whose header claims 2^32-1 objects is refused before memory is allocated for them', async () => {
    const next = commit('many', FOLDER.id, [FIRST.id]);
    const claiming = packOfEntries([packEntry('commit', next.bytes)], 2 ** 32 - 1);
    await refuses('a claim', next.id, claiming, /4294967295 objects, at most 10000000 are allowed/, [next.id]);
  });

  test('that expands beyond the limit of a push is refused, while other clients are served', async () => {
    const zeros = Buffer.alloc(65_536);
    const base = blob(zeros);
    const whole = packEntry('blob', zeros);
    const bombs = [
      packOfEntries([whole, refDelta(base.id, bombDelta(65_536, 8 * GIB))]),
      packOfEntries([
        whole,
        refDelta(base.id, Buffer.concat([deltaSize(65_536), deltaSize(2 ** 52), Buffer.from([0x80])])),
      ]),
      packOfEntries([packEntry('blob', zeros, { sizeBytes: 2 ** 50 })]),
    ];
    for (const [index, bomb] of bombs.entries()) {
      assert.ok(bomb.length < 200_000);
      let done = false;
      const refused = refuses(`bomb ${index}`, FIRST.id.replace(/^../, '00'), bomb, TOO_COSTLY, [base.id]);
      const finished = refused.finally(() => void (done = true));
      let served = 0;
      do {
        assert.equal((await wireRefs(target)).get(MAIN), FIRST.id);
        served += 1;
      } while (!done);
      await finished;
      assert.ok(served > 0);
    }
  });

  test('with deltas that form a cycle, or have no base, is refused', async () => {
    const size = 40;
    const [one, two] = [blob(randomBytes(size)), blob(randomBytes(size))];
    const circle = packOfEntries([refDelta(one.id, copyDelta(size)), refDelta(two.id, copyDelta(size))]);
    await refuses('a circle', one.id, circle, BROKEN_DELTAS, [one.id, two.id]);
    const toItself = packEntry('ofs-delta', copyDelta(size), { base: Buffer.from([0]) });
    await refuses('itself', one.id, packOfEntries([toItself]), BROKEN_DELTAS);
    const beforeTheStart = packEntry('ofs-delta', copyDelta(size), { base: Buffer.from([0xff, 0x7f]) });
    await refuses('before the start', one.id, packOfEntries([beforeTheStart]), BROKEN_DELTAS);
    const missing = packOfEntries([refDelta('ab'.repeat(20), copyDelta(size))]);
    await refuses('a missing base', one.id, missing, BROKEN_DELTAS);
    const lying = Buffer.concat([deltaSize(FILE.bytes.length + 1), deltaSize(4), Buffer.from([0x90, 4])]);
    await refuses('a base of another size', one.id, packOfEntries([refDelta(FILE.id, lying)]), BROKEN_DELTAS);
    const beyond = Buffer.concat([deltaSize(FILE.bytes.length), deltaSize(200), Buffer.from([0x90, 200])]);
    await refuses('a copy from beyond its base', one.id, packOfEntries([refDelta(FILE.id, beyond)]), BROKEN_DELTAS);
  });

  test('may use no object of another repository, neither as a base nor as a parent nor as content', async () => {
    const other = await server.newTarget();
    const secret = blob(`a secret ${'of another repository '.repeat(5)}`);
    const secretTree = tree([{ mode: '100644', name: 'secret', id: secret.id }]);
    const secretCommit = commit('secret', secretTree.id);
    await wirePush(other, [{ ref: MAIN, after: secretCommit.id }], [secretCommit, secretTree, secret]);
    assert.ok('pack' in (await wireFetch(other, secretCommit.id, 2)));

    const ids = [secret.id, secretTree.id, secretCommit.id];
    const size = secret.bytes.length;
    const thin = packOfEntries([
      refDelta(secret.id, Buffer.concat([deltaSize(size), deltaSize(9), Buffer.from([0x90, 9])])),
    ]);
    await refuses('a base', secret.id, thin, BROKEN_DELTAS, ids);
    const child = commit('child', FOLDER.id, [secretCommit.id]);
    await refuses('a parent', child.id, [child], NOT_CONNECTED, ids);
    const taking = commit('taking', secretTree.id, [FIRST.id]);
    await refuses('a tree', taking.id, [taking], NOT_CONNECTED, ids);
    const folder = tree([{ mode: '100644', name: 'x', id: secret.id }]);
    const holding = commit('holding', folder.id, [FIRST.id]);
    await refuses('a blob', holding.id, [holding, folder], NOT_CONNECTED, ids);
    // A push of the other repository's commit id, with an empty pack.
    const report = await server.leavesNothing(target, ids, () =>
      wirePush(target, [{ ref: 'refs/heads/stolen', after: secretCommit.id }], []),
    );
    assertRefused(report, /is not here/);
  });

  test('that lacks what its objects refer to is refused', async () => {
    const missing = 'cd'.repeat(20);
    const orphan = commit('orphan', FOLDER.id, [missing]);
    await refuses('a missing parent', orphan.id, [orphan], NOT_CONNECTED);
    const treeless = commit('treeless', missing, [FIRST.id]);
    await refuses('a missing tree', treeless.id, [treeless], NOT_CONNECTED);
    const hole = tree([{ mode: '100644', name: 'hole', id: missing }]);
    await refuses('a missing blob', commit('x', hole.id).id, [commit('x', hole.id), hole], NOT_CONNECTED);
    const deep = tree([{ mode: '40000', name: 'deep', id: missing }]);
    await refuses('a missing folder', commit('y', deep.id).id, [commit('y', deep.id), deep], NOT_CONNECTED);
    const tag = wireObject('tag', `object ${missing}\ntype commit\ntag t\ntagger A <a@example.org> 1 +0000\n\nt\n`);
    await refuses('a missing tag target', tag.id, [tag], NOT_CONNECTED);
    // The objects exist here, but have the wrong type.
    const blobAsTree = commit('wrong', FILE.id, [FIRST.id]);
    await refuses('a blob for a tree', blobAsTree.id, [blobAsTree], NOT_CONNECTED);
    const treeAsParent = commit('wrong', FOLDER.id, [FOLDER.id]);
    await refuses('a tree for a parent', treeAsParent.id, [treeAsParent], NOT_CONNECTED);
  });

  test('with a .git in any disguise, or a tree that no file system can hold, is refused by fsck', async () => {
    const disguised: readonly (string | Buffer)[] = [
      ...['.git', '.GIT', '.Git', 'git~1', 'GIT~1', '.git ', '.git.', '.git. . ', '.git::$INDEX_ALLOCATION'],
      ...['.g\u200cit', '.gi\u200dt', '\ufeff.git', '..', '.', '', 'a/b', '/a'],
    ];
    for (const name of disguised) {
      const trees: readonly WireEntry[][] = [
        [{ mode: '40000', name, id: FOLDER.id }],
        [{ mode: '100644', name, id: FILE.id }],
      ];
      for (const entries of trees) {
        const bad = tree(entries);
        const tip = commit('bad', bad.id, [FIRST.id]);
        await refuses(JSON.stringify(name), tip.id, [tip, bad], FORBIDDEN_TREE);
      }
    }
    const file = (name: string): WireEntry => ({ mode: '100644', name, id: FILE.id });
    const malformed: readonly (readonly [string, WireObject])[] = [
      ['one name twice', tree([file('a'), file('a')])],
      ['a file and a folder of one name', tree([file('a'), { mode: '40000', name: 'a', id: FOLDER.id }])],
      ['names out of order', tree([file('b'), file('a')])],
      ['a null id', tree([{ mode: '100644', name: 'null', id: '0'.repeat(40) }])],
      ['half an entry', wireObject('tree', Buffer.from('100644 half\0abc'))],
      ['an entry without a mode', wireObject('tree', Buffer.from('file\0aaaaaaaaaaaaaaaaaaaa'))],
    ];
    for (const [what, bad] of malformed) {
      await refuses(
        what,
        commit('bad', bad.id, [FIRST.id]).id,
        [commit('bad', bad.id, [FIRST.id]), bad],
        FORBIDDEN_TREE,
      );
    }
  });

  test('with .gitmodules as a link, or a hostile .gitmodules, is refused', async () => {
    const link = blob('/etc/passwd');
    for (const name of ['.gitmodules', '.GITMODULES', 'gitmod~1']) {
      const bad = tree([{ mode: '120000', name, id: link.id }]);
      const tip = commit('link', bad.id, [FIRST.id]);
      await refuses(`a link called ${name}`, tip.id, [tip, bad, link], FORBIDDEN_FILE);
    }
    for (const [what, text] of [
      ['a path that is an option', '[submodule "x"]\n\tpath = -x\n\turl = https://example.org/x\n'],
      ['a url that is an option', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=id\n'],
      ['a url with a line feed', '[submodule "x"]\n\tpath = x\n\turl = "https://example.org/\\nx"\n'],
      ['a command', '[submodule "x"]\n\tpath = x\n\turl = https://example.org/x\n\tupdate = !id\n'],
      ['a name that climbs', '[submodule "../../x"]\n\tpath = x\n\turl = https://example.org/x\n'],
      ['a command before what is no configuration', '[submodule "x"]\n\tupdate = !id\n[submodule "x\n'],
    ] as const) {
      const modules = blob(text);
      const bad = tree([{ mode: '100644', name: '.gitmodules', id: modules.id }]);
      const tip = commit('modules', bad.id, [FIRST.id]);
      await refuses(what, tip.id, [tip, bad, modules], FORBIDDEN_FILE);
    }
    // In two pushes: the first stores the text under another name, the second has its tree.
    const modules = blob('[submodule "../../y"]\n\tpath = x\n\turl = https://example.org/x\n');
    const plain = tree([{ mode: '100644', name: 'plain', id: modules.id }]);
    const planted = commit('planted', plain.id, [FIRST.id]);
    const first = await wirePush(target, [{ ref: 'refs/heads/planted', after: planted.id }], [planted, plain, modules]);
    assert.equal(first.refs.get('refs/heads/planted'), 'ok');
    const bad = tree([{ mode: '100644', name: '.gitmodules', id: modules.id }]);
    const tip = commit('sprung', bad.id, [FIRST.id]);
    await refuses('a planted text', tip.id, [tip, bad], FORBIDDEN_FILE);
  });

  test('with malformed commits and tags is refused', async () => {
    const who = 'A U Thor <a@example.org> 1700000000 +0000';
    for (const [what, object] of [
      ['no author', wireObject('commit', `tree ${EMPTY_TREE}\ncommitter ${who}\n\nx\n`)],
      [
        'a header with a NUL',
        wireObject('commit', `tree ${EMPTY_TREE}\nauthor A\0 <a@x> 1 +0000\ncommitter ${who}\n\nx\n`),
      ],
      ['no tree', wireObject('commit', `author ${who}\ncommitter ${who}\n\nx\n`)],
      ['half a tree id', wireObject('commit', `tree ${EMPTY_TREE.slice(1)}\nauthor ${who}\ncommitter ${who}\n\nx\n`)],
      ['a tag without a type', wireObject('tag', `object ${FIRST.id}\ntag t\ntagger ${who}\n\nx\n`)],
    ] as const) {
      await refuses(what, object.id, [object], MALFORMED);
    }
  });

  test('with the oddities of old histories is accepted: modes 100664 and zero-padded, odd dates', async () => {
    const old = tree([
      { mode: '100664', name: 'a', id: FILE.id },
      { mode: '040000', name: 'b', id: FOLDER.id },
      { mode: '160000', name: 'c', id: 'ef'.repeat(20) },
    ]);
    const tip = commit('old', old.id, [FIRST.id]);
    const report = await wirePush(target, [{ ref: 'refs/heads/old', after: tip.id }], [tip, old]);
    assert.equal(report.refs.get('refs/heads/old'), 'ok', report.remote);
  });

  test('with what git and GitHub take from old histories is accepted, and cloned whole', async (context) => {
    const who = 'A U Thor <a@example.org> 1700000000 +0000';
    const link = blob('shared');
    const broken = blob('[submodule "x\n');
    const links = ['.gitattributes', '.gitignore', '.mailmap'].map((name): WireEntry => {
      return { mode: '120000', name, id: link.id };
    });
    const shared = tree([
      ...links.slice(0, 2),
      { mode: '100644', name: '.gitmodules', id: broken.id },
      ...links.slice(2),
    ]);
    const identities = [
      'A <a@x>1 +0000',
      'A <a@x> 1 +051800',
      'A<a@x> 1 +0000',
      '<a@x> 1 +0000',
      'A > B <a@x> 1 +0000',
      'A <<a@x>> 1 +0000',
      'A <a@x 1 +0000',
      'A 1 +0000',
      'A <a@x> yesterday',
      'A <a@x> 0000000001 +0000',
      'A <a@x> 99999999999999999999 +0000',
    ];
    const people = identities.flatMap((odd) => [`author ${odd}\ncommitter ${who}`, `author ${who}\ncommitter ${odd}`]);
    const objects: WireObject[] = [shared, link, broken];
    let tip = FIRST.id;
    for (const lines of [...people, `author ${who}\nauthor ${who}\ncommitter ${who}`]) {
      const next = wireObject('commit', `tree ${shared.id}\nparent ${tip}\n${lines}\n\nx\n`);
      objects.push(next);
      tip = next.id;
    }
    const taken = await wirePush(target, [{ ref: 'refs/heads/odd', after: tip }], objects);
    assert.equal(taken.refs.get('refs/heads/odd'), 'ok', taken.remote);
    const folder = await tempDir(context);
    await git(folder, [
      'clone',
      '--quiet',
      '--bare',
      '--branch',
      'odd',
      gitUrl(target.strata, target.account, target.name),
      'odd.git',
    ]);
    const listed = await git(folder, ['--git-dir=odd.git', 'rev-list', '--objects', 'odd']);
    for (const { id } of objects) assert.ok(listed.includes(id));
    const { username } = target.account;
    const path = `/v1/repos/${username}/${target.name}/commits?ref=odd&limit=100`;
    const answer = await api(target.strata, target.account.token, 'GET', path);
    assert.equal(answer.status, 200, answer.text);
    const { commits } = answer.body as { readonly commits: readonly { readonly hexsha: string }[] };
    const log = await git(folder, ['--git-dir=odd.git', 'log', '--format=%H', 'odd']);
    assert.deepEqual(new Set(commits.map(({ hexsha }) => hexsha)), new Set(log.trim().split('\n')));
  });
});
