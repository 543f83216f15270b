/** Canonical JSON: RFC 8785 for the values that events may hold, and the refusal of all others. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, textsIn } from '../../../core/kernel/json.ts';

/** Any value that an event may hold, with keys and texts from all of Unicode, control characters and `__proto__`. */
const { value: anyValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'binary' }),
    fc.maxSafeInteger().map((n) => n + 0),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .array(
        fc.tuple(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__proto__', '1', '10', '2')), tie('value')),
        {
          maxLength: 4,
        },
      )
      .map((entries): JsonObject => Object.fromEntries(entries)),
  ),
}));

describe('Canonical JSON', () => {
  test('sorts keys by UTF-16 code units: RFC 8785, section 3.2.3', () => {
    const value = {
      '€': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '😀': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      ö: 'Latin Small Letter O With Diaeresis',
    };
    const values = [...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, text]) => text);
    assert.deepEqual(values, [
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  test('writes strings and literals as in RFC 8785, section 3.2.2', () => {
    const value = { literals: [null, true, false], string: '€$\u000f\nA\'B"\\\\"/' };
    const expected = String.raw`{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}`;
    assert.equal(canonicalJson(value), expected);
  });

  test('writes each character of ASCII as the language does', () => {
    for (let unit = 0; unit < 256; unit += 1) {
      const text = `a${String.fromCharCode(unit)}z`;
      assert.equal(canonicalJson({ [text]: text }), `{${JSON.stringify(text)}:${JSON.stringify(text)}}`);
    }
  });

  test('sorts members at every depth and keeps the order of lists', () => {
    const value = { b: [{ d: 1, c: [] }, 3, 2], a: {}, '': 0 };
    assert.equal(canonicalJson(value), '{"":0,"a":{},"b":[{"c":[],"d":1},3,2]}');
  });

  test('accepts the integers that every reader represents exactly, and no other numbers', () => {
    assert.equal(
      canonicalJson([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0]),
      `[${2 ** 53 - 1},${1 - 2 ** 53},0]`,
    );
    for (const number of [2 ** 53, -(2 ** 53), 0.5, -0, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => canonicalJson(number), TypeError, String(number));
    }
  });

  test('refuses values that have no JSON, or that JSON does not hold completely', () => {
    const holed: JsonValue[] = [1];
    holed[2] = 3;
    const refused: readonly unknown[] = [
      undefined,
      { a: undefined },
      [undefined],
      holed,
      () => 1,
      Symbol('s'),
      1n,
      new Date(0),
      new Map([['a', 1]]),
      new Uint8Array(1),
      '\ud800',
      { '\udc00': 1 },
    ];
    for (const [index, value] of refused.entries()) {
      assert.throws(() => canonicalJson(value as JsonValue), TypeError, `value ${index} of the list`);
    }
  });

  test('is the same text after parsing and writing it again, and loses nothing', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = canonicalJson(value);
        const back = JSON.parse(text) as JsonValue;
        assert.equal(canonicalJson(back), text);
        assert.deepEqual(back, JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('has its keys in the order of UTF-16 code units, however many they are', () => {
    const names = fc.uniqueArray(fc.string({ unit: 'binary', minLength: 1 }), { maxLength: 40, size: 'max' });
    fc.assert(
      fc.property(names, (keys) => {
        const sorted = keys.toSorted().map((key) => `${JSON.stringify(key)}:0`);
        assert.equal(canonicalJson(Object.fromEntries(keys.map((key) => [key, 0]))), `{${sorted.join(',')}}`);
      }),
    );
  });

  test('does not depend on the order in which members were written', () => {
    const entries = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary' }), fc.integer()), { selector: ([key]) => key });
    fc.assert(
      fc.property(entries, (members) => {
        const reversed = Object.fromEntries(members.toReversed());
        assert.equal(canonicalJson(Object.fromEntries(members)), canonicalJson(reversed));
      }),
    );
  });

  test('counts only values with members as objects', () => {
    assert.deepEqual(
      [{}, [], null, 'a', 1].map((value) => isJsonObject(value)),
      [true, false, false, false, false],
    );
  });
});

test('The texts in a value are its strings at any depth, without the keys', () => {
  const value = { key: 'a', list: ['b', { deep: [['c']], none: null }], number: 1, yes: true };
  assert.deepEqual([...textsIn(value)], ['a', 'b', 'c']);
  assert.deepEqual([[...textsIn('alone')], [...textsIn(null)], [...textsIn(7)]], [['alone'], [], []]);
});
