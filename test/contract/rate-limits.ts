/** The contract of core/ports/rate-limits.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { RateCount, RateLimit, RateLimits } from '../../core/ports/rate-limits.ts';

export interface OpenRateLimits {
  /** Two nodes that share their counts. */
  readonly nodes: readonly [RateLimits, RateLimits];
  /** Lets the time pass. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

const TWO: RateLimit = { name: 'two', timesMax: 2, spanMs: 60_000 };
const FIVE: RateLimit = { name: 'five', timesMax: 5, spanMs: 60_000 };

/** Declares the suite; `open` is called once. */
export function rateLimitsContract(adapter: string, open: () => Promise<OpenRateLimits>): void {
  describe(`rate limits on ${adapter}`, () => {
    let opened: OpenRateLimits;
    let one: RateLimits;
    let other: RateLimits;
    let number = 0;
    beforeAll(async () => {
      opened = await open();
      [one, other] = opened.nodes;
    });
    afterAll(() => opened.close());

    /** A count that no other test has. */
    const count = (limit: RateLimit): RateCount => {
      number += 1;
      return { limit, key: `key ${number}` };
    };

    test('admit the allowed times, whichever node takes them, and each key by itself', async () => {
      const mine = count(TWO);
      assert.equal(await one.take([mine]), null);
      assert.equal(await other.take([mine]), null);
      const waitSeconds = await one.take([mine]);
      assert.ok(waitSeconds !== null && waitSeconds >= 59 && waitSeconds <= 60, `${waitSeconds}`);
      assert.equal(await one.take([count(TWO)]), null);
      assert.equal(await one.take([{ ...mine, limit: FIVE }]), null);
    });

    test('begin again after the span, which refusals do not lengthen', async () => {
      const mine = count(TWO);
      await one.take([mine]);
      await one.take([mine]);
      await opened.elapse(40_000);
      assert.ok((await one.take([mine])) !== null);
      await opened.elapse(20_001);
      assert.equal(await one.take([mine]), null);
      assert.equal(await one.take([mine]), null);
      assert.ok((await one.take([mine])) !== null);
    });

    test('take from all counts or from none', async () => {
      const narrow = count(TWO);
      const wide = count(FIVE);
      for (let n = 0; n < 2; n += 1) assert.equal(await one.take([wide, narrow]), null);
      for (let n = 0; n < 20; n += 1) assert.ok((await one.take([wide, narrow])) !== null);
      for (let n = 0; n < 3; n += 1) assert.equal(await one.take([wide]), null);
      assert.ok((await one.take([wide])) !== null);
    });

    test('take a time again that was given back, but never more than were taken', async () => {
      const mine = count(TWO);
      await one.take([mine]);
      await other.giveBack([mine]);
      await other.giveBack([mine]);
      assert.equal(await one.take([mine]), null);
      assert.equal(await one.take([mine]), null);
      assert.ok((await one.take([mine])) !== null);
    });

    test('give no credit for the next span when the span ended in between', async () => {
      const mine = count(TWO);
      await one.take([mine]);
      await opened.elapse(60_001);
      await one.giveBack([mine]);
      assert.equal(await one.take([mine]), null);
      assert.equal(await one.take([mine]), null);
      assert.ok((await one.take([mine])) !== null);
    });

    test('admit no more than the limit when many calls race on both nodes', async () => {
      const mine = count(FIVE);
      const racing = Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : other).take([mine]));
      const waits = await Promise.all(racing);
      assert.equal(waits.filter((wait) => wait === null).length, 5);
    });
  });
}
