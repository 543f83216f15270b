/** Every limit is judged, docs/limits.md is current, and what the check must refuse. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { projectTree, ROOT, treeOf } from '../architecture/source-tree.ts';
import { figureOf, limitsOf } from './found-limits.ts';
import { LIMIT_TESTS } from './judged.ts';
import { judge, type LimitTests } from './judging.ts';
import { humanFigure, limitsPage } from './limits-page.ts';

describe('The limits of the project', () => {
  const { judged, faults } = judge(projectTree(), LIMIT_TESTS);

  test('are each tested, or internal with a reason', () => {
    assert.deepEqual(faults, []);
  });

  test('are listed in docs/limits.md as they are: `npm run limits` writes it again', () => {
    assert.ok(readFileSync(join(ROOT, 'docs/limits.md'), 'utf8') === limitsPage(judged), 'docs/limits.md is stale');
  });
});

const COMMENT = '/** Why. */\n';
const LIMIT = `${COMMENT}export const PARTS_MAX = 3;\n`;
const TEST = { 'test/parts.test.ts': "test('hold three', () => {});\ntest('hold no four', () => {});\n" };

function faultsOf(source: string, tests: LimitTests = {}): string[] {
  return judge(treeOf({ 'core/parts.ts': source, ...TEST }), tests).faults;
}

function testedBy(titles: { readonly [title: string]: string }): LimitTests {
  return { 'test/parts.test.ts': titles };
}

describe('A limit', () => {
  test('with one test at it and past it, or with one of each, is accepted', () => {
    assert.deepEqual(faultsOf(LIMIT, testedBy({ 'hold three': 'PARTS_MAX' })), []);
    const two = { 'hold three': 'at:PARTS_MAX', 'hold no four': 'past:core/parts.ts#PARTS_MAX' };
    assert.equal(faultsOf(LIMIT, testedBy(two)).length, 2, 'one name is used for both');
    assert.deepEqual(faultsOf(LIMIT, testedBy({ ...two, 'hold no four': 'past:PARTS_MAX' })), []);
  });

  test('with a reason why no caller can reach it is accepted', () => {
    assert.deepEqual(faultsOf('/** Why. Internal: others wait. */\nexport const PARTS_MAX = 3;\n'), []);
  });

  test('that is new is refused without them, whether or not it is exported', () => {
    assert.match(faultsOf(LIMIT).join(), /^core\/parts.ts: PARTS_MAX has no tests/);
    assert.match(faultsOf(LIMIT.replace('export ', '')).join(), /^core\/parts.ts: PARTS_MAX has no tests/);
  });

  test('is refused without a comment, or with an empty reason', () => {
    assert.match(
      faultsOf('export const PARTS_MAX = 3;\n', testedBy({ 'hold three': 'PARTS_MAX' })).join(),
      /no comment/,
    );
    assert.equal(faultsOf('/** Why. Internal: */\nconst PARTS_MAX = 3;\n').length, 1);
  });

  test('is refused with a test only at it, or only past it', () => {
    assert.match(faultsOf(LIMIT, testedBy({ 'hold three': 'at:PARTS_MAX' })).join(), /a test only at it$/);
    assert.match(faultsOf(LIMIT, testedBy({ 'hold no four': 'past:PARTS_MAX' })).join(), /a test only one past it$/);
  });

  test('is refused if its test is gone, by its file or by its title', () => {
    assert.match(faultsOf(LIMIT, testedBy({ 'hold two': 'PARTS_MAX' })).join(), /has no test "hold two"$/);
    const gone = { 'test/gone.test.ts': { 'hold three': 'PARTS_MAX' } };
    assert.match(faultsOf(LIMIT, gone).join(), /test\/gone.test.ts is not in the repository$/);
  });

  test('is refused with tests and a reason why no caller can reach it', () => {
    const internal = '/** Why. Internal: others wait. */\nexport const PARTS_MAX = 3;\n';
    assert.match(faultsOf(internal, testedBy({ 'hold three': 'PARTS_MAX' })).join(), /has tests, and `Internal:`/);
  });

  test('that has tests and is gone is refused', () => {
    assert.deepEqual(faultsOf('', testedBy({ 'hold three': 'PARTS_MAX' })), ['PARTS_MAX: 0 limits have this name']);
  });
});

describe('A limit is found', () => {
  const found = (files: { readonly [path: string]: string }, judged: readonly string[] = []) =>
    limitsOf(treeOf(files), new Set(judged)).map(({ name, figure, why }) => [name, figure, why]);

  test('by its name, by its file, or by a judgement, and with the comment of its group', () => {
    const text = '/** Why. */\nconst A_MS = 1;\nconst B_MAX = 2;\n\nconst C_MAX = 3;\nconst D = 4;\n';
    assert.deepEqual(found({ 'core/a.ts': text }, ['D']), [
      ['B_MAX', 2, 'Why.'],
      ['C_MAX', 3, ''],
      ['D', 4, ''],
    ]);
    assert.equal(found({ 'core/limits.ts': text }).length, 4);
    assert.deepEqual(found({ 'test/a.ts': text, 'apps/cli/a.ts': text }), []);
  });

  test('with the figure that its file and the files that it imports give', () => {
    const files = {
      'core/b.ts': 'export const KIB = 1024;\n',
      'core/a/a.ts': "import { KIB } from '../b.ts';\nconst A = 2 * KIB;\nconst B_MAX = A + 1;\n",
    };
    assert.deepEqual(found(files), [['B_MAX', 2_049, '']]);
  });

  test('without a figure where only the running service knows it', () => {
    for (const expression of ['Math.max(1, 2)', '[1, 2] as const', 'LIST.length + 1', 'UNKNOWN * 2', '{ a: 1 }']) {
      assert.equal(
        figureOf(expression, () => null),
        null,
        expression,
      );
    }
    for (const [expression, figure] of [
      ['1_000 * (2 + 3) - 4', 4_996],
      ['2 ** 31 - 1', 2_147_483_647],
      ['0x10 / 4', 4],
    ] as const) {
      assert.equal(
        figureOf(expression, () => null),
        figure,
        expression,
      );
    }
  });
});

test('A figure is shown in the unit that its name ends with', () => {
  assert.deepEqual(
    [
      humanFigure('A_BYTES_MAX', 64 * 1024 ** 2),
      humanFigure('A_BYTES_MAX', 60_000),
      humanFigure('A_MS', 10_000),
      humanFigure('A_MS', 90 * 86_400_000),
      humanFigure('A_SECONDS', 60),
      humanFigure('A_BYTES_PER_SECOND_MIN', 16 * 1024),
      humanFigure('A_MAX', 100_000),
    ],
    ['64 MiB', '60,000 bytes', '10 s', '90 days', '1 min', '16 KiB', '100,000'],
  );
});
