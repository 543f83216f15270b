/** Hostile command lists and ref names: the server refuses the whole list or single refs, and nothing else. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, test } from 'vitest';
import { REF_COMPONENT_BYTES_MAX } from '../../core/git/ref-name.ts';
import { PUSH_COMMANDS_MAX, REF_NAME_BYTES_MAX } from '../../core/kernel/limits.ts';
import { suiteEnding } from '../support/cleanup.ts';
import {
  blob,
  CAPABILITIES,
  commandList,
  commit,
  FLUSH,
  pack,
  packet,
  postService,
  reportOf,
  tree,
  type WireReport,
  type WireTarget,
  wireObject,
  wirePush,
  wireRefs,
  ZERO,
} from '../support/git-wire.ts';
import { assertRefused, startWatchedServer, type WatchedServer } from '../support/watched-push.ts';

const FIRST = commit('first');
const SECOND = commit('second', undefined, [FIRST.id]);
const MAIN = 'refs/heads/main';

describe('A command list', () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  let target: WireTarget;

  beforeAll(async () => {
    server = await startWatchedServer(ending);
    target = await server.newTarget();
    const pushed = await wirePush(target, [{ ref: MAIN, after: FIRST.id }], [FIRST]);
    assert.equal(pushed.refs.get(MAIN), 'ok');
  });

  /** Sends the body as it is; the push must leave nothing behind. */
  const send = async (body: Buffer, ids: readonly string[] = [SECOND.id]): Promise<WireReport> =>
    server.leavesNothing(target, ids, async () => reportOf(await postService(target, 'git-receive-pack', body)));

  const line = (text: string): Buffer => packet(`${text}\0 ${CAPABILITIES}`);

  test('that is malformed is refused with a reason, not with the empty 200 of git', async () => {
    const command = `${FIRST.id} ${SECOND.id} ${MAIN}`;
    for (const [what, body] of [
      ['nothing', Buffer.alloc(0)],
      ['prose', Buffer.from('push it, please')],
      ['half a length', Buffer.from('00')],
      ['a length of three', Buffer.from('0003')],
      ['a length in upper case and spaces', Buffer.from(' 0a ')],
      ['a packet cut short', Buffer.from('0100abc')],
      ['no flush', line(command)],
      ['a delimiter', Buffer.concat([line(command), Buffer.from('0001'), FLUSH])],
      ['short ids', Buffer.concat([line(`${FIRST.id.slice(1)} ${SECOND.id} ${MAIN}`), FLUSH])],
      ['ids in capitals', Buffer.concat([line(`${FIRST.id} ${SECOND.id.toUpperCase()} ${MAIN}`), FLUSH])],
      ['tabs for spaces', Buffer.concat([line(command.replaceAll(' ', '\t')), FLUSH])],
      ['no name', Buffer.concat([line(`${FIRST.id} ${SECOND.id} `), FLUSH])],
      ['capabilities twice', Buffer.concat([line(command), line(`${ZERO} ${SECOND.id} refs/heads/x`), FLUSH])],
      ['a bad shallow line', Buffer.concat([packet(`shallow ${FIRST.id.slice(2)}`), line(command), FLUSH])],
    ] as const) {
      const report = await send(body);
      // A client that requested a report gets one, since git shows only the status of an HTTP error.
      if (report.unpack === null) assert.match(`${report.status} ${report.remote}`, /^400 Not a push: .+\n$/, what);
      else assertRefused(report, /unpack (?!ok)./, what);
    }
  });

  test('from nothing to nothing deletes no branch: git would do so without comparing', async () => {
    const report = await send(commandList([{ ref: MAIN }, { ref: 'refs/heads/gone' }]));
    assert.deepEqual(Object.fromEntries(report.refs), {
      [MAIN]: 'it exists already: fetch, then push again',
      'refs/heads/gone': 'ok',
    });
    assert.match(report.remote, /^warning: deleting a non-existent ref: refs\/heads\/gone$/m);
    assert.equal((await wireRefs(target)).get(MAIN), FIRST.id);
  });

  test('that names a ref twice is refused as a whole', async () => {
    const commands = [
      { ref: MAIN, before: FIRST.id, after: SECOND.id },
      { ref: MAIN, before: FIRST.id },
    ];
    assertRefused(await send(Buffer.concat([commandList(commands), pack([SECOND])])), /more than one command for/);
  });

  test('of a signed push is refused, since the server does not offer them', async () => {
    const signed = [
      ...['push-cert\0 report-status side-band-64k\n', 'certificate version 0.1\n', 'pusher A U Thor 0 +0000\n'],
      ...['\n', `${FIRST.id} ${SECOND.id} ${MAIN}\n`, '-----BEGIN PGP SIGNATURE-----\n', 'push-cert-end\n'],
    ];
    const body = Buffer.concat([...signed.map((text) => packet(text)), FLUSH, pack([SECOND])]);
    assertRefused(await send(body), /signed pushes are not supported/);
  });

  test('beyond a limit is refused with the limit', async () => {
    const many = Array.from({ length: PUSH_COMMANDS_MAX + 1 }, (_, n) =>
      packet(`${FIRST.id} ${ZERO} refs/heads/${n}${n === 0 ? `\0 ${CAPABILITIES}` : ''}`),
    );
    assertRefused(await send(Buffer.concat([...many, FLUSH])), /more than 100000 commands/);
    const long = 'x'.repeat(4_000);
    const large = Array.from({ length: 4_300 }, (_, n) =>
      packet(`${FIRST.id} ${ZERO} refs/heads/${n}/${long}${n === 0 ? `\0 ${CAPABILITIES}` : ''}`),
    );
    assertRefused(await send(Buffer.concat([...large, FLUSH])), /takes more than 16777216 bytes/);
    const shallow = Array.from({ length: 10_001 }, () => packet(`shallow ${FIRST.id}`));
    const command = commandList([{ ref: MAIN, before: FIRST.id, after: SECOND.id }]);
    assertRefused(await send(Buffer.concat([...shallow, command])), /more than 10000 shallow lines/);
    const capabilities = `${CAPABILITIES} push-options`;
    const withOptions = commandList([{ ref: MAIN, before: FIRST.id, after: SECOND.id }], capabilities);
    for (const [options, reason] of [
      [Array.from({ length: 101 }, (_, n) => `option=${n}`), /more than 100 push options/],
      [['x'.repeat(4_097)], /push options of more than 4096 bytes in sum/],
      [['a\0b'], /push options are lines/],
      [[Buffer.from([0xff, 0xfe])], /push options are lines/],
    ] as const) {
      const packets = options.map((option) => packet(option));
      assertRefused(await send(Buffer.concat([withOptions, ...packets, FLUSH, pack([SECOND])])), reason);
    }
    const sha256 = commandList(
      [{ ref: MAIN, before: FIRST.id, after: SECOND.id }],
      `${CAPABILITIES} object-format=sha256`,
    );
    assertRefused(await send(Buffer.concat([sha256, pack([SECOND])])), /unsupported object format/);
  });

  test('that is refused gets its refusal even before a large pack, sent plain or compressed', async () => {
    const twice = [
      { ref: MAIN, before: FIRST.id, after: SECOND.id },
      { ref: MAIN, before: FIRST.id },
    ];
    const body = Buffer.concat([commandList(twice), Buffer.alloc(24 * 1024 * 1024)]);
    assertRefused(await send(body), /more than one command for/);
    const compressed = { headers: { 'Content-Encoding': 'gzip' } };
    const squeezed = gzipSync(Buffer.concat([commandList(twice), randomBytes(8 * 1024 * 1024)]));
    const report = await postService(target, 'git-receive-pack', squeezed, compressed);
    assertRefused(reportOf(report), /more than one command for/);
    // The server does not read the pack of a push that only deletes, or of an atomic push with an invalid name.
    const deletion = commandList([{ ref: 'refs/heads/none', before: FIRST.id }]);
    assertRefused(await send(Buffer.concat([deletion, Buffer.alloc(24 * 1024 * 1024)])), /not exist here/);
    const atomic = commandList([{ ref: 'refs/heads/..', after: FIRST.id }], `${CAPABILITIES} atomic`);
    assertRefused(await send(Buffer.concat([atomic, Buffer.alloc(24 * 1024 * 1024)])), /two dots/);
  });

  test('with an invalid name loses that ref only, and creates no ref of that name', async () => {
    const longComponent = 'c'.repeat(REF_COMPONENT_BYTES_MAX + 1);
    const hostile: readonly (string | Buffer)[] = [
      ...['HEAD', 'main', 'refs', 'refs/heads', 'refs/heads/', 'heads/main', '/refs/heads/x', 'refs//heads/x'],
      ...['refs/heads/HEAD', `refs/heads/${FIRST.id}`, `refs/heads/${'A'.repeat(40)}`],
      ...['refs/heads/refs/heads/x', 'refs/tags/HEAD', 'refs/tags/refs/x', `refs/tags/${FIRST.id}/x`],
      ...['refs/replace/0000000000000000000000000000000000000000', `refs/replace/${FIRST.id}`, 'refs/stash'],
      ...[
        'refs/REPLACE/x',
        'refs/strata/x',
        'refs/Strata/x',
        'refs/pull/-1/head',
        'other/heads/main',
        'objects/info/x',
      ],
      ...['refs/heads/-x', '--upload-pack=touch /tmp/x', 'refs/heads/--output=x', 'refs/heads/a/-b', '-x/y'],
      ...['refs/heads/..', 'refs/heads/a..b', 'refs/heads/../../config', 'refs/heads/.x', 'refs/heads/a/.b'],
      ...['refs/heads/x.lock', 'refs/heads/x.lock/y', 'refs/heads/x.', 'refs/heads/x/', 'refs/heads/@{1}'],
      ...['refs/heads/a b', 'refs/heads/a~1', 'refs/heads/a^', 'refs/heads/a:b', 'refs/heads/a?', 'refs/heads/a*'],
      ...['refs/heads/a[b', 'refs/heads/a\\b', 'refs/heads/a\u0001', 'refs/heads/a\u007f', 'refs/heads/a\tb'],
      ...['refs/heads/a\nok refs/heads/b', 'refs/heads/a\r', Buffer.from('refs/heads/\xff\xfe', 'latin1')],
      Buffer.from([...Buffer.from('refs/heads/'), 0xed, 0xa0, 0x80]),
      ...[`refs/heads/${longComponent}`, `refs/heads/${'long/'.repeat(REF_NAME_BYTES_MAX / 5)}x`],
    ];
    const good = 'refs/heads/good';
    const commands = [...hostile.map((ref) => ({ ref, after: FIRST.id })), { ref: good, after: FIRST.id }];
    const report = await wirePush(target, commands, []);
    assert.equal(report.refs.get(good), 'ok', report.remote);
    assert.equal([...report.refs.values()].filter((word) => word === 'ok').length, 1);
    assert.deepEqual([...(await wireRefs(target)).keys()], [good, MAIN]);
    const capabilities = `${CAPABILITIES} atomic`;
    const atomic = await server.leavesNothing(target, [], () =>
      wirePush(target, [{ ref: good, before: FIRST.id }, ...commands.slice(0, 1)], [], { capabilities }),
    );
    assertRefused(atomic, /atomic push failed/);
    assert.equal((await wirePush(target, [{ ref: good, before: FIRST.id }], null)).refs.get(good), 'ok');
  });

  test('may have valid names that look odd, up to the exact limits', async () => {
    const odd = [
      `refs/heads/${'c'.repeat(REF_COMPONENT_BYTES_MAX)}`,
      ...[
        'refs/heads/ünï',
        'refs/heads/u\u0308',
        'refs/heads/Main',
        'refs/heads/MAIN',
        'refs/heads/con',
        'refs/heads/@',
      ],
      ...['refs/heads/$(id)', 'refs/heads/`id`', "refs/heads/';--", 'refs/heads/<script>', 'refs/heads/%2e%2e'],
      ...['refs/heads/x/refs/heads', 'refs/tags/main', 'refs/notes/commits', `refs/heads/${FIRST.id}0`],
      ...['refs/pull/1/head', 'refs/remotes/origin/HEAD', 'refs/meta/config', 'refs/bisect/bad', 'refs/hidden/x'],
    ];
    const report = await wirePush(
      target,
      odd.map((ref) => ({ ref, after: FIRST.id })),
      [],
    );
    assert.deepEqual(
      [...report.refs],
      odd.map((ref) => [ref, 'ok']),
    );
    const listed = await wireRefs(target);
    assert.deepEqual(
      odd.filter((ref) => listed.get(ref) !== FIRST.id),
      [],
    );
    const gone = await wirePush(
      target,
      odd.map((ref) => ({ ref, before: FIRST.id })),
      null,
    );
    assert.deepEqual(
      [...gone.refs.values()].filter((word) => word !== 'ok'),
      [],
    );
  });

  test('that would make a ref the folder of another is refused for that ref: one such pair would break every clone', async () => {
    for (const refs of [
      ['refs/heads/main/below'],
      ['refs/heads/a/b', 'refs/heads/a'],
      ['refs/heads/c', 'refs/heads/c/d/e'],
    ]) {
      const commands = refs.map((ref) => ({ ref, after: FIRST.id }));
      const report = await wirePush(target, commands, []);
      assert.ok(
        [...report.refs.values()].some((word) => word.includes('folder')),
        refs.join(),
      );
      const made = [...(await wireRefs(target)).keys()].filter((ref) => ref !== MAIN);
      assert.ok(made.length < refs.length);
      if (made.length > 0)
        await wirePush(
          target,
          made.map((ref) => ({ ref, before: FIRST.id })),
          null,
        );
    }
    // The server checks the state after the whole push: a ref may replace the refs below it.
    await wirePush(target, [{ ref: 'refs/heads/x/y', after: FIRST.id }], []);
    const exchanged = [
      { ref: 'refs/heads/x', after: FIRST.id },
      { ref: 'refs/heads/x/y', before: FIRST.id },
    ];
    const report = await wirePush(target, exchanged, []);
    assert.deepEqual([...report.refs.values()], ['ok', 'ok']);
    await wirePush(target, [{ ref: 'refs/heads/x', before: FIRST.id }], null);
  });

  test('with a stale old value moves nothing', async () => {
    for (const [command, reason] of [
      [{ ref: MAIN, before: SECOND.id, after: SECOND.id }, /moved it first/],
      [{ ref: MAIN, after: SECOND.id }, /exists already/],
      [{ ref: 'refs/heads/none', before: FIRST.id, after: SECOND.id }, /not exist here any more/],
      [{ ref: 'refs/heads/none', before: FIRST.id }, /not exist here any more/],
      [{ ref: MAIN, before: SECOND.id }, /moved it first/],
    ] as const) {
      const packed = 'after' in command ? [SECOND] : null;
      assertRefused(await server.leavesNothing(target, [SECOND.id], () => wirePush(target, [command], packed)), reason);
    }
  });

  test('whose new tip is missing, or is not a commit, moves no branch', async () => {
    const file = blob('a file');
    const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
    const tagOf = (id: string, type: string) =>
      wireObject('tag', `object ${id}\ntype ${type}\ntag t\ntagger A <a@example.org> 1 +0000\n\nt\n`);
    const missing = 'ab'.repeat(20);
    for (const [what, after, objects, reason] of [
      ['an id that is nowhere', missing, [SECOND], /is not here/],
      ['a blob', file.id, [file], /can only point to a commit/],
      ['a tree', folder.id, [file, folder], /can only point to a commit/],
      ['a tag of a commit', tagOf(FIRST.id, 'commit').id, [tagOf(FIRST.id, 'commit')], /can only point to a commit/],
    ] as const) {
      const ids = objects.map(({ id }) => id);
      const push = () => wirePush(target, [{ ref: 'refs/heads/new', after }], objects);
      assertRefused(await server.leavesNothing(target, ids, push), reason, what);
    }
    // Tags may point to anything.
    const tagged = await wirePush(target, [{ ref: 'refs/tags/file', after: file.id }], [file]);
    assert.equal(tagged.refs.get('refs/tags/file'), 'ok');
  });
});
