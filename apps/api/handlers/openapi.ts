/** The OpenAPI document of this API. */
import { conditionalAnswer } from '../body-cache.ts';
import type { Outcome, PublicCall } from '../route.ts';

export async function getOpenApi({ context, request }: PublicCall): Promise<Outcome> {
  return conditionalAnswer(context.openApi(), request.headers['if-none-match']);
}
