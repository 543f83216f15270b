/** The context of the website; apps/server creates it. */
import type { IncomingMessage } from 'node:http';
import type { Background } from '../../core/ports/background.ts';
import type { FirstCommits } from '../../core/ports/first-commits.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { OneTimeCodes } from '../../core/ports/one-time-codes.ts';
import type { PasskeyChallenges } from '../../core/ports/passkey-challenges.ts';
import type { Passkeys } from '../../core/ports/passkeys.ts';
import type { PasswordHasher } from '../../core/ports/password-hasher.ts';
import type { SessionStore } from '../../core/ports/session-store.ts';
import type { PastRepositories } from '../../core/use-cases/as-of/repository-as-of.ts';
import type { PushContext } from '../../core/use-cases/pushing/push-refs.ts';
import type { ServiceContext } from '../front-door/service-context.ts';
import type { ApiReference } from './docs/open-api.ts';
import type { Renderer } from './rendering/renderer.ts';

export interface SiteContext extends ServiceContext {
  readonly sessions: SessionStore;
  readonly passwords: PasswordHasher;
  readonly background: Background;
  readonly renderer: Renderer;
  /** What the documentation shows of the API, from the API's own document. */
  readonly apiReference: () => Promise<ApiReference>;
  /** For READMEs that the site begins repositories with. */
  readonly firstCommits: FirstCommits;
  readonly layers: LayerStores;
  readonly onLayer: PushContext['onLayer'];
  readonly pastRepositories: PastRepositories;
  readonly oneTimeCodes: OneTimeCodes;
  readonly passkeys: Passkeys;
  readonly challenges: PasskeyChallenges;
  /** Whether strangers may make accounts. */
  readonly signUpOpen: boolean;
  /** Says how to reach who runs the service; null if the operator has not said. */
  readonly operatorContact: string | null;
  /** 32 bytes or more, the same on every node: the tokens of forms are made with it. */
  readonly formKey: string;
  readonly onFinished: (finished: FinishedSiteRequest, request: IncomingMessage) => void;
}

export interface FinishedSiteRequest {
  /** The path of the route; null when none matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string;
  /** The account of who is signed in. */
  readonly account: string | null;
}
