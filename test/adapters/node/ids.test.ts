/** UUIDs of version 7 and 5 (RFC 9562). */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, type TestContext, test, vi } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { uuid } from '../../../core/kernel/ids.ts';

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Milliseconds since the epoch: the first 48 bits (section 5.7). */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

function assertAscending(ids: readonly string[]): void {
  for (let n = 1; n < ids.length; n += 1) assert.ok((ids[n - 1] ?? '') < (ids[n] ?? ''), `${ids[n - 1]} ${ids[n]}`);
}

/** Sets the clock. Ids never go back behind the latest time they saw, so it must be later than in any other test. */
function clockOf(context: TestContext, now: number): { set(ms: number): void } {
  context.onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['Date'], now });
  return { set: (ms) => vi.setSystemTime(ms) };
}

describe('A new id', () => {
  test('is a UUID v7 of the current time', () => {
    const before = Date.now();
    const id = uuids.next();
    assert.match(id, V7);
    assert.equal(uuid(id), id);
    assert.ok(timeOf(id) >= before && timeOf(id) <= Date.now() + 1);
  });

  test('sorts after every earlier id, and is equal to none', () => {
    const ids = Array.from({ length: 50_000 }, () => uuids.next());
    for (const id of ids) assert.match(id, V7);
    assertAscending(ids);
    assert.equal(new Set(ids.map((id) => id.slice(19))).size, ids.length, 'the random parts differ too');
  });

  test('sorts after earlier ids in the same millisecond, past its counter, and after the clock went back', (context) => {
    const later = Date.now() + 1_000_000;
    const clock = clockOf(context, later);
    const ids = Array.from({ length: 10_000 }, () => uuids.next());
    clock.set(later - 500_000);
    ids.push(...Array.from({ length: 10_000 }, () => uuids.next()));
    clock.set(later + 60_000);
    ids.push(uuids.next());
    assertAscending(ids);
    assert.equal(timeOf(ids[0] ?? ''), later);
    assert.equal(timeOf(ids.at(-1) ?? ''), later + 60_000);
    // At most 4,096 ids a millisecond: the time of the ids runs ahead only as far as they need.
    assert.ok(timeOf(ids.at(-2) ?? '') <= later + 10);
  });
});

describe('A derived id', () => {
  test('is the UUID v5 of RFC 9562, appendix A.4', () => {
    const dns = uuid('6ba7b810-9dad-11d1-80b4-00c04fd430c8');
    assert.equal(uuids.derive(dns, 'www.example.com'), '2ed6657d-e927-568b-95e1-2665a8aea6a2');
  });

  test('is derived from the whole name, of any length and script', () => {
    const dns = uuid('6ba7b810-9dad-11d1-80b4-00c04fd430c8');
    for (const name of ['', 'a'.repeat(165), 'a'.repeat(166), '\u6f22'.repeat(165), '\u{1f600}'.repeat(3_000)]) {
      const whole = Buffer.concat([Buffer.from(dns.replaceAll('-', ''), 'hex'), Buffer.from(name, 'utf8')]);
      const digest = createHash('sha1').update(whole).digest('hex');
      const id = uuids.derive(dns, name).replaceAll('-', '');
      assert.match(id, /^.{12}5.{3}[89ab].{15}$/);
      // All digits except version and variant.
      for (const [start, end] of [
        [0, 12],
        [13, 16],
        [17, 32],
      ]) {
        assert.equal(id.slice(start, end), digest.slice(start, end), `${name.length} units`);
      }
    }
  });

  test('is equal for equal names, and differs for another name or namespace', () => {
    const [one, two] = [uuids.next(), uuids.next()];
    assert.equal(uuids.derive(one, 'größe'), uuids.derive(one, 'größe'));
    assert.notEqual(uuids.derive(one, 'größe'), uuids.derive(one, 'gröẞe'));
    assert.notEqual(uuids.derive(one, 'größe'), uuids.derive(two, 'größe'));
  });
});
