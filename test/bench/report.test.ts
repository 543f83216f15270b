/**
 * Tests of the bench's output and of its checks of answers.
 *
 * Invariants: a refused push, a truncated answer or an unknown option never counts as a result.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { faultOf } from './operation.ts';
import { readOptions, UsageError } from './options.ts';
import { SCENARIOS } from './scenarios/catalogue.ts';
import { atClientCounts } from './scenarios/client-counts.ts';
import { WRITTEN_TREES, writingScenarios } from './scenarios/writing.ts';
import { median, percentile } from './statistics.ts';
import { formatFigure, renderResult, renderTable } from './table.ts';
import type { Answer } from './wire.ts';

function answerOf(body: string, status = 200): Answer {
  return { status, bodyBytes: body.length, tail: body.slice(-4), body: Buffer.from(body, 'latin1'), closes: false };
}

describe('the check of an answer', () => {
  test('accepts a report of an accepted push', () => {
    assert.equal(faultOf('report', answerOf('0032\x01000eunpack ok\n0019ok refs/heads/bench\n00000000')), null);
  });

  test('refuses a report in which one ref was refused', () => {
    const report = '0032\x01000eunpack ok\n0019ok refs/heads/one\n001eng refs/heads/two stale\n0000';
    assert.match(faultOf('report', answerOf(report)) ?? '', /refused push/);
  });

  test('refuses an answer of git that does not end in a flush', () => {
    assert.match(faultOf('flush', answerOf('0008PACK')) ?? '', /ends in "PACK"/);
  });

  test('refuses any status but 200, and for what was to be created any but 201', () => {
    assert.match(faultOf('ok', answerOf('no', 503)) ?? '', /status 503/);
    assert.equal(faultOf('created', answerOf('{}', 201)), null);
    assert.match(faultOf('created', answerOf('{}', 200)) ?? '', /status 200/);
  });
});

describe('the command line of the bench', () => {
  const names = ['ls-remote', 'small-push'];

  test('reads its options, and the bundle from the environment', () => {
    const options = readOptions(
      ['--only', 'small-push', '--seconds', '5'],
      { STRATA_REAL_REPOSITORY: 'a.bundle' },
      names,
    );
    assert.deepEqual(options.only, ['small-push']);
    assert.equal(options.seconds, 5);
    assert.equal(options.bundle, 'a.bundle');
  });

  test('reads numbers of clients, each once', () => {
    assert.deepEqual(readOptions(['--clients', '1,4,16,4'], {}, names).clients, [1, 4, 16]);
    assert.equal(readOptions([], {}, names).clients, null);
    for (const clients of ['', '4,', '1.5', '-1', 'four', '1000']) {
      assert.throws(() => readOptions([`--clients=${clients}`], {}, names), UsageError);
    }
  });

  test('reads the sizes of what grows', () => {
    const sizes = ['--pushes', '10000', '--refs=1e5', '--repositories', '200', '--nodes', '3', '--parts', 'refs,nodes'];
    const options = readOptions(sizes, {}, names);
    assert.deepEqual([options.pushes, options.refs, options.repositories, options.nodes], [10_000, 100_000, 200, 3]);
    assert.deepEqual(options.parts, ['refs', 'nodes']);
    const unsaid = readOptions([], {}, names);
    assert.deepEqual([unsaid.pushes, unsaid.repositories, unsaid.nodes, unsaid.parts], [null, null, null, null]);
    for (const wrong of ['--repositories=0', '--repositories=1e9', '--nodes=100', '--parts=', '--parts=refs,others']) {
      assert.throws(() => readOptions([wrong], {}, names), UsageError);
    }
  });

  test('refuses unknown options, values and scenarios', () => {
    for (const args of [['--only', 'nothing'], ['--seconds', '0'], ['--side', 'other'], ['--unknown'], ['word']]) {
      assert.throws(() => readOptions(args, {}, names), UsageError);
    }
  });
});

describe('the numbers of clients', () => {
  const linesOf = (names: readonly string[], counts: readonly number[] | null) =>
    atClientCounts(
      SCENARIOS.filter(({ name }) => names.includes(name)),
      SCENARIOS,
      counts,
    ).map(({ title, clients, target }) => `${title} (${clients})${target.ratios === undefined ? '' : ', a goal'}`);

  test('are those of the goals if nothing is said', () => {
    assert.deepEqual(linesOf(['ls-remote', 'small-push'], null), [
      'ls-remote (8), a goal',
      'small push, alone (1), a goal',
    ]);
  });

  test('show a goal only at the number that it names', () => {
    assert.deepEqual(linesOf(['ls-remote'], [4, 8]), ['ls-remote (4)', 'ls-remote (8), a goal']);
  });

  test('measure the small push once at each, with the goals of both its lines', () => {
    const lines = ['small push, alone (1), a goal', 'small push (4)', 'small push, 8 clients (8), a goal'];
    assert.deepEqual(linesOf(['small-push', 'small-push-8'], [1, 4, 8]), lines);
    assert.deepEqual(linesOf(['small-push'], [1, 4, 8]), lines);
  });

  test('leave a line alone that makes one operation a round', () => {
    assert.deepEqual(linesOf(['full-clone-after-push'], [4, 16]), ['first full clone after a push (1), a goal']);
  });
});

describe('the lines of writing', () => {
  test('are of one and of 8 clients, and show the goal at whatever numbers they are measured that have it', () => {
    const [tree] = WRITTEN_TREES;
    assert.ok(tree !== undefined);
    const goalsOf = (counts: readonly number[] | null) =>
      writingScenarios(tree, counts).map(({ clients, target }) => [clients, target.ratios !== undefined]);
    const both = [
      [1, true],
      [8, true],
    ];
    assert.deepEqual(goalsOf(null), both);
    assert.deepEqual(goalsOf([1, 8]), both);
    assert.deepEqual(goalsOf([4]), [[4, false]]);
  });
});

describe('the whole changes', () => {
  test('show their requests, and how many times as long as the first of its tree each takes', () => {
    const about = {
      date: '',
      machine: '',
      versions: '',
      repository: '',
      accounting: '',
      secondsPerRound: 1,
      rounds: 1,
    };
    const change = (tree: string, way: string, requests: number, medianMs: number) => {
      return { tree, way, side: 'strata', runs: 3, requests, medianMs };
    };
    const changes = [
      change('small', 'REST', 1, 10),
      change('small', 'clone', 5, 125),
      change('large', 'REST', 1, 20),
      change('large', 'clone', 5, 500),
    ];
    const text = renderResult({ ...about, scenarios: [], changes, clients: [], memory: [], faults: [] });
    const cells = text.split('\n').filter((line) => line.includes('strata'));
    assert.deepEqual(
      cells.map((line) => line.replaceAll(/ +/g, ' ')),
      [
        '| small | REST | strata | 1 | 10 | | 3 |',
        '| | clone | strata | 5 | 125 | 12.5x | 3 |',
        '| large | REST | strata | 1 | 20 | | 3 |',
        '| | clone | strata | 5 | 500 | 25x | 3 |',
      ],
    );
  });
});

describe('the figures of the bench', () => {
  test('use the middle of an odd number of rounds and the mean of the middle two of an even one', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 2, 3]), 2.5);
    assert.throws(() => median([]), RangeError);
  });

  test('use percentiles by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    assert.equal(percentile(hundred, 0.5), 50);
    assert.equal(percentile(hundred, 0.99), 99);
    assert.equal(percentile([7], 0.99), 7);
  });

  test('are printed with three significant digits', () => {
    assert.deepEqual([25_390, 225.4, 16.84, 0.0314].map(formatFigure), ['25,390', '225', '16.8', '0.0314']);
  });

  test('are aligned in columns', () => {
    const lines = renderTable(['a', 'second'], [['longer', '1']]).split('\n');
    assert.deepEqual(lines, ['| a      | second |', '|--------|--------|', '| longer | 1      |']);
  });
});
