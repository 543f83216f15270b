/**
 * The storage of layers: immutable objects by key, on a file system or in a bucket.
 *
 * Invariants: `put` resolves only when the bytes would survive a power cut; the bytes of a key never change; only
 * an explicit `delete` removes a layer.
 */
import type { BucketOutageCode } from '../kernel/bucket-fault.ts';
import { CodedError } from '../kernel/coded-error.ts';
import type { Timestamp } from '../kernel/ids.ts';
import type { LayerKey, StoredLayer } from '../repository/layer.ts';

/** The bytes from `start` up to but not including `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export type LayerStoreErrorCode =
  | 'layer-not-found'
  | 'layer-store-full'
  | 'layer-store-unavailable'
  /** It refuses the request, and would refuse it again. */
  | 'layer-store-refused'
  /** It takes no uploads in parts. */
  | 'multipart-missing'
  | 'range-not-satisfiable'
  | BucketOutageCode;

export class LayerStoreError extends CodedError<LayerStoreErrorCode> {
  override readonly name = 'LayerStoreError';
}

export interface LayerStore {
  /**
   * Stores exactly `sizeBytes` bytes under a new key. Returns `exists` if the key is already stored, and changes
   * nothing. After a body of another length, or one that fails, nothing is stored. A body that can be read again
   * (core/kernel/read-again.ts) may be, where the store must begin once more.
   */
  put(key: LayerKey, body: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<'stored' | 'exists'>;
  /**
   * Returns the bytes, or a range of them; a range that ends past the layer is cut to its end. Rejects before the first
   * byte: with `layer-not-found`, or with `range-not-satisfiable` for a range that contains no byte of the layer.
   */
  get(key: LayerKey, range?: ByteRange): Promise<AsyncIterable<Uint8Array>>;
  head(key: LayerKey): Promise<StoredLayer | null>;
  /** Idempotent: a key that is not stored is no error. */
  delete(key: LayerKey): Promise<void>;
  /** Returns every layer whose key starts with the prefix, in any order. */
  list(prefix: string): AsyncIterable<StoredLayer>;
  /**
   * Returns the time of the store's own clock, to compare with `storedAt`: the clocks of nodes may differ from it. It
   * may be a second behind.
   */
  now(): Promise<Timestamp>;
  /** An adapter omits it where no put leaves anything when its process dies. */
  readonly incoming?: IncomingLayers;
}

/** What a put has written so far. It stays when the process that writes it dies. */
export interface IncomingLayer {
  readonly name: string;
  /** What it was to become; null if it does not say so. */
  readonly key: LayerKey | null;
  /** Null: the store does not tell. */
  readonly sizeBytes: number | null;
  /** When it was last written, or begun, by the store's own clock. */
  readonly at: Timestamp;
  /** Whether the process that wrote it has ended for certain, or it is older than any put takes. */
  readonly isLeft: boolean;
}

export interface IncomingLayers {
  /** Returns those of puts under way too, in any order. */
  list(): AsyncIterable<IncomingLayer>;
  /** Idempotent. */
  remove(layer: Pick<IncomingLayer, 'name' | 'key'>): Promise<void>;
}
