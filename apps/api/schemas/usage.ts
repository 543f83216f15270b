/** Account usage on the wire. */
import { z } from 'zod';

const FIGURE = z
  .object({
    used: z.int().nonnegative(),
    quota: z.int().nonnegative().nullable().meta({ description: 'Null: unlimited.' }),
  })
  .meta({ id: 'UsageFigure' });

/** A figure as the others, with its parts. */
const BUCKETS_FIGURE = z
  .object({
    used: z.int().nonnegative(),
    quota: z.null().meta({ description: 'What lies in a bucket of your own counts against no quota.' }),
    buckets: z.array(z.object({ storage_bucket_id: z.uuid(), used: z.int().nonnegative() })),
  })
  .meta({ id: 'BucketUsageFigure' });

export const USAGE = z
  .object({
    repos: FIGURE,
    storage_bytes: FIGURE,
    transfer_bytes: FIGURE,
    ingress_bytes: FIGURE,
    byo_storage_bytes: BUCKETS_FIGURE,
  })
  .meta({ id: 'Usage' });
