/** The scenario of many nodes with all layers in the bucket of a user. */
import { describe } from 'vitest';
import { needs } from '../../support/optional-suites.ts';
import { BUCKET_ENV, createUserBucket } from '../../support/user-bucket.ts';
import { startS3Server } from '../../support/versitygw.ts';
import { manyNodesOn } from './scenario.ts';

describe('Layers in a bucket', needs('versitygw'), () => {
  manyNodesOn(
    { name: 'PostgreSQL', start: async () => ({}) },
    {
      name: "a user's bucket",
      start: async (ending) => {
        const s3 = await startS3Server(ending);
        return {
          env: BUCKET_ENV,
          of: async (strata, account) => {
            const bucket = await createUserBucket(strata, account, s3);
            return (name) => bucket.create(strata, name);
          },
        };
      },
    },
  );
});
