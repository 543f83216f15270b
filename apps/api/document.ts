/** The OpenAPI document without a server that answers requests, for whoever shows it to people. */
import swagger from '@fastify/swagger';
import Fastify from 'fastify';
import { routerPath } from './http/targets.ts';
import { documentedSchema, swaggerOptions } from './openapi.ts';
import { ROUTES } from './routes.ts';

/** Returns what `/v1/openapi.json` holds, but for the address of the server. */
export async function makeOpenApiDocument(version: string): Promise<object> {
  const app = Fastify({ logger: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  app.register(swagger, swaggerOptions(version, ROUTES));
  app.after(() => {
    for (const route of ROUTES) {
      app.route({
        method: route.method,
        url: routerPath(route.path),
        schema: documentedSchema(route),
        handler: async () => undefined,
      });
    }
  });
  await app.ready();
  const document = app.swagger();
  await app.close();
  return document;
}
