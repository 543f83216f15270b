/** Faults of input, whose cost must not grow faster than the input. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { check } from '../../../apps/api/http/input.ts';

test('Wrong items of a list are found without reading the list again for each of them', () => {
  let listed = 0;
  const items = new Proxy(Array(50).fill(1), {
    ownKeys: (target) => {
      listed += 1;
      return Reflect.ownKeys(target);
    },
  });
  const result = check(z.object({ items: z.array(z.string()) }), 'body', { items });
  assert.ok('faults' in result);
  assert.equal(result.faults.length, 50);
  assert.ok(listed <= 1, `listed ${listed} times`);
});

test('A field that is missing is told from one that is wrong, whatever its name', () => {
  const schema = z.object({ constructor: z.string(), wrong: z.string(), list: z.array(z.object({ a: z.string() })) });
  const result = check(schema, 'body', JSON.parse('{"wrong": 1, "list": [{}, {"a": 2}]}'));
  assert.ok('faults' in result);
  assert.deepEqual(
    result.faults.map(({ loc, type }) => [loc.join('.'), type]),
    [
      ['body.constructor', 'missing'],
      ['body.wrong', 'invalid_type'],
      ['body.list.0.a', 'missing'],
      ['body.list.1.a', 'invalid_type'],
    ],
  );
});
