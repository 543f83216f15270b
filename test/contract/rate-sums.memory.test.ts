/** The contract of sums of rates on the stand-in in memory. */
import { createMemoryRateSums } from '../support/memory/rate-sums.ts';
import { rateSumsContract } from './rate-sums.ts';

rateSumsContract('memory', async () => ({ sums: createMemoryRateSums(), close: async () => undefined }));
