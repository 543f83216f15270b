/** The rooms of the website, in the order of their links in the navigation. */
import { bucketsRoom } from './buckets/routes.ts';
import { docsRoom } from './docs/routes.ts';
import { historyRoom } from './history/routes.ts';
import { identityRoom } from './identity/routes.ts';
import type { Room } from './layout/room.ts';
import { mfaRoom } from './mfa/routes.ts';
import { repositoriesRoom } from './repositories/routes.ts';
import { tokensRoom } from './tokens/routes.ts';
import { trustRoom } from './trust/routes.ts';
import { usageRoom } from './usage/routes.ts';
import { webhooksRoom } from './webhooks/routes.ts';

export const ROOMS: readonly Room[] = [
  repositoriesRoom,
  tokensRoom,
  webhooksRoom,
  bucketsRoom,
  trustRoom,
  usageRoom,
  historyRoom,
  identityRoom,
  mfaRoom,
  docsRoom,
];
