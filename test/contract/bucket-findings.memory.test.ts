/** The contract of findings about buckets, in memory. */
import { createMemoryBucketFindings } from '../support/memory/bucket-findings.ts';
import { bucketFindingsContract } from './bucket-findings.ts';

bucketFindingsContract('memory', async () => createMemoryBucketFindings());
