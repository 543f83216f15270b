/**
 * A server killed at every point of a compaction that drops what no ref reaches, with layers in a folder and in the
 * bucket of a user: nothing that a ref reaches is lost, and what none reaches goes in the end.
 */
import { beforeAll, describe, type SuiteOptions, test } from 'vitest';
import { type Ending, suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import {
  type CrashService,
  type DropPoint,
  isInBucketAlone,
  killAtDrop,
  startBucketService,
  startFolderService,
} from './bucket-crash.ts';

const POINTS = ['dropping-layers-stored', 'dropping-appended'] satisfies DropPoint[];

function suite(title: string, options: SuiteOptions, start: (ending: Ending) => Promise<CrashService>): void {
  describe(title, options, () => {
    const ending = suiteEnding();
    let service: CrashService;

    beforeAll(async () => {
      service = await start(ending);
    });

    for (const point of POINTS) {
      test(`killed at ${point}, keeps what refs reach, and drops the rest later`, () => killAtDrop(service, point));
    }

    test('leaves layers that alone are every one of these repositories', () => isInBucketAlone(service));
  });
}

suite('A server with layers in a folder', {}, startFolderService);
suite('A server with a bucket as store', needs('versitygw'), (ending) => startBucketService(ending, 1));
