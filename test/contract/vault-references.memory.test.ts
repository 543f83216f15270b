/** The contract of references to the vault on the in-memory implementation. */
import { createMemoryVault } from '../support/memory/vault.ts';
import { createTestClock } from '../support/test-clock.ts';
import { vaultReferencesContract } from './vault-references.ts';

vaultReferencesContract('memory', async () => {
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  return { vault, references: vault.references, age: async (spanMs) => clock.advance(spanMs) };
});
