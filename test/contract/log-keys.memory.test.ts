/** The contract of log keys on the in-memory version. */
import { createMemoryLogKeys } from '../support/memory/log-keys.ts';
import { logKeysContract } from './log-keys.ts';

logKeysContract('memory', async () => createMemoryLogKeys());
