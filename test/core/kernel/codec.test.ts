/** Codecs of stored values: what each writes, that it reads it again, and what it refuses to read. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  byId,
  type Codec,
  converted,
  flag,
  list,
  map,
  merged,
  nullable,
  number,
  object,
  parsed,
  tagged,
  text,
  time,
  tuple,
  unstored,
  word,
} from '../../../core/kernel/codec.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import type { JsonValue } from '../../../core/kernel/json.ts';

const AT = '2026-11-21T10:00:00.000Z';

function assertStored<Value>(codec: Codec<Value>, value: Value, stored: JsonValue): void {
  assert.deepEqual(codec.write(value), stored);
  assert.deepEqual(codec.read(JSON.parse(JSON.stringify(stored))), value);
}

const shape = tagged('kind', {
  dot: object({ id: text }),
  line: tagged('status', { straight: object({ id: text, length: number }), bent: object({ id: text }) }),
});

describe('A codec', () => {
  test('writes scalars and lists as JSON has them', () => {
    assertStored(text, 'a', 'a');
    assertStored(word<'on' | 'off'>(), 'on', 'on');
    assertStored(number, 7, 7);
    assertStored(flag, false, false);
    assertStored(time, timestamp(AT), AT);
    assertStored(nullable(time), null, null);
    assertStored(
      list(tuple(text, nullable(number))),
      [
        ['a', 1],
        ['b', null],
      ],
      [
        ['a', 1],
        ['b', null],
      ],
    );
  });

  test('writes a value in a tuple by its own codec', () => {
    const length = converted(
      text,
      (value: number) => 'x'.repeat(value),
      (stored) => stored.length,
    );
    assertStored(tuple(text, length), ['a', 3], ['a', 'xxx']);
    assertStored(nullable(length), 3, 'xxx');
  });

  test('writes a map as its entries or its values, in their order', () => {
    assertStored(
      map(text, number),
      new Map([
        ['b', 1],
        ['a', 2],
      ]),
      [
        ['b', 1],
        ['a', 2],
      ],
    );
    const items = byId(object({ id: text, size: number }));
    const b = { id: 'b', size: 1 };
    const a = { id: 'a', size: 2 };
    assertStored(
      items,
      new Map([
        ['b', b],
        ['a', a],
      ]),
      [b, a],
    );
  });

  test('writes of an object only the members that it has codecs for', () => {
    const codec = merged(unstored({ status: 'open' as const }), object({ a: number }), object({ b: text }));
    assertStored(codec, { status: 'open', a: 1, b: 'x' }, { a: 1, b: 'x' });
    const more = { status: 'open' as const, a: 1, b: 'x', c: 'derived' };
    assert.deepEqual(codec.write(more), { a: 1, b: 'x' });
  });

  test('writes the form that the tag of a value names', () => {
    assertStored(shape, { kind: 'dot', id: 'a' }, { kind: 'dot', id: 'a' });
    const line = { kind: 'line', status: 'straight', id: 'b', length: 2 } as const;
    assertStored(shape, line, { ...line });
  });

  test('refuses to read what does not have its form', () => {
    const refused: readonly (readonly [Codec<unknown>, JsonValue])[] = [
      ...[null, 1, true, [], {}].map((stored) => [text, stored] as const),
      ...['1', null].map((stored) => [number, stored] as const),
      ...[0, 'true', null].map((stored) => [flag, stored] as const),
      [time, 'yesterday'],
      [parsed((stored) => timestamp(stored)), ''],
      [nullable(number), 'null'],
      [list(number), { 0: 1 }],
      [list(number), [1, '2']],
      [tuple(number, number), [1]],
      [tuple(number, number), [1, 2, 3]],
      [object({ a: nullable(number) }), {}],
      [object({ a: number }), []],
      [map(text, number), [['a']]],
      [shape, { id: 'a' }],
      [shape, { kind: 'circle', id: 'a' }],
      [shape, { kind: 'constructor', id: 'a' }],
      [shape, { kind: 'line', id: 'a' }],
    ];
    // Its own message, not one of the engine about what a missing form does not have.
    const refusal = { name: 'TypeError', message: /^The |^Not a timestamp/ };
    for (const [codec, stored] of refused) assert.throws(() => codec.read(stored), refusal, JSON.stringify(stored));
    assert.throws(() => object({ a: nullable(number) }).read({}), /has no member a$/);
  });
});
