/** The contract of challenges on the in-memory implementation. */
import { createMemoryPasskeyChallenges } from '../support/memory/passkey-challenges.ts';
import { passkeyChallengesContract } from './passkey-challenges.ts';

passkeyChallengesContract('memory', async () => createMemoryPasskeyChallenges());
