/** Faults of input: neither their cost nor the answer that names them grows faster than the input. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { z } from 'zod';
import { check, FAULTS_NAMED_MAX, STEP_LENGTH_MAX, UNKNOWN_NAMED_MAX } from '../../../apps/api/http/input.ts';
import { INCLUSION_QUERY, TREE_SIZE_MAX } from '../../../apps/api/schemas/audit.ts';

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

test('A size of a tree is taken up to the limit, and an entry in it, and refused beyond it', () => {
  const faultsOf = (sequence: number, size: number) => {
    const result = check(INCLUSION_QUERY, 'query', { sequence: String(sequence), tree_size: String(size) });
    return 'faults' in result ? result.faults.map(({ loc }) => loc.join('.')) : [];
  };
  assert.deepEqual(faultsOf(TREE_SIZE_MAX, TREE_SIZE_MAX), []);
  assert.deepEqual(faultsOf(0, TREE_SIZE_MAX + 1), ['query.tree_size']);
  assert.deepEqual(faultsOf(TREE_SIZE_MAX + 1, 1), ['query.sequence']);
});

describe('The faults of an input', () => {
  const faultsOf = (schema: z.ZodType, input: unknown) => {
    const result = check(schema, 'body', input);
    return 'faults' in result ? result.faults : assert.fail('It has no fault');
  };

  test('are named up to their limit', () => {
    for (const wrong of [FAULTS_NAMED_MAX, FAULTS_NAMED_MAX + 1]) {
      assert.equal(faultsOf(z.array(z.string()), Array(wrong).fill(1)).length, FAULTS_NAMED_MAX, `${wrong}`);
    }
  });

  test('name unknown members up to their limit', () => {
    for (const unknown of [UNKNOWN_NAMED_MAX, UNKNOWN_NAMED_MAX + 1]) {
      const input = Object.fromEntries(Array.from({ length: unknown }, (_, n) => [`m${n}`, 1]));
      assert.equal(faultsOf(z.strictObject({}), input).length, UNKNOWN_NAMED_MAX, `${unknown}`);
    }
  });

  test('name a member of the greatest length whole, and cut a longer one', () => {
    const whole = 'x'.repeat(STEP_LENGTH_MAX);
    assert.deepEqual(faultsOf(z.strictObject({}), { [whole]: 1 })[0]?.loc, ['body', whole]);
    assert.deepEqual(faultsOf(z.strictObject({}), { [`${whole}x`]: 1 })[0]?.loc, ['body', `${whole.slice(1)}…`]);
  });
});
