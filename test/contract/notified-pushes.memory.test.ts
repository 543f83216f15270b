import { createMemoryNotifiedPushes } from '../support/memory/notified-pushes.ts';
import { notifiedPushesContract } from './notified-pushes.ts';

notifiedPushesContract('in memory', async () => createMemoryNotifiedPushes());
