/**
 * Command lists of pushes: bytes in chunks of any size, the pack after them, and pushes that are refused as a whole.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import {
  type CommandList,
  createCommandListParser,
  PUSH_OPTIONS_BYTES_MAX,
  PUSH_OPTIONS_MAX,
  readCommandList,
} from '../../../../core/git/wire/command-list.ts';
import { SHALLOW_LINES_MAX } from '../../../../core/git/wire/limits.ts';
import { concatBytes, dataPacket, FLUSH_PACKET } from '../../../../core/git/wire/pkt-line.ts';
import { PUSH_COMMANDS_BYTES_MAX, PUSH_COMMANDS_MAX } from '../../../../core/kernel/limits.ts';

const ZERO = '0'.repeat(40);
const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
const CAPABILITIES = '\0 report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5';
const pack = new Uint8Array(Buffer.from('PACK\0\0\0\u0002 and more'));

function body(lines: readonly (string | Uint8Array)[], ...after: readonly Uint8Array[]): Uint8Array {
  return concatBytes([...lines.map(dataPacket), FLUSH_PACKET, ...after]);
}

async function* chunked(whole: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += size) yield whole.slice(at, at + size);
}

async function read(whole: Uint8Array, size = whole.length) {
  const { list, rest } = await readCommandList(chunked(whole, size), () => null);
  const left: Uint8Array[] = [];
  for await (const chunk of rest) left.push(chunk);
  return { list, rest: concatBytes(left) };
}

async function taken(whole: Uint8Array): Promise<CommandList> {
  const { list } = await read(whole);
  assert.ok('commands' in list, JSON.stringify(list));
  return list;
}

async function refusal(whole: Uint8Array): Promise<string> {
  const { list } = await read(whole);
  return 'refused' in list ? list.refused : 'accepted';
}

describe('A command list', () => {
  test('is read up to its flush, and no byte of the following pack is consumed, for chunks of any size', async () => {
    const whole = body([`${ZERO} ${A} refs/heads/main${CAPABILITIES}`, `${A} ${B} refs/heads/é\n`], pack);
    for (let size = 1; size <= whole.length; size++) {
      const { list, rest } = await read(whole, size);
      assert.deepEqual(list, {
        commands: [
          { ref: 'refs/heads/main', before: null, after: A },
          { ref: 'refs/heads/é', before: A, after: B },
        ],
        refusedCommands: [],
        shallow: [],
        capabilities: {
          reportStatus: 'report-status-v2',
          sideBand64k: true,
          quiet: false,
          atomic: false,
          pushOptions: false,
        },
        pushOptions: [],
        packFollows: true,
      });
      assert.deepEqual(rest, pack);
    }
  });

  test('that is only a flush is a probe', async () => {
    const { commands, refusedCommands, packFollows } = await taken(FLUSH_PACKET);
    assert.deepEqual([commands, refusedCommands, packFollows], [[], [], false]);
  });

  test('that only deletes refs has no pack', async () => {
    const list = await taken(body([`${A} ${ZERO} refs/heads/main${CAPABILITIES}`, `${B} ${ZERO} refs/tags/v1`]));
    assert.equal(list.packFollows, false);
    assert.deepEqual(list.commands[0], { ref: 'refs/heads/main', before: A, after: null });
  });

  test('has push options after its flush only if they were negotiated', async () => {
    const command = `${ZERO} ${A} refs/heads/main\0push-options atomic quiet report-status`;
    const options = body(['ci.skip\n', 'key=välue', '']);
    const { list, rest } = await read(concatBytes([body([command]), options, pack]), 7);
    assert.ok('commands' in list);
    assert.deepEqual(list.pushOptions, ['ci.skip', 'key=välue', '']);
    assert.deepEqual(list.capabilities, {
      reportStatus: 'report-status',
      sideBand64k: false,
      quiet: true,
      atomic: true,
      pushOptions: true,
    });
    assert.deepEqual(rest, pack);
    const without = await read(concatBytes([body([`${ZERO} ${A} refs/heads/main\0`]), options]));
    assert.deepEqual(without.rest, options);
  });

  test('may start with the boundary of a shallow client', async () => {
    const list = await taken(
      body([`shallow ${A}\n`, `shallow ${B}`, `${ZERO} ${A} refs/heads/main${CAPABILITIES}`], pack),
    );
    assert.deepEqual(list.shallow, [A, B]);
    assert.equal(list.capabilities.sideBand64k, true);
  });

  test('refuses only the commands with invalid names, and these still announce a pack', async () => {
    const latin1 = concatBytes([new Uint8Array(Buffer.from(`${ZERO} ${A} refs/heads/`)), Uint8Array.of(0xe9)]);
    const names = ['refs/heads/-x', 'HEAD', 'refs/replace/x', `refs/heads/${'x'.repeat(5_000)}`, 'refs/heads/a b'];
    const lines = names.map((name, index) => `${ZERO} ${A} ${name}${index === 0 ? CAPABILITIES : ''}`);
    const list = await taken(body([...lines, latin1, `${A} ${ZERO} refs/heads/ok`], pack));
    assert.deepEqual(
      list.refusedCommands.map(({ refused }) => refused),
      [
        'ref-component-starts-with-dash',
        'ref-name-malformed',
        'ref-replace',
        'ref-name-too-long',
        'ref-name-malformed',
        'ref-name-malformed',
      ],
    );
    assert.equal(Buffer.from(list.refusedCommands[0]?.name ?? []).toString(), 'refs/heads/-x');
    assert.deepEqual([...(list.refusedCommands.at(-1)?.name ?? [])].at(-1), 0xe9);
    assert.deepEqual([list.commands.length, list.packFollows], [1, true]);
  });

  test('refuses names that nobody may create before the pack is read, and lets them move and go', async () => {
    const names = ['refs/heads/HEAD', 'refs/tags/refs/heads/x', `refs/tags/${A}`, `refs/heads/${'AB'.repeat(32)}/x`];
    for (const name of names) {
      const line = (before: string, after: string) => body([`${before} ${after} ${name}${CAPABILITIES}`]);
      const created = await taken(line(ZERO, A));
      assert.deepEqual([created.commands, created.refusedCommands[0]?.refused], [[], 'name-ambiguous'], name);
      assert.equal(created.packFollows, true);
      for (const [before, after] of [
        [A, B],
        [A, ZERO],
        [ZERO, ZERO],
      ] as const) {
        const { commands, refusedCommands } = await taken(line(before, after));
        assert.deepEqual([commands.length, refusedCommands], [1, []], `${name}: ${before} ${after}`);
      }
    }
  });

  test('rejects with the error of its source', async () => {
    async function* broken() {
      yield FLUSH_PACKET.subarray(0, 2);
      throw new Error('the client went away');
    }
    await assert.rejects(
      readCommandList(broken(), () => null),
      /went away/,
    );
  });

  test('never makes its parser throw, and gives the same result for chunks of any size', () => {
    const line = fc.constantFrom(
      '0000',
      '0001',
      'shallow x',
      `${A} ${B} r`,
      'PACK',
      '\0',
      '00',
      '0005',
      `${ZERO} ${A} x\0`,
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(line, fc.boolean())), fc.array(fc.nat()), (parts, places) => {
        const text = parts.map(([part, framed]) => (framed ? Buffer.from(dataPacket(part)).toString('latin1') : part));
        const whole = new Uint8Array(Buffer.from(text.join(''), 'latin1'));
        const once = createCommandListParser();
        once.push(whole);
        const cut = createCommandListParser();
        const at = places.map((place) => place % (whole.length + 1)).sort((a, b) => a - b);
        for (const [index, from] of [0, ...at].entries()) cut.push(whole.slice(from, at[index] ?? whole.length));
        assert.deepEqual(cut.end(), once.end());
        if ('commands' in once.end()) assert.deepEqual(cut.rest(), once.rest());
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('A command from nothing to nothing', () => {
  test('is the deletion of a ref that is not there, and needs no pack', async () => {
    const list = await taken(body([`${ZERO} ${ZERO} refs/heads/gone${CAPABILITIES}`]));
    assert.deepEqual(list.commands, [{ ref: 'refs/heads/gone', before: null, after: null }]);
    assert.equal(list.packFollows, false);
  });
});

describe('A push is refused as a whole', () => {
  const first = `${ZERO} ${A} refs/heads/main${CAPABILITIES}`;
  const cases: readonly (readonly [string, string, Uint8Array])[] = [
    ['attack: one ref twice', 'ref-twice', body([first, `${B} ${A} refs/heads/main`])],
    ['one refused ref twice', 'ref-twice', body([first, `${B} ${A} x`, `${B} ${A} x`])],
    [
      'attack: a certificate that was not offered',
      'push-cert',
      body(['push-cert\0 report-status', 'certificate version 0.1']),
    ],
    ['a certificate later', 'push-cert', body([first, 'push-cert'])],
    ['another object format', 'object-format-unsupported', body([`${ZERO} ${A} refs/heads/x\0object-format=sha256`])],
    ['an abbreviated id', 'command-malformed', body([`${ZERO} ${A.slice(1)} refs/heads/main\0`])],
    ['an upper-case id', 'command-malformed', body([`${ZERO} ${A.toUpperCase()} refs/heads/main\0`])],
    ['no name', 'command-malformed', body([`${ZERO} ${A} `])],
    ['two spaces', 'command-malformed', body([`${ZERO}  ${A} refs/heads/main`])],
    ['an empty line', 'command-malformed', body([''])],
    ['capabilities twice', 'command-malformed', body([first, `${ZERO} ${A} refs/heads/b\0atomic`])],
    ['a broken boundary', 'shallow-malformed', body(['shallow x', first])],
    ['a delimiter of v2', 'packet-malformed', new Uint8Array(Buffer.from('0001'))],
    ['an invalid length', 'packet-malformed', new Uint8Array(Buffer.from('zzzz'))],
    ['no flush', 'packet-truncated', dataPacket(first)],
    ['nothing at all', 'packet-truncated', new Uint8Array(0)],
    ['options cut short', 'packet-truncated', body([`${ZERO} ${A} refs/heads/x\0push-options`], dataPacket('a'))],
    [
      'an option of two lines',
      'push-option-malformed',
      body([`${ZERO} ${A} refs/heads/x\0push-options`], body(['a\nb'])),
    ],
  ];
  for (const [name, code, bytes] of cases) {
    test(`for ${name}: ${code}`, async () => assert.equal(await refusal(bytes), code));
  }

  test('with the capabilities that it named, so that the answer has the form that the client reads', async () => {
    const { list } = await read(body([first, `${B} ${A} refs/heads/main`]));
    assert.ok('refused' in list && list.capabilities?.sideBand64k === true);
    const early = await read(body(['shallow x']));
    assert.ok('refused' in early.list && early.list.capabilities === null);
  });

  test('one past each limit, and accepted at it', async () => {
    const commands = (count: number) => Array.from({ length: count }, (_, index) => `${ZERO} ${A} refs/tags/${index}`);
    assert.equal(await refusal(body(commands(PUSH_COMMANDS_MAX))), 'accepted');
    assert.equal(await refusal(body(commands(PUSH_COMMANDS_MAX + 1))), 'too-many-commands');
    const shallow = (count: number) => Array.from({ length: count }, () => `shallow ${A}`);
    assert.equal(await refusal(body(shallow(SHALLOW_LINES_MAX))), 'accepted');
    assert.equal(await refusal(body(shallow(SHALLOW_LINES_MAX + 1))), 'too-many-shallow-lines');
    const options = (count: number, size: number) =>
      body([`${ZERO} ${A} refs/heads/x\0push-options`], body(Array.from({ length: count }, () => 'x'.repeat(size))));
    assert.equal(await refusal(options(PUSH_OPTIONS_MAX, 1)), 'accepted');
    assert.equal(await refusal(options(PUSH_OPTIONS_MAX + 1, 1)), 'too-many-push-options');
    assert.equal(await refusal(options(1, PUSH_OPTIONS_BYTES_MAX)), 'accepted');
    assert.equal(await refusal(options(4, PUSH_OPTIONS_BYTES_MAX / 4)), 'accepted');
    assert.equal(await refusal(options(1, PUSH_OPTIONS_BYTES_MAX + 1)), 'push-options-too-large');
    assert.equal(await refusal(options(4, PUSH_OPTIONS_BYTES_MAX / 4 + 1)), 'push-options-too-large');
    // 255 commands of 65,520 bytes, one of what remains, and the flush.
    const fill = (bytes: number) => {
      const lines: string[] = [];
      for (let left = bytes - 4; left > 0; left -= 65_520) {
        const head = `${ZERO} ${A} ${lines.length}`;
        lines.push(head + 'x'.repeat(Math.min(left, 65_520) - 4 - head.length));
      }
      return body(lines);
    };
    assert.equal(fill(PUSH_COMMANDS_BYTES_MAX).length, PUSH_COMMANDS_BYTES_MAX);
    assert.equal(await refusal(fill(PUSH_COMMANDS_BYTES_MAX)), 'accepted');
    assert.equal(await refusal(fill(PUSH_COMMANDS_BYTES_MAX + 1)), 'packets-too-large');
  });

  test('names the commands that were read, for the report, and none where there is no memory for them', async () => {
    const names = async (whole: Uint8Array): Promise<readonly string[]> => {
      const { list } = await read(whole);
      assert.ok('refused' in list);
      return list.names.map((name) => Buffer.from(name).toString());
    };
    const [x, y] = ['refs/heads/x', 'refs/strata/y'];
    const commands = (more: string) => [`${ZERO} ${A} ${x}\0push-options ${more}`, `${ZERO} ${A} ${y}`];
    assert.deepEqual(await names(body(commands(''), body(['a\nb']))), [x, y]);
    assert.deepEqual(await names(body([...commands(''), `${ZERO} ${A} ${x}`])), [x, y]);
    assert.deepEqual(await names(body(commands('object-format=sha256'))), [x]);
    assert.deepEqual(await names(body([`${ZERO} ${A}`])), []);
    const { list } = await readCommandList(chunked(body(commands('')), 90), () => 'full');
    assert.ok('refused' in list && list.refused === 'list-not-held');
    assert.deepEqual(list.names, []);
  });
});
