/** The contract of signing keys on the in-memory implementation. */
import { createMemorySigningKeys } from '../support/memory/signing-keys.ts';
import { signingKeysContract } from './signing-keys.ts';

signingKeysContract('memory', async () => createMemorySigningKeys());
