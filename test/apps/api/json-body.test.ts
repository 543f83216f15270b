/** Values of JSON bodies, counted in their bytes. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { BodyRefused, OBJECT_MEMBERS_MAX, readJsonBody } from '../../../apps/api/http/json-body.ts';

/** Returns the status of the refusal, or null. */
function refused(text: string, valuesMax: number): number | null {
  try {
    readJsonBody({}, Buffer.from(text), valuesMax);
    return null;
  } catch (error) {
    if (!(error instanceof BodyRefused)) throw error;
    return error.answer.status;
  }
}

describe('The values of a JSON body', () => {
  test('are counted as a parser finds them, whatever stands in texts and between values', () => {
    const cases: readonly (readonly [text: string, values: number])[] = [
      [' [ ] ', 1],
      ['{\t}', 1],
      ['[1]', 2],
      ['[[ \n],{ }]', 3],
      ['{"a":1,"b":[1,2,{"c":null}]}', 7],
      ['["a,b:[{","\\",\\"", "\\\\", "ä,ö"]', 5],
      ['{"a,\\":[":{"\\\\":["]"]}}', 4],
    ];
    for (const [text, values] of cases) {
      assert.deepEqual([refused(text, values), refused(text, values - 1)], [null, 413], text);
    }
  });

  test('are refused where they would not be JSON, before or by the parser', () => {
    for (const text of ['[', '"', '"\\', ']]', '::', '[1,', '{"a"', '[ ']) assert.equal(refused(text, 10), 400, text);
    assert.equal(refused('['.repeat(11), 10), 413);
  });

  // The attack: an object of 99,000 members held the event loop for half a second, and one of 8 MiB for several.
  test(`are up to ${OBJECT_MEMBERS_MAX} members of one object, and any number of many`, () => {
    const members = (count: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index])));
    assert.equal(refused(members(OBJECT_MEMBERS_MAX), 10_000), null);
    assert.equal(refused(members(OBJECT_MEMBERS_MAX + 1), 10_000), 413);
    const full = members(OBJECT_MEMBERS_MAX);
    assert.equal(refused(`[${full},${full},{"a":${full},"b":1}]`, 10_000), null);
    assert.equal(refused(`{"a":${full},${members(OBJECT_MEMBERS_MAX).slice(1)}`, 10_000), 413);
  });
});
