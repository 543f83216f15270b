/**
 * Composes the buckets of users, and the store of each repository's layers.
 *
 * Invariants: every connection to an address that a user chose is made by an agent that checks the address. The
 * library of S3 is loaded with the first bucket that is used.
 */
import { createCheckedAgents } from '../../adapters/http-egress/agents.ts';
import { S3_CONNECT_SPAN_MS, S3_CONNECTIONS_MAX } from '../../core/kernel/limits.ts';
import type { BucketFindings } from '../../core/ports/bucket-findings.ts';
import type { BucketChecked, BucketConnection, Buckets, Roles } from '../../core/ports/buckets.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import { createLayerStores } from '../../core/use-cases/buckets/layer-stores.ts';
import type { Foundation } from './foundation.ts';
import { composeIdentity, composeRoles } from './identity.ts';
import type { LayerStorageLog } from './layer-storage/store-kind.ts';
import { openLayerStorage } from './layer-storage/stores.ts';
import type { Settings } from './settings.ts';

/** An idle connection to a bucket is closed after this. */
const IDLE_MS = 60_000;

export interface ComposedBuckets {
  check(connection: BucketConnection): Promise<BucketChecked>;
  open(connection: BucketConnection, findings: BucketFindings | null): Promise<LayerStore>;
}

export function composeBuckets(settings: Settings, roles: Roles): ComposedBuckets {
  let loading: Promise<Buckets> | null = null;
  const load = async (): Promise<Buckets> => {
    const { createS3Buckets } = await import('../../adapters/s3/buckets.ts');
    return createS3Buckets({
      roles,
      roleEndpointUrl: settings.oidcS3Endpoint,
      checkedAgents: () =>
        createCheckedAgents({
          ownUrls: [settings.baseUrl, settings.webUrl],
          privateAllowed: settings.allowPrivateTargets,
          connectionsMax: S3_CONNECTIONS_MAX,
          connectMs: S3_CONNECT_SPAN_MS,
          idleMs: IDLE_MS,
        }),
    });
  };
  const loaded = (): Promise<Buckets> => {
    loading ??= load();
    return loading;
  };
  return {
    check: async (connection) => (await loaded()).check(connection),
    open: async (connection, findings) => (await loaded()).store(connection, findings),
  };
}

/** Opens the stores of layers for one command, which notes no errors of buckets. */
export async function openLayerStores(
  settings: Settings,
  foundation: Foundation,
  log: LayerStorageLog,
): Promise<{ readonly layers: LayerStores; close(): Promise<void> }> {
  const onFault = (what: string, cause: unknown): void => log.warn({ err: cause, what }, 'Recovered from an error');
  const roles = composeRoles(settings, foundation, composeIdentity(settings, foundation, onFault));
  const { open } = composeBuckets(settings, roles);
  const platform = await openLayerStorage(settings.layerStore, log);
  const layers = createLayerStores({ ...foundation.context, platform, open, onError: () => undefined });
  return { layers, close: async () => roles.close() };
}
