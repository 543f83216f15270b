/** Account usage on the wire. */
import { z } from 'zod';

const FIGURE = z
  .object({
    used: z.int().nonnegative(),
    quota: z.int().nonnegative().nullable().meta({ description: 'Null: unlimited.' }),
  })
  .meta({ id: 'UsageFigure' });

export const USAGE = z
  .object({ repos: FIGURE, storage_bytes: FIGURE, transfer_bytes: FIGURE, ingress_bytes: FIGURE })
  .meta({ id: 'Usage' });
