/** The contract of core/ports/rate-sums.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { RateSumsExchange } from '../../core/ports/rate-sums.ts';

export interface OpenRateSums {
  readonly sums: RateSumsExchange;
  close(): Promise<void>;
}

/** Declares the suite; `open` is called once. */
export function rateSumsContract(adapter: string, open: () => Promise<OpenRateSums>): void {
  describe(`sums of rates on ${adapter}`, () => {
    let opened: OpenRateSums;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    const minuteOf = (name: string, span: number, amounts: Readonly<Record<string, number>>) => ({
      name,
      span,
      endsAtSeconds: Math.ceil(Date.now() / 1_000) + 60,
      sums: Object.entries(amounts).map(([key, amount]) => ({ key, amount })),
    });

    test('tell each node what all others counted together, and replace what a node told before', async () => {
      const { sums } = opened;
      assert.deepEqual(await sums.exchange('one', [minuteOf('points', 7, { ada: 10, grace: 1 })]), [
        { name: 'points', span: 7, sums: [] },
      ]);
      await sums.exchange('two', [minuteOf('points', 7, { ada: 5 })]);
      await sums.exchange('one', [minuteOf('points', 7, { ada: 20, grace: 1 })]);
      const [told] = await sums.exchange('three', [minuteOf('points', 7, { ada: 3 })]);
      const byKey = new Map(told?.sums.map(({ key, amount }) => [key, amount]));
      assert.deepEqual(
        byKey,
        new Map([
          ['ada', 25],
          ['grace', 1],
        ]),
      );
    });

    test('keep counts and spans apart, and hold large amounts', async () => {
      const { sums } = opened;
      const large = 600_000 * 1_000_000;
      await sums.exchange('one', [minuteOf('events', 7, { ada: large }), minuteOf('points', 8, { ada: 2 })]);
      const told = await sums.exchange('two', [minuteOf('events', 7, { ada: 1 }), minuteOf('points', 9, { ada: 1 })]);
      assert.deepEqual(told, [
        { name: 'events', span: 7, sums: [{ key: 'ada', amount: large }] },
        { name: 'points', span: 9, sums: [] },
      ]);
    });
  });
}
