/**
 * The in-memory counterpart of the buckets of users: each bucket is a layer store in memory, and a test scripts what
 * goes wrong.
 */
import type { BucketFindings } from '../../../core/ports/bucket-findings.ts';
import type { BucketConnection, BucketFault, Buckets } from '../../../core/ports/buckets.ts';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import { createMemoryLayerStore } from './layer-store.ts';

export interface MemoryBuckets extends Buckets {
  /** Every connection that was tried, in order. */
  readonly checked: readonly BucketConnection[];
  /** Every later check ends like this; null: it succeeds. */
  fail(fault: BucketFault | null): void;
  /** Every later check that succeeds finds this out. */
  find(findings: BucketFindings): void;
  /** Called in every later check, before it ends; it may reject, as if the process died there. */
  during(work: () => Promise<void>): void;
}

/** What is found out about a provider that lacks nothing. */
export const LACKS_NOTHING: BucketFindings = { conditionalWrites: true, checksBodies: true };

export function createMemoryBuckets(): MemoryBuckets {
  const checked: BucketConnection[] = [];
  const stores = new Map<string, LayerStore>();
  let fault: BucketFault | null = null;
  let findings = LACKS_NOTHING;
  let during = async (): Promise<void> => undefined;
  return {
    checked,
    fail: (next) => {
      fault = next;
    },
    find: (next) => {
      findings = next;
    },
    during: (work) => {
      during = work;
    },
    check: async (connection) => {
      checked.push(connection);
      await during();
      return fault === null ? { findings } : { fault };
    },
    store: ({ bucketName, keyPrefix, access }) => {
      const endpoint = access.mode === 'STATIC_KEYS' ? access.endpointUrl : access.account;
      const key = JSON.stringify([endpoint, bucketName, keyPrefix]);
      const store = stores.get(key) ?? createMemoryLayerStore();
      stores.set(key, store);
      return store;
    },
  };
}
