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
    handle: (call) => getDocument(call, '3.1'),
  }),
  publicRoute({
    operationId: 'getOpenApi30',
    tag: 'Service',
    summary: 'This document in OpenAPI 3.0',
    description: 'For generators of clients that do not read 3.1. It takes more names of claims than the service does.',
    method: 'GET',
    path: '/v1/openapi-3.0.json',
    schemas: {},
    answers: { 200: z.looseObject({ openapi: z.string() }) },
    problems: [304],
    handle: (call) => getDocument(call, '3.0'),
  }),
];

async function getDocument({ context, request }: PublicCall, version: '3.0' | '3.1'): Promise<Outcome> {
  return conditionalAnswer(context.openApi(version), request.headers['if-none-match']);
}
