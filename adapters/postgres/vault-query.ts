/** Runs a statement on the vault's tables. An outage of PostgreSQL becomes `VaultError` `vault-unavailable`. */
import { VaultError } from '../../core/ports/vault.ts';
import { queryReporting, unavailable } from './outages.ts';

export const vaultQuery = queryReporting(unavailable(VaultError, 'vault-unavailable'));
