/** What the routes of an account's log take and answer. */
import { z } from 'zod';
import { requiredNumber } from './common.ts';

/** Beyond any log. */
export const TREE_SIZE_MAX = 1_000_000_000_000;

const size = (description: string) => requiredNumber({ min: 1, max: TREE_SIZE_MAX, description });

export const INCLUSION_QUERY = z.object({
  sequence: requiredNumber({ min: 0, max: TREE_SIZE_MAX, description: 'The entry, counted from 0' }),
  tree_size: size('How many entries the tree has'),
});

export const CONSISTENCY_QUERY = z.object({
  from: size('How many entries the older tree has'),
  to: size('How many entries the newer tree has'),
});

export const PROOF = z.object({
  hashes: z.array(z.base64()).meta({ description: 'SHA-256, in the order of RFC 6962' }),
});

const vkey = z.string().meta({ description: 'A line of /.well-known/strata-log-keys' });

export const LOG_KEYS = z.object({
  keys: z.array(
    z.object({
      vkey,
      endorsed_by: vkey.nullable().meta({ description: 'The key before it; null of the first key' }),
      signature: z.base64().nullable().meta({ description: 'By the key before it; null where a key was revoked' }),
      revoked: z.boolean().meta({ description: 'Whether it was stolen, and signs no more' }),
    }),
  ),
});
