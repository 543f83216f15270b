/**
 * Gives each repository the store that it is bound to: the platform's, or a bucket of its account.
 *
 * Invariants: each call to a bucket uses the settings that the bucket has then, so that changed keys count immediately.
 * A status other than verified stops nothing: the layers are there.
 */
import type { BucketFaultCode, BucketOperation } from '../../kernel/bucket-fault.ts';
import { type AccountId, parseUuid, type RepositoryId, type StorageBucketId, type Uuid } from '../../kernel/ids.ts';
import type { BucketFindings } from '../../ports/bucket-findings.ts';
import type { BucketConnection } from '../../ports/buckets.ts';
import type { Clock } from '../../ports/clock.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../ports/layer-stores.ts';
import type { StoredLayer } from '../../repository/layer.ts';
import { connectionOf } from './bucket-connection.ts';
import { type BucketGate, createBucketGate } from './bucket-gate.ts';
import { type BucketContext, readStoredBucket } from './buckets.ts';
import type { BucketError } from './record-bucket-error.ts';

export interface LayerStoresOptions extends Pick<BucketContext, 'entities' | 'vault' | 'bucketFindings'> {
  readonly platform: LayerStore;
  /** Returns the store of a bucket (core/ports/buckets.ts). */
  readonly open: (connection: BucketConnection, findings: BucketFindings | null) => Promise<LayerStore>;
  /** Called for each failure of a bucket. It neither waits nor throws. */
  readonly onError: (account: AccountId, error: BucketError) => void;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * The codes of `LayerStoreError` as the list of a bucket's errors has them; null for what is no fault of the bucket.
 */
const FAULTS: { readonly [Code in LayerStoreError['code']]: BucketFaultCode | null } = {
  'layer-not-found': 'object-missing',
  'layer-store-full': 'failed',
  'layer-store-unavailable': 'failed',
  'layer-store-refused': 'failed',
  'multipart-missing': 'multipart-missing',
  'range-not-satisfiable': null,
  'bucket-missing': 'bucket-missing',
  'access-denied': 'access-denied',
  'get-denied': 'get-denied',
  'head-denied': 'head-denied',
  'put-denied': 'put-denied',
  'delete-denied': 'delete-denied',
  'list-denied': 'list-denied',
  'credentials-invalid': 'credentials-invalid',
  'credentials-refused': 'credentials-refused',
  'wrong-region': 'wrong-region',
  'clock-skewed': 'clock-skewed',
  throttled: 'throttled',
  'timed-out': 'timed-out',
  'certificate-invalid': 'certificate-invalid',
  'target-refused': 'target-refused',
  unreachable: 'unreachable',
  'not-s3': 'not-s3',
};

export function createLayerStores(options: LayerStoresOptions): LayerStores {
  /** The buckets that calls are under way to. */
  const gates = new Map<Uuid, BucketGate>();
  const told = (bucket: BucketOfAccount, about: string, operation: BucketOperation, code: BucketFaultCode | null) => {
    if (code === null) return;
    options.onError(bucket.account, { bucket: bucket.id, repository: repositoryIn(about), operation, code });
  };
  return {
    platform: options.platform,
    of: (place, operation) => {
      const bucket = bucketOf(place);
      if (bucket === null) return options.platform;
      return storeOf({
        connect: () => connect(options, bucket),
        gate: () => {
          const gate = gates.get(bucket.id) ?? createBucketGate(() => options.clock.monotonicMs());
          gates.set(bucket.id, gate);
          return gate;
        },
        onFailed: (about, error) => told(bucket, about, operation, FAULTS[error.code]),
        onEnd: (gate) => {
          if (gate.isIdle) gates.delete(bucket.id);
        },
      });
    },
    altered: (place, key) => {
      const bucket = bucketOf(place);
      if (bucket !== null) told(bucket, key, 'read', 'object-altered');
    },
  };
}

interface BucketOfAccount {
  readonly account: AccountId;
  readonly id: StorageBucketId;
}

function bucketOf({ account, storageBucketId }: LayerPlace): BucketOfAccount | null {
  const id = storageBucketId === null ? null : parseUuid<StorageBucketId>(storageBucketId);
  return id === null ? null : { account, id };
}

const OF_REPOSITORY = /^repositories\/([^/]+)\//;

/** Returns the repository whose layers a key or a prefix of keys names; null if it names those of several. */
function repositoryIn(key: string): RepositoryId | null {
  return parseUuid<RepositoryId>(OF_REPOSITORY.exec(key)?.[1] ?? '');
}

async function connect(options: LayerStoresOptions, { account, id }: BucketOfAccount): Promise<LayerStore> {
  const stored = await readStoredBucket(options, account, id);
  if ('refused' in stored) throw new LayerStoreError('bucket-missing', `The account has no storage bucket ${id}`);
  return options.open(connectionOf(account, stored.settings), stored.findings);
}

interface Calls {
  connect(): Promise<LayerStore>;
  gate(): BucketGate;
  /** `about` is a key, or a prefix of keys. */
  onFailed(about: string, error: LayerStoreError): void;
  onEnd(gate: BucketGate): void;
}

function storeOf(calls: Calls): LayerStore {
  return {
    put: (key, body, sizeBytes) => called(calls, key, (store) => store.put(key, body, sizeBytes)),
    get: async (key, range) => {
      const call = await begin(calls, key);
      const bytes = await call.run((store) => store.get(key, range));
      call.handedOver();
      return call.each(bytes);
    },
    head: (key) => called(calls, key, (store) => store.head(key)),
    delete: (key) => called(calls, key, (store) => store.delete(key)),
    list: async function* (prefix) {
      const call = await begin(calls, prefix);
      yield* call.each(listed(calls, prefix));
    },
    now: () => called(calls, '', (store) => store.now()),
  };
}

async function* listed(calls: Calls, prefix: string): AsyncGenerator<StoredLayer> {
  const store = await calls.connect();
  yield* store.list(prefix);
}

async function called<Result>(
  calls: Calls,
  about: string,
  run: (store: LayerStore) => Promise<Result>,
): Promise<Result> {
  const call = await begin(calls, about);
  const result = await call.run(run);
  call.end();
  return result;
}

interface Call {
  /** Does a part of the call. If it fails, the call has ended. */
  run<Result>(work: (store: LayerStore) => Promise<Result>): Promise<Result>;
  /** The caller may begin to read what `each` returns, or forget it. */
  handedOver(): void;
  /** Hands on the items, and ends the call with them. */
  each<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item>;
  end(): void;
}

async function begin(calls: Calls, about: string): Promise<Call> {
  const gate = calls.gate();
  const failed = (error: unknown): void => {
    if (error instanceof LayerStoreError) calls.onFailed(about, error);
    calls.onEnd(gate);
  };
  const admitted = await gate.enter().catch((error: unknown) => {
    failed(error);
    throw error;
  });
  const fail = (error: unknown): void => {
    admitted.end(error instanceof LayerStoreError ? error : undefined);
    failed(error);
  };
  const end = (): void => {
    admitted.end();
    calls.onEnd(gate);
  };
  return {
    run: async (work) => {
      try {
        const result = await work(await calls.connect());
        admitted.answered();
        return result;
      } catch (error) {
        fail(error);
        throw error;
      }
    },
    handedOver: admitted.handedOver,
    each: async function* (items) {
      admitted.reads();
      try {
        yield* items;
        admitted.answered();
      } catch (error) {
        fail(error);
        throw error;
      } finally {
        end();
      }
    },
    end,
  };
}
