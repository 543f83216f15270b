/** The layer store's contract on a real S3 server. */
import { describe } from 'vitest';
import { createS3LayerStore } from '../../adapters/s3/layer-store.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import { startS3Server } from '../support/versitygw.ts';
import { layerStoreContract } from './layer-store.ts';

describe('With versitygw', needs('versitygw'), () => {
  const ending = suiteEnding();
  layerStoreContract(
    'S3',
    async () => {
      const { url, region, bucket, accessKeyId, secretAccessKey } = await startS3Server(ending);
      const store = createS3LayerStore({
        endpointUrl: url,
        region,
        pathStyle: true,
        bucket,
        prefix: 'some/prefix/',
        credentials: { accessKeyId, secretAccessKey },
      });
      return { store, close: async () => {} };
    },
    1_000,
  );
});
