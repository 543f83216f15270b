/** The texts by which addresses and forms name a moment. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { momentWritten } from '../../../../apps/website/repositories/as-of.ts';

test('A moment is a time with an offset, one in UTC without, or the id of an event', () => {
  for (const [text, at] of [
    ['2026-11-03T14:02', '2026-11-03T14:02:00.000Z'],
    ['2026-11-03T14:02:07', '2026-11-03T14:02:07.000Z'],
    ['2026-11-03T14:02:07.5', '2026-11-03T14:02:07.500Z'],
    ['2026-11-03T14:02:07.123', '2026-11-03T14:02:07.123Z'],
    [' 2026-11-03T14:02:07Z ', '2026-11-03T14:02:07.000Z'],
    ['2026-11-03T15:02:07+01:00', '2026-11-03T14:02:07.000Z'],
    ['2026-11-03T15:02:07 01:00', '2026-11-03T14:02:07.000Z'],
    ['20261103T140207Z', '2026-11-03T14:02:07.000Z'],
  ] as const) {
    assert.deepEqual(momentWritten(text), { at }, text);
  }
  const event = '01890000-0000-7000-8000-000000000000';
  assert.deepEqual(momentWritten(event), { event });
});

test('Nothing else is a moment', () => {
  const others = ['', 'now', '2026-11-03', '2026-11-03T25:00', '2026-02-30T10:00', '2026-11-03T14:02:07.1234', '14:02'];
  for (const text of others) assert.equal(momentWritten(text), null, text);
});
