/** Files that somebody made to break a verifier: both refuse them, and write nothing of theirs to a terminal. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { judge } from '../../../apps/verifier/judge.ts';
import { LINE_LENGTH_MAX } from '../../../apps/verifier/verify.ts';
import { ROOT } from '../../architecture/source-tree.ts';
import { makeLog, makeSigner, wholeExport } from '../../support/made-exports.ts';
import { needs } from '../../support/optional-suites.ts';
import { createDice } from '../../support/seeded.ts';
import { tempDir } from '../../support/temp-dir.ts';

const PROGRAM = path.join(ROOT, 'docs/verifier/verify.py');

const dice = createDice(41);
let log = makeLog(dice, makeSigner('strata.example'));
while (log.entries.length < 5) log = makeLog(dice, log.signer);
const lines = wholeExport(log).toString().split('\n');
const first = lines[0] ?? '';
const last = lines.at(-2) ?? '';
const DEPTH = 100_000;

/** The export with another first line. */
const beginning = (line: string): string => [line, ...lines.slice(1)].join('\n');
/** The export with another last line. */
const ending = (line: string): string => [...lines.slice(0, -2), line, ''].join('\n');
const inData = (json: string): string => beginning(first.replace('"data":{', `"data":{"a":${json},`));

const FILES: Readonly<Record<string, () => string | Buffer>> = {
  nothing: () => '',
  'an empty line': () => '\n',
  'no JSON': () => '{"entry":\n',
  'JSON that is no object': () => '[]\n',
  'a last line alone, without a checkpoint': () => '{"checkpoint":null}\n',
  'a mark of the order of bytes': () => `\ufeff${lines.join('\n')}`,
  'bytes that are no UTF-8': () => Buffer.concat([Buffer.from(lines.join('\n')), Buffer.from([0xff, 0x0a])]),
  'the half of a surrogate pair': () => inData('"\\ud800"'),
  'deep lists': () => inData(`${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`),
  'deep objects': () => inData(`${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`),
  'lists that do not end': () => '['.repeat(LINE_LENGTH_MAX - 1),
  'a number of 20,000 digits': () => inData('9'.repeat(20_000)),
  'a number without an end': () => inData('1e999'),
  'a number below zero that is zero': () => inData('-0'),
  'a word that JSON has not': () => inData('NaN'),
  'a name twice': () => inData('1,"a":1'),
  'a name that JavaScript takes for another': () => inData('1,"__proto__":{"a":2}'),
  'a sequence beyond what numbers hold': () => beginning(first.replace('"sequence":0', '"sequence":9007199254740993')),
  'a size beyond what numbers hold': () => ending(last.replace(/\\n\d+\\n/, '\\n9999999999999999999\\n')),
  'a line that never ends': () => Buffer.alloc(3 * LINE_LENGTH_MAX + 2, 'a'),
  'very many hashes': () =>
    ending(
      `{"checkpoint":${JSON.stringify((JSON.parse(last) as { checkpoint: string }).checkpoint)},"from":0,"left":[${Array(
        100_000,
      )
        .fill(`"${'A'.repeat(43)}="`)
        .join()}],"right":[]}`,
    ),
  'very many guards': () =>
    ending(
      `{"checkpoint":${JSON.stringify((JSON.parse(last) as { checkpoint: string }).checkpoint)},"form":2,"from":0,"guards":{"before":9007199254740991,"behind":9007199254740991},"left":[],"right":[],"since":null,"until":null}`,
    ),
  'the words of a verdict': () =>
    beginning(
      first.replace(/"stream":"[^"]*"/, `"stream":"a-\\u001b[2J\\u009b\\u2028\\nverified ${'x'.repeat(9_999)}"`),
    ),
  'the words of a verdict in an opening': () =>
    beginning(first.replace(/"openings":\{.*$/, '"openings":{"\\u001b[2J\\nverified":1}}')),
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/;

describe('A file with', () => {
  for (const [what, make] of Object.entries(FILES)) {
    test(`${what} is refuted, in a short line`, async (context) => {
      const file = path.join(await tempDir(context), 'log.ndjson');
      await writeFile(file, make());
      for await (const judged of judge([file], { keys: null, older: [] })) {
        assert.equal(judged.status, 1, JSON.stringify(judged));
        const why = judged.verified === null ? judged.why : '';
        assert.ok(why.length < 2_000 && !UNSEEN.test(why) && !why.includes('\n'), why);
      }
    });

    test(`${what} is refuted by the second verifier, in a short line`, needs('python3'), async (context) => {
      const file = path.join(await tempDir(context), 'log.ndjson');
      await writeFile(file, make());
      const { status, stdout, stderr } = spawnSync('python3', [PROGRAM, file], { encoding: 'utf8' });
      assert.deepEqual([status, stderr], [1, ''], stdout);
      assert.match(stdout, /^refuted .*\n$/);
      assert.ok(stdout.length < 2_000 && !UNSEEN.test(stdout), stdout);
    });
  }
});

test('The second verifier says of its own failures that nothing is decided', needs('python3'), async (context) => {
  const folder = await tempDir(context);
  const run = (...args: readonly string[]) => spawnSync('python3', [PROGRAM, ...args], { encoding: 'utf8' });
  await writeFile(path.join(folder, 'log'), lines.join('\n'));
  await writeFile(path.join(folder, 'keys'), `${log.signer.line}\n`);
  const [file, keys] = [path.join(folder, 'log'), path.join(folder, 'keys')];
  assert.equal(run('--keys', keys, file).status, 0);
  assert.equal(run(file, '--keys', keys, file).status, 0, 'files stand before and behind options');
  for (const args of [
    [],
    ['--unknown', file],
    [path.join(folder, 'none')],
    [file, '--keys', path.join(folder, 'none')],
    [file, '--keys', file],
    [file, '--checkpoint', keys],
    [file, '--since', 'yesterday'],
    [file, '--revoke', log.signer.line],
    [file, '--after', '3'],
    [file, '--revoke', 'strata.example', '--after', '3'],
    [file, '--revoke', log.signer.line, '--after', '-1'],
    [file, '--revoke', log.signer.line, '--after', '1e3'],
  ]) {
    assert.equal(run(...args).status, 2, args.join(' '));
  }
});
