/** The snapshots' contract on the in-memory implementation. */
import { createMemorySnapshots } from '../support/memory/snapshots.ts';
import { snapshotsContract } from './snapshots.ts';

snapshotsContract('memory', async () => ({ snapshots: createMemorySnapshots(), close: async () => {} }));
