/**
 * Composes the buckets of users.
 *
 * Must stay true: every connection to an address that a user chose is made by an agent that checks the address. The
 * library of S3 is loaded with the first bucket that is used.
 */
import { createCheckedAgents } from '../../adapters/http-egress/agents.ts';
import { S3_CONNECT_SPAN_MS, S3_CONNECTIONS_MAX } from '../../core/kernel/limits.ts';
import type { Buckets, Roles } from '../../core/ports/buckets.ts';
import { type BucketChecks, createBucketChecks } from '../../core/use-cases/buckets/bucket-checks.ts';
import type { Settings } from './settings.ts';

/** An idle connection to a bucket is closed after this. */
const IDLE_MS = 60_000;

export function composeBucketChecks(settings: Settings, roles: Roles): BucketChecks {
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
  return createBucketChecks({
    check: async (connection) => {
      loading ??= load();
      return (await loading).check(connection);
    },
  });
}
