/** The context of the website; apps/server/serving.ts creates it. */
import type { IncomingMessage } from 'node:http';
import type { SpellDomain } from '../../core/kernel/domain-spellings.ts';
import type { Background } from '../../core/ports/background.ts';
import type { NewObjects } from '../../core/ports/new-objects.ts';
import type { OneTimeCodes } from '../../core/ports/one-time-codes.ts';
import type { PasskeyChallenges } from '../../core/ports/passkey-challenges.ts';
import type { Passkeys } from '../../core/ports/passkeys.ts';
import type { PasswordHasher } from '../../core/ports/password-hasher.ts';
import type { SessionStore } from '../../core/ports/session-store.ts';
import type { PastRepositories } from '../../core/use-cases/as-of/repository-as-of.ts';
import type { ReadmeContext } from '../../core/use-cases/pushing/create-readme-commit.ts';
import type { HandlerContext } from '../front-door/handler-context.ts';
import type { ApiReference } from './docs/open-api.ts';
import type { Renderer } from './rendering/renderer.ts';

/** `ReadmeContext` and `newObjects` are for what forms push, and for READMEs that the site begins repositories with. */
export interface SiteContext extends HandlerContext, ReadmeContext, SigningInContext {
  readonly newObjects: NewObjects;
  readonly renderer: Renderer;
  /** What the documentation shows of the API, from the API's own document. */
  readonly apiReference: () => Promise<ApiReference>;
  readonly findCommandLine: FindCommandLine;
  readonly pastRepositories: PastRepositories;
  /** Says how to reach who runs the service; null if the operator has not said. */
  readonly operatorContact: string | null;
  /** The URI by which weaknesses are reported; null if the operator has not said. */
  readonly securityContact: string | null;
  /** 32 bytes or more, the same on every node: the tokens of forms are made with it. */
  readonly formKey: string;
  readonly onFinished: (finished: FinishedSiteRequest, request: IncomingMessage) => void;
}

/** The packed command line, as `npm run client:pack` makes it. */
export interface CommandLinePackage {
  /** The name of its file. */
  readonly name: string;
  readonly bytes: Buffer;
  /** In hex. */
  readonly sha256: string;
}

/** Returns the package that this server offers; null if it has none. */
export type FindCommandLine = () => Promise<CommandLinePackage | null>;

/** Signing up and in, sessions, authenticator apps and passkeys. */
export interface SigningInContext {
  readonly sessions: SessionStore;
  readonly passwords: PasswordHasher;
  readonly spellDomain: SpellDomain;
  readonly background: Background;
  readonly oneTimeCodes: OneTimeCodes;
  readonly passkeys: Passkeys;
  readonly challenges: PasskeyChallenges;
  /** Whether strangers may make accounts. */
  readonly signUpOpen: boolean;
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
