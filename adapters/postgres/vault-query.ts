/** Runs a statement on the vault's tables. An outage of PostgreSQL becomes `VaultError` `vault-unavailable`. */
import { VaultError } from '../../core/ports/vault.ts';
import { queryReporting } from './outages.ts';

export const vaultQuery = queryReporting(
  (cause) => new VaultError('vault-unavailable', 'PostgreSQL cannot be reached', { cause }),
);
