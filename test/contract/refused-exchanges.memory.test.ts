/** The contract of refused exchanges on the in-memory implementation. */
import { createMemoryRefusedExchanges } from '../support/memory/refused-exchanges.ts';
import { refusedExchangesContract } from './refused-exchanges.ts';

refusedExchangesContract('memory', async () => createMemoryRefusedExchanges());
