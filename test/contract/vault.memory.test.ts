/** The vault's contract on the in-memory implementation. */
import { createMemoryVault } from '../support/memory/vault.ts';
import { vaultContract } from './vault.ts';

vaultContract('memory', async () => ({ vault: createMemoryVault(), close: async () => {} }));
