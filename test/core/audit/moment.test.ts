/** Moments as people write them. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { parseMoment, timeInUrl } from '../../../core/audit/moment.ts';
import { timestamp } from '../../../core/kernel/ids.ts';

describe('A moment', () => {
  test('is a time of RFC 3339 with any offset, also without separators', () => {
    for (const [text, at] of [
      ['2026-11-03T14:02:00Z', '2026-11-03T14:02:00.000Z'],
      ['2026-11-03t14:02:00z', '2026-11-03T14:02:00.000Z'],
      ['2026-11-03T14:02:00.5Z', '2026-11-03T14:02:00.500Z'],
      ['2026-11-03T15:02:00.123+01:00', '2026-11-03T14:02:00.123Z'],
      ['2026-11-03T00:02:00-23:59', '2026-11-04T00:01:00.000Z'],
      ['2026-11-03T14:02:00-00:00', '2026-11-03T14:02:00.000Z'],
      ['20261103T140200Z', '2026-11-03T14:02:00.000Z'],
      ['20261103T140200.123Z', '2026-11-03T14:02:00.123Z'],
      ['20261103T140200+0530', '2026-11-03T08:32:00.000Z'],
      ['20261103T140200+05:30', '2026-11-03T08:32:00.000Z'],
      ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
      ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
    ] as const) {
      assert.deepEqual(parseMoment(text), { at }, text);
    }
  });

  test('is never later than what was written', () => {
    assert.deepEqual(parseMoment('2026-11-03T14:02:00.9999999Z'), { at: '2026-11-03T14:02:00.999Z' });
  });

  test('is the id of an event, in either case', () => {
    const event = '0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11';
    for (const text of [event, event.toUpperCase()]) assert.deepEqual(parseMoment(text), { event });
  });

  test('is nothing else', () => {
    for (const text of [
      ...['', 'now', '2026', '2026-11-03', '2026-11-03T14:02Z', '2026-11-03T14:02:00', '2026-11-03 14:02:00Z'],
      ...['2026-02-30T00:00:00Z', '2026-13-01T00:00:00Z', '0000-01-01T00:00:00Z', '2026-11-03T24:00:00Z'],
      ...['2026-11-03T14:02:61Z', '2026-11-03T14:02:00.Z', '2026-11-03T14:02:00+24:00', '2026-11-03T14:02:00+0100'],
      ...['2026-11-03T14:02:00+01', '0001-01-01T00:00:00+01:00', '9999-12-31T23:59:60Z', '2026-1103T140200Z'],
      ...['0190f3e27c1a7b4e9a352b8f5f0f7a11', '1762178520', ' 20261103T140200Z', '20261103T140200Z\n'],
    ]) {
      assert.equal(parseMoment(text), null, JSON.stringify(text));
    }
  });

  test('in a URL reads back as the same time, and could be the name of a folder on Windows', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
        (date) => {
          const at = timestamp(date.toISOString());
          const text = timeInUrl(at);
          assert.deepEqual(parseMoment(text), { at });
          assert.match(text, /^[0-9]{8}T[0-9]{6}(\.[0-9]{3})?Z$/);
        },
      ),
    );
  });

  test('is parsed in bounded time, whatever it holds', () => {
    const started = performance.now();
    for (const part of ['0', '1.', '-', 'T', '20261103T140200.']) parseMoment(part.repeat(20_000));
    assert.ok(performance.now() - started < 500);
  });
});
