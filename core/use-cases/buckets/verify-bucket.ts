/**
 * Verifies a storage bucket: tries its connection, and records how that ended.
 *
 * Invariants: the outcome is recorded only for the settings that were tried. A verification that is cut short
 * records nothing, so the bucket keeps the status that it had.
 */
import { decideBucket } from '../../account/buckets/decide.ts';
import type { BucketSettings } from '../../account/buckets/settings.ts';
import { accounts } from '../../account/evolve.ts';
import { issuerFault } from '../../account/role-trust.ts';
import { refuse } from '../../kernel/decider.ts';
import type { StorageBucketId } from '../../kernel/ids.ts';
import {
  BUCKET_CHECKS_OF_ACCOUNT_MAX,
  BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS,
  BUCKET_FAULT_MESSAGE_LENGTH_MAX,
} from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { cutText } from '../../kernel/text.ts';
import type { BucketFault } from '../../ports/buckets.ts';
import type { RateLimit, RateLimits } from '../../ports/rate-limits.ts';
import { execute } from '../../runtime/execute.ts';
import type { BucketChecks } from './bucket-checks.ts';
import { connectionOf } from './bucket-connection.ts';
import {
  type BucketCommandOrigin,
  type BucketContext,
  bucketIn,
  type FoundBucket,
  planRefusal,
  readStoredBucket,
  shownTo,
} from './buckets.ts';

export type VerifyContext = BucketContext & {
  readonly bucketChecks: BucketChecks;
  readonly rateLimits: RateLimits;
};

const CHECKS: RateLimit = {
  name: 'bucket-checks',
  timesMax: BUCKET_CHECKS_OF_ACCOUNT_MAX,
  spanMs: BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS,
};

/** `issuer` is the base URL of this service, which a user's cloud must reach to trust a role's tokens. */
export async function verifyBucket(
  context: VerifyContext,
  origin: BucketCommandOrigin,
  id: StorageBucketId,
  issuer: string,
): Promise<FoundBucket | { readonly refused: Refusal }> {
  const { account: accountId, selection } = origin;
  const stored = await readStoredBucket(context, accountId, id);
  if ('refused' in stored) return stored;
  const denied = planRefusal(context, stored.account);
  if (denied !== null) return denied;
  const waitSeconds = await context.rateLimits.take([{ limit: CHECKS, key: accountId }]);
  if (waitSeconds !== null) return refuse({ code: 'too-many-attempts', waitSeconds });
  const { bucket: of, settings } = stored;
  const checked = await context.bucketChecks.check(accountId, connectionOf(accountId, settings));
  const fault = 'fault' in checked ? checked.fault : null;
  const findings = 'fault' in checked ? stored.findings : checked.findings;
  // Before the event: a deletion that comes after the event then finds it.
  if ('findings' in checked) {
    await context.bucketFindings.note({ account: accountId, bucket: id, place: of.placeRef }, checked.findings);
  }
  const recorded = await execute(context, accounts, accountId, origin, (account) =>
    decideBucket(account, selection, { type: 'RecordVerification', id, of, fault }),
  );
  if ('refused' in recorded) {
    // Deleted, or erased, before the findings were noted.
    if (recorded.refused.code !== 'storage-bucket-changed') await context.bucketFindings.remove(accountId, id);
    return recorded;
  }
  if (fault !== null) return refuse(failureOf(fault, settings, issuer));
  return shownTo(origin, { ...bucketIn(recorded.entity.state, id), settings, findings });
}

function failureOf({ step, message }: BucketFault, settings: BucketSettings, issuer: string): Refusal {
  const unreachable = settings.access.mode === 'OIDC' && step === 'credentials' && issuerFault(issuer) !== null;
  return {
    code: 'storage-bucket-verification-failed',
    step,
    message: plainText(message, settings),
    issuer: unreachable ? issuer : null,
  };
}

/** A bucket's provider is not trusted with what a message may hold: no secret comes back, and no second line. */
function plainText(message: string, { access }: BucketSettings): string {
  const secret = access.mode === 'STATIC_KEYS' ? access.secretAccessKey : '';
  const without = secret === '' ? message : message.replaceAll(secret, '…');
  const line = without.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, ' ').trim();
  return cutText(line, BUCKET_FAULT_MESSAGE_LENGTH_MAX);
}
