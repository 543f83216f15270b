/**
 * What answers requests: the Git endpoints, the REST API and the website, each with its context.
 *
 * Invariants: each reports a finished request once, to the metrics and to the log.
 */
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { createIsomorphicFirstCommits } from '../../adapters/isomorphic-git/first-commits.ts';
import { createOneTimeCodes } from '../../adapters/otp/one-time-codes.ts';
import { createWebauthnPasskeys } from '../../adapters/webauthn/passkeys.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { createApi } from '../api/app.ts';
import { type BodyCache, createBodyCache } from '../api/body-cache.ts';
import { createRefAnswers, type RefAnswers } from '../git-http/advertise.ts';
import { createGitHandler, type GitHandler } from '../git-http/handler.ts';
import type { SigningInContext } from '../website/context.ts';
import { createRenderer, type Renderer } from '../website/rendering/renderer.ts';
import { createWebsite } from '../website/site.ts';
import { createApiReference } from './api-reference.ts';
import { COMMAND_LINE_FOLDER, createCommandLineFinder } from './command-line-package.ts';
import type { Composing } from './composing.ts';
import type { FoundationContext } from './foundation.ts';
import type { RequestContexts } from './request-contexts.ts';

/** What is kept in memory in case it is asked for again. */
export interface Caches {
  readonly refAnswers: RefAnswers;
  readonly bodies: BodyCache;
  readonly renderer: Renderer;
}

export function composeCaches({ parts }: Composing): Caches {
  const renderer = createRenderer();
  parts.add(() => renderer.close());
  return { refAnswers: createRefAnswers(`strata/${packageJson.version}`), bodies: createBodyCache(), renderer };
}

export function composeGit(
  { log, metrics, tracing }: Composing,
  { frontDoor, pushing, pastRepositories, warmClones, refusedSource }: RequestContexts,
  { refAnswers }: Caches,
): GitHandler {
  return createGitHandler({
    ...frontDoor,
    ...pushing,
    pastRepositories,
    refAnswers,
    warmClones,
    onFinished: (finished, request) => {
      metrics.gitFinished(finished);
      const { result, ...fields } = finished;
      const { operation, status, requestId } = finished;
      tracing.finished(request, { name: `git ${operation}`, status, requestId, outcome: result?.outcome });
      const level = result?.outcome === 'outage' ? 'warn' : 'info';
      log[level]({ ...fields, ...result, ...refusedSource(finished.status, request) }, 'git');
    },
  });
}

export async function composeApi(
  { log, metrics, tracing }: Composing,
  { handlers, pushing, refusedSource }: RequestContexts,
  { bodies }: Caches,
): Promise<FastifyInstance> {
  const api = createApi({
    ...handlers,
    ...pushing,
    bodies,
    version: packageJson.version,
    onFinished: (finished, request) => {
      const { operationId, status, durationMs, requestId } = finished;
      metrics.apiFinished(operationId ?? 'none', status, durationMs);
      tracing.finished(request, { name: `api ${operationId ?? 'none'}`, status, requestId });
      log.info({ ...finished, ...refusedSource(finished.status, request) }, 'api');
    },
  });
  await api.ready();
  return api;
}

export async function composeWebsite(
  composing: Composing,
  context: FoundationContext,
  { handlers, pushing, pastRepositories, background, refusedSource }: RequestContexts,
  { renderer }: Caches,
): Promise<FastifyInstance> {
  const { settings, log, metrics, tracing } = composing;
  const website = createWebsite({
    ...handlers,
    ...pushing,
    ...signingInContext(composing, context, background),
    firstCommits: await createIsomorphicFirstCommits({ directory: path.join(settings.dataDir, 'first-commits') }),
    renderer,
    apiReference: createApiReference(packageJson.version),
    findCommandLine: createCommandLineFinder(COMMAND_LINE_FOLDER),
    pastRepositories,
    operatorContact: settings.operatorContact,
    securityContact: settings.securityContact,
    formKey: await context.vault.fingerprint('website-forms', 'tokens'),
    onFinished: (finished, request) => {
      const { route, status, durationMs, requestId } = finished;
      metrics.siteFinished(route ?? 'none', status, durationMs);
      tracing.finished(request, { name: `website ${route ?? 'none'}`, status, requestId });
      log.info({ ...finished, ...refusedSource(finished.status, request) }, 'website');
    },
  });
  await website.ready();
  return website;
}

function signingInContext(
  { settings }: Composing,
  { sessions, passwords, spellDomain, challenges }: FoundationContext,
  background: RequestContexts['background'],
): SigningInContext {
  const { webUrl, signUpOpen } = settings;
  // Apps and devices list what they hold for several services, so each is named by its host too.
  const name = `Strata (${new URL(webUrl).hostname})`;
  return {
    sessions,
    passwords,
    spellDomain,
    challenges,
    background,
    oneTimeCodes: createOneTimeCodes({ issuer: name }),
    passkeys: createWebauthnPasskeys({ webUrl, name }),
    signUpOpen,
  };
}
