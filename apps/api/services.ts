/** The API's context with what the API keeps in memory beside it. */
import { type BodyCache, createBodyCache, type EncodedBody } from './body-cache.ts';
import type { ApiContext } from './context.ts';

export interface ApiServices extends ApiContext {
  readonly bodies: BodyCache;
  /** The OpenAPI document; there once the routes are. */
  readonly openApi: () => EncodedBody;
}

export function createApiServices(context: ApiContext, openApi: () => EncodedBody): ApiServices {
  return { ...context, bodies: createBodyCache(), openApi };
}
