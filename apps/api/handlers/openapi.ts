/** The OpenAPI document of this API. */
import { z } from 'zod';
import { conditionalAnswer } from '../body-cache.ts';
import { type Outcome, type PublicCall, publicRoute, type Route } from '../route.ts';

export const OPENAPI_ROUTES: readonly Route[] = [
  publicRoute({
    operationId: 'getOpenApi',
    tag: 'Service',
    summary: 'This document',
    method: 'GET',
    path: '/v1/openapi.json',
    schemas: {},
    answers: { 200: z.looseObject({ openapi: z.string() }) },
    problems: [304],
    handle: getOpenApi,
  }),
];

async function getOpenApi({ context, request }: PublicCall): Promise<Outcome> {
  return conditionalAnswer(context.openApi(), request.headers['if-none-match']);
}
