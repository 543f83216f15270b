/** Ids and instants: each has one form, and instants have arithmetic without a clock. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import {
  later,
  objectId,
  parseObjectId,
  parseTimestamp,
  parseUuid,
  plusMs,
  timestamp,
  uuid,
  ZERO_OBJECT_ID,
} from '../../../core/kernel/ids.ts';

describe('A UUID', () => {
  test('is accepted in either case and returned in lower case', () => {
    assert.equal(parseUuid('0190F3E2-7C1A-7B4E-9A35-2B8F5F0F7A11'), '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11');
  });

  test('has five groups of hex digits and nothing around them', () => {
    for (const text of [
      '',
      '0190f3e27c1a7b4e9a352b8f5f0f7a11',
      '{0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11}',
      '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11\n',
      '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a1g',
      '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a1',
    ]) {
      assert.equal(parseUuid(text), null, JSON.stringify(text));
      assert.throws(() => uuid(text), TypeError);
    }
  });
});

describe('An object id', () => {
  test('is full and in lower case', () => {
    assert.equal(objectId('0123456789abcdef0123456789abcdef01234567'), '0123456789abcdef0123456789abcdef01234567');
    for (const text of ['', 'abc', 'A'.repeat(40), 'a'.repeat(41), `${'a'.repeat(40)}\n`, 'g'.repeat(40)]) {
      assert.equal(parseObjectId(text), null, JSON.stringify(text));
      assert.throws(() => objectId(text), TypeError);
    }
    assert.equal(objectId('0'.repeat(40)), ZERO_OBJECT_ID);
  });
});

describe('An instant', () => {
  const instant = fc.date({
    min: new Date('0001-01-01T00:00:00.000Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  });

  test('may be any instant of the calendar', () => {
    fc.assert(fc.property(instant, (date) => assert.equal(timestamp(date.toISOString()), date.toISOString())));
    assert.equal(parseTimestamp('2024-02-29T00:00:00.000Z'), '2024-02-29T00:00:00.000Z');
    assert.equal(parseTimestamp('2000-02-29T23:59:59.999Z'), '2000-02-29T23:59:59.999Z');
  });

  test('is refused in other forms, and on days and times that do not exist', () => {
    for (const text of [
      '2026-11-21T10:00:00Z',
      '2026-11-21T10:00:00.000+00:00',
      '2026-11-21 10:00:00.000Z',
      '2026-11-21T10:00:00.000z',
      ' 2026-11-21T10:00:00.000Z',
      '2026-11-21T10:00:00.000Z\n',
      '2026-02-29T10:00:00.000Z',
      '1900-02-29T10:00:00.000Z',
      '2026-04-31T10:00:00.000Z',
      '2026-00-21T10:00:00.000Z',
      '2026-13-21T10:00:00.000Z',
      '2026-11-00T10:00:00.000Z',
      '2026-11-21T24:00:00.000Z',
      '2026-11-21T10:60:00.000Z',
      '2026-11-21T10:00:60.000Z',
      '0000-11-21T10:00:00.000Z',
      '+10000-01-01T00:00:00.000Z',
    ]) {
      assert.equal(parseTimestamp(text), null, text);
      assert.throws(() => timestamp(text), TypeError);
    }
  });

  test('moves by milliseconds as a Date does', () => {
    const span = fc.integer({ min: -10 * 365 * 86_400_000, max: 10 * 365 * 86_400_000 });
    fc.assert(
      fc.property(instant, span, (date, spanMs) => {
        const moved = new Date(date.getTime() + spanMs);
        fc.pre(moved.getUTCFullYear() >= 1 && moved.getUTCFullYear() <= 9_999);
        assert.equal(plusMs(timestamp(date.toISOString()), spanMs), moved.toISOString());
      }),
      { numRuns: 2_000 },
    );
  });

  test('cannot move outside the years 1 to 9999', () => {
    assert.throws(() => plusMs(timestamp('9999-12-31T23:59:59.999Z'), 1), TypeError);
    assert.throws(() => plusMs(timestamp('0001-01-01T00:00:00.000Z'), -1), TypeError);
  });

  test('is compared as text', () => {
    const [early, late] = [timestamp('2026-11-21T09:59:59.999Z'), timestamp('2026-11-21T10:00:00.000Z')];
    assert.equal(later(early, late), late);
    assert.equal(later(late, early), late);
    assert.equal(later(early, null), early);
  });
});
