import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Case, FLUSH_LINE } from './cases.ts';
import { type Compared, judge, smallest } from './judging.ts';
import { MEANT } from './meant.ts';

const REQUEST = { kind: 'request', repository: 'plain', protocol: 'version=2', target: 'git-upload-pack' } as const;
const SERVED = { outcome: ['served'] };
const REFUSED = { outcome: ['refused'] };
const EQUAL: Compared = { git: SERVED, ours: SERVED, told: '', faults: [], messages: '' };

function request(...lines: readonly string[]): Case {
  return { ...REQUEST, lines: [...lines, FLUSH_LINE] };
}

describe('A case', () => {
  test('that both sides served alike is equal', () => {
    assert.equal(judge(request(), EQUAL), 'equal');
  });

  test('that one side refused differs, unless a row of meant differences explains it', () => {
    assert.equal(judge(request(), { ...EQUAL, ours: REFUSED, told: 'no reason' }), 'differs');
    const meant = judge(request(), { ...EQUAL, ours: REFUSED, told: 'the body holds more than one request' });
    assert.equal(typeof meant === 'object' ? meant.name : meant, 'a body that holds more than one request');
  });

  test('in which this service had an outage differs, whatever git did and whichever row would explain it', () => {
    const told = 'the body holds more than one request';
    for (const git of [SERVED, REFUSED]) {
      assert.equal(judge(request(), { ...EQUAL, git, ours: REFUSED, told, faults: ['answered 503'] }), 'differs');
    }
  });

  test('is made as small as it can be and still differ', async () => {
    const isAt = (given: Case, line: string): boolean =>
      given.kind === 'request' && given.lines?.includes(line) === true;
    const compare = async (given: Case): Promise<Compared> =>
      isAt(given, 'b') && isAt(given, 'd') ? { ...EQUAL, ours: REFUSED } : EQUAL;
    const { given } = await smallest(request('a', 'b', 'c', 'd', 'e', 'f', 'g'), compare);
    assert.deepEqual(given, { ...REQUEST, lines: ['b', 'd'] });
  });
});

test('The table of meant differences has at most ten rows', () => {
  assert.ok(MEANT.length <= 10);
});
