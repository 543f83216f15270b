/**
 * Opens what both requests and the work in the background use: the log and the stores, the cache of objects, the read
 * models, and the client that sends all requests to users' URLs.
 *
 * Invariants: they close in the reverse order of opening, after everything that uses them.
 */
import path from 'node:path';
import { createGitObjectDatabase, type GitObjectDatabase } from '../../adapters/git/object-database.ts';
import { createHttpEgress } from '../../adapters/http-egress/egress.ts';
import { createJoseIdentityTokens } from '../../adapters/jose/identity-tokens.ts';
import type { IdentityIssuer } from '../../core/ports/identity-issuer.ts';
import type { IdentityTokens } from '../../core/ports/identity-tokens.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { PastEntities } from '../../core/runtime/past-entities.ts';
import type { Checkpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { createLayerStores } from '../../core/use-cases/buckets/layer-stores.ts';
import { createBucketErrors } from '../../core/use-cases/buckets/record-bucket-error.ts';
import { type ComposedAccountStates, composeAccountStates } from './account-states.ts';
import { composeCheckpoints } from './auditing.ts';
import { createBackground } from './behind-answers.ts';
import { type ComposedBuckets, composeBuckets } from './buckets.ts';
import type { Composing } from './composing.ts';
import { composeFoundation, type Foundation } from './foundation.ts';
import { composeIdentity, composeRoles } from './identity.ts';
import { openCheckedLayers } from './layer-storage/stores.ts';
import { composePastEntities } from './past-entities.ts';
import { type ComposedProjections, composeProjections } from './projections.ts';
import { tracedObjects, tracedStores } from './traced-parts.ts';
import { type WatchedLayers, watchLayers } from './watched-layers.ts';

/**
 * Bounds the entities in memory: a few hundred thousand small ones, or a few very large ones. Internal: what is not
 * kept is read again.
 */
const ENTITIES_SIZE_BYTES_MAX = 64 * 1024 * 1024;

export interface Opened {
  readonly foundation: Foundation;
  readonly identity: IdentityIssuer;
  readonly buckets: ComposedBuckets;
  readonly layers: LayerStores;
  /** Watches the store of the platform's layers. */
  readonly watchedLayers: WatchedLayers;
  readonly objects: GitObjectDatabase;
  /** Not yet started. */
  readonly projections: ComposedProjections;
  readonly outgoing: OutgoingRequests;
  readonly identityTokens: IdentityTokens;
  readonly checkpoints: Checkpoints;
  readonly past: PastEntities;
  readonly states: ComposedAccountStates;
}

export async function open(composing: Composing): Promise<Opened> {
  const { settings, log, metrics, onFault, parts } = composing;
  const { port: tracing } = composing.tracing;
  let objects: GitObjectDatabase | null = null;
  const foundation = await composeFoundation(settings, log, {
    besideServer: false,
    entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
    onFault,
    tracing,
    onForget: () => objects?.doubt(),
  });
  parts.add(() => foundation.close());
  const identity = composeIdentity(settings, foundation, onFault);
  const { buckets, layers, watchedLayers } = await openStores(composing, foundation, identity);
  objects = await openObjects(composing, layers);
  const projections = composeProjections(foundation, objects, log, {
    metrics: metrics.projections,
    ...(tracing === null ? {} : { tracing }),
  });
  parts.add(projections.close);
  const outgoing = createHttpEgress({
    ownUrls: [settings.baseUrl, settings.webUrl],
    privateAllowed: settings.allowPrivateTargets,
  });
  const { readModels } = projections;
  return {
    foundation,
    identity,
    buckets,
    layers,
    watchedLayers,
    objects,
    projections,
    outgoing,
    identityTokens: createJoseIdentityTokens({ outgoing, clock: foundation.context.clock }),
    checkpoints: composeCheckpoints(settings, foundation, layers, readModels),
    past: composePastEntities(foundation, onFault),
    states: composeAccountStates(foundation, readModels, onFault),
  };
}

/** The stores of layers: the platform's, and the buckets of users. */
async function openStores(
  { settings, log, onFault, parts, tracing: { port: tracing } }: Composing,
  foundation: Foundation,
  identity: IdentityIssuer,
): Promise<Pick<Opened, 'buckets' | 'layers' | 'watchedLayers'>> {
  const { context } = foundation;
  const roles = composeRoles(settings, foundation, identity);
  parts.add(async () => roles.close());
  const buckets = composeBuckets(settings, roles);
  const background = createBackground(onFault);
  parts.add(() => background.settled());
  const checked = await openCheckedLayers(settings.layerStore, log, tracing);
  const watchedLayers = watchLayers(checked, context.clock.monotonicMs);
  const layers = createLayerStores({
    ...context,
    platform: watchedLayers.store,
    open: buckets.open,
    onError: createBucketErrors({ ...context, background }),
  });
  return { buckets, layers: tracing === null ? layers : tracedStores(layers, tracing), watchedLayers };
}

/** The node's cache of repositories, with the git processes that read them. */
async function openObjects(
  { settings, log, parts, tracing: { port: tracing } }: Composing,
  layers: LayerStores,
): Promise<GitObjectDatabase> {
  const objects = await createGitObjectDatabase({
    directory: path.join(settings.dataDir, 'cache'),
    layers,
    cacheBytesMax: settings.cacheBytesMax,
    pushMemoryBytesMax: settings.pushMemoryBytesMax,
    inMemoryGroup: true,
    log,
  });
  parts.add(objects.close);
  return tracing === null ? objects : tracedObjects(objects, tracing);
}
