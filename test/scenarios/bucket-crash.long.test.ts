/** Servers killed at every point of a push and of a compaction, with layers in the bucket of a user. */
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { killSample } from '../support/kill-sample.ts';
import { needs } from '../support/optional-suites.ts';
import {
  type CompactionPoint,
  type CrashService,
  isInBucketAlone,
  killAtCompaction,
  killAtPush,
  type PushPoint,
  startBucketService,
} from './bucket-crash.ts';

const PUSH_POINTS = [
  'push-pack-received',
  'push-layer-stored',
  'push-parts-appended',
  'push-appended',
  'push-installed',
  'push-answered',
] satisfies PushPoint[];
const COMPACTION_POINTS = ['compaction-layer-stored', 'compaction-appended'] satisfies CompactionPoint[];

const pushes = killSample(PUSH_POINTS);
const compactions = killSample(COMPACTION_POINTS);

for (const [title, nodeCount] of [
  ['One server', 1],
  ['One of three servers', 3],
] as const) {
  describe(`${title} with a bucket as store`, needs('versitygw'), () => {
    const ending = suiteEnding();
    let service: CrashService;

    beforeAll(async () => {
      service = await startBucketService(ending, nodeCount);
    });

    for (const point of PUSH_POINTS) {
      test(`killed at ${point}, keeps acknowledged pushes and nothing incomplete`, pushes(point), () =>
        killAtPush(service, point),
      );
    }

    for (const point of COMPACTION_POINTS) {
      test(`killed at ${point}, keeps acknowledged pushes, and a compaction follows`, compactions(point), () =>
        killAtCompaction(service, point),
      );
    }

    test('leaves a bucket that alone is every one of these repositories', () => isInBucketAlone(service));
  });
}
