/** The contract of rate limits on the stand-in in memory. */
import { createMemoryRateLimits } from '../support/memory/rate-limits.ts';
import { createTestClock } from '../support/test-clock.ts';
import { rateLimitsContract } from './rate-limits.ts';

rateLimitsContract('memory', async () => {
  const clock = createTestClock();
  const limits = createMemoryRateLimits(clock);
  return { nodes: [limits, limits], elapse: async (ms) => clock.advance(ms), close: async () => undefined };
});
