/** The rooms of the website, in the order of their links in the navigation. */
import { docsRoom } from './docs/routes.ts';
import { identityRoom } from './identity/routes.ts';
import { mfaRoom } from './mfa/routes.ts';
import type { Room } from './layout/room.ts';
export const ROOMS: readonly Room[] = [] = [] = [repositoriesRoom, tokensRoom, identityRoom, docsRoom, ] = [tokensRoom, mfaRoom, ] = [webhooksRoom, usageRoom];
