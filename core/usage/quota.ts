/**
 * What an account's byte quotas leave for a push: asked before its pack is read, and again before it commits.
 *
 * Must stay true: a refusal names the quota that it comes from; an account without quotas costs no question.
 */
import type { PlanQuotas } from '../account/plans.ts';
import type { AccountId } from '../kernel/ids.ts';
import { PACK_SIZE_BYTES_MAX } from '../kernel/limits.ts';
import type { UsageReader } from '../ports/usage.ts';

export type QuotaRefusalCode = 'storage-quota-reached' | 'ingress-quota-reached';

/** How large a pack may be, and by what; null for the product's own bound. */
export interface PushRoom {
  readonly packSizeBytesMax: number;
  readonly boundBy: QuotaRefusalCode | null;
}

export type QuotaRefused = { readonly refused: { readonly code: QuotaRefusalCode } };

/** What a push would add to an account. */
export interface PushSize {
  /** Of its layer; 0 for none. */
  readonly layerSizeBytes: number;
  /** Of its body, as far as it was read. */
  readonly receivedBytes: number;
}

/** The room for a pack that is about to be read, or the quota that leaves none. */
export async function roomForPack(
  usage: UsageReader,
  account: AccountId,
  quotas: PlanQuotas,
): Promise<PushRoom | QuotaRefused> {
  const left = await bytesLeft(usage, account, quotas);
  if (left.storage <= 0) return { refused: { code: 'storage-quota-reached' } };
  if (left.ingress <= 0) return { refused: { code: 'ingress-quota-reached' } };
  const packSizeBytesMax = Math.min(left.storage, left.ingress);
  if (packSizeBytesMax >= PACK_SIZE_BYTES_MAX) return { packSizeBytesMax: PACK_SIZE_BYTES_MAX, boundBy: null };
  const boundBy = left.storage <= left.ingress ? 'storage-quota-reached' : 'ingress-quota-reached';
  return { packSizeBytesMax, boundBy };
}

/** The quota that a push of this size would pass; null when it fits exactly or better. */
export async function quotaPassed(
  usage: UsageReader,
  account: AccountId,
  quotas: PlanQuotas,
  size: PushSize,
): Promise<QuotaRefusalCode | null> {
  const left = await bytesLeft(usage, account, quotas);
  if (size.layerSizeBytes > left.storage) return 'storage-quota-reached';
  return size.receivedBytes > left.ingress ? 'ingress-quota-reached' : null;
}

/** Infinite where there is no quota. */
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
