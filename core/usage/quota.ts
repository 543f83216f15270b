/**
 * How many bytes an account's quotas leave for a push: checked before the pack is read, and again before the commit.
 *
 * Invariants: a refusal names the quota that was reached; for an account without quotas, no usage is read.
 */
import type { PlanQuotas } from '../account/plans.ts';
import type { AccountId } from '../kernel/ids.ts';
import { PACK_SIZE_BYTES_MAX } from '../kernel/limits.ts';
import type { UsageReader } from '../ports/usage.ts';

export type QuotaRefusalCode = 'storage-quota-reached' | 'ingress-quota-reached';

/** How large a pack may be. `boundBy` is the quota that sets the limit; null if it is `PACK_SIZE_BYTES_MAX`. */
export interface PushRoom {
  readonly packSizeBytesMax: number;
  readonly boundBy: QuotaRefusalCode | null;
}

export interface QuotaRefusal {
  readonly code: QuotaRefusalCode;
  /** What the quota leaves, at least 0. */
  readonly leftBytes: number;
  /** What the push would add; null if it was refused before that was known. */
  readonly sizeBytes: number | null;
}

export type QuotaRefused = { readonly refused: QuotaRefusal };

/** How many bytes a push would add to an account's usage. */
export interface PushSize {
  /** The size of its layer; 0 if it has none. */
  readonly layerSizeBytes: number;
  /** The bytes of its request body that were read. */
  readonly receivedBytes: number;
}

/** Returns the room for a pack that is about to be read, or a refusal with the quota that leaves none. */
export async function roomForPack(
  usage: UsageReader,
  account: AccountId,
  quotas: PlanQuotas,
): Promise<PushRoom | QuotaRefused> {
  const left = await bytesLeft(usage, account, quotas);
  const none = { leftBytes: 0, sizeBytes: null };
  if (left.storage <= 0) return { refused: { code: 'storage-quota-reached', ...none } };
  if (left.ingress <= 0) return { refused: { code: 'ingress-quota-reached', ...none } };
  const packSizeBytesMax = Math.min(left.storage, left.ingress);
  if (packSizeBytesMax >= PACK_SIZE_BYTES_MAX) return { packSizeBytesMax: PACK_SIZE_BYTES_MAX, boundBy: null };
  const boundBy = left.storage <= left.ingress ? 'storage-quota-reached' : 'ingress-quota-reached';
  return { packSizeBytesMax, boundBy };
}

/** Returns the quota that a push of this size would exceed; null if it fits, even exactly. */
export async function exceededQuota(
  usage: UsageReader,
  account: AccountId,
  quotas: PlanQuotas,
  size: PushSize,
): Promise<QuotaRefusal | null> {
  const left = await bytesLeft(usage, account, quotas);
  const exceeded = (code: QuotaRefusalCode, sizeBytes: number, leftBytes: number): QuotaRefusal | null =>
    sizeBytes > leftBytes ? { code, leftBytes: Math.max(0, leftBytes), sizeBytes } : null;
  const { layerSizeBytes, receivedBytes } = size;
  return (
    exceeded('storage-quota-reached', layerSizeBytes, left.storage) ??
    exceeded('ingress-quota-reached', receivedBytes, left.ingress)
  );
}

/** Returns the bytes that each quota leaves: infinite without a quota, negative if it is exceeded. */
async function bytesLeft(
  usage: UsageReader,
  account: AccountId,
  { storage_bytes: storage, ingress_bytes: ingress }: PlanQuotas,
): Promise<{ readonly storage: number; readonly ingress: number }> {
  if (storage === null && ingress === null) {
    return { storage: Number.POSITIVE_INFINITY, ingress: Number.POSITIVE_INFINITY };
  }
  const used = await usage.usageOf(account);
  return {
    storage: storage === null ? Number.POSITIVE_INFINITY : storage - used.storageBytes,
    ingress: ingress === null ? Number.POSITIVE_INFINITY : ingress - used.ingressBytes,
  };
}
