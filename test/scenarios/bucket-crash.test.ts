/** A server killed in the middle of a push whose layer goes into the bucket of a user. */
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import { type CrashService, killAtPush, startBucketService } from './bucket-crash.ts';

describe('A server killed with a bucket as store', needs('versitygw'), () => {
  const ending = suiteEnding();
  let service: CrashService;

  beforeAll(async () => {
    service = await startBucketService(ending, 1);
  });

  test('when the layer is in the bucket, and the push in no event, keeps what was acknowledged', () =>
    killAtPush(service, 'push-layer-stored'));
});
