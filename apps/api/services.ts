/** The API's context with the rate limits that the API keeps in memory. */
import type { PushId } from '../../core/kernel/ids.ts';
import { DEVICE_POLL_INTERVAL_SECONDS } from '../../core/kernel/limits.ts';
import { createRate, type Rate } from '../front-door/rates.ts';
import type { EncodedBody } from './body-cache.ts';
import type { ApiContext } from './context.ts';

export interface ApiServices extends ApiContext {
  /** Limits polls by session. */
  readonly devicePollRate: Rate;
  /** The pushes of this node that are under way under an idempotency key. */
  readonly keysInUse: Set<PushId>;
  /** The OpenAPI document in this version; callable after the routes are registered. */
  readonly openApi: (version: '3.0' | '3.1') => EncodedBody;
}

/** A poll may arrive this much before its interval ends, because timers and networks vary. */
const POLL_SLACK_MS = 100;

export function createApiServices(context: ApiContext, openApi: ApiServices['openApi']): ApiServices {
  const { clock } = context;
  return {
    ...context,
    devicePollRate: createRate({ timesMax: 1, spanMs: DEVICE_POLL_INTERVAL_SECONDS * 1_000 - POLL_SLACK_MS, clock }),
    keysInUse: new Set(),
    openApi,
  };
}
