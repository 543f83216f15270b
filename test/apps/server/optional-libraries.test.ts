/** The server loads only the libraries of chosen engines: the others would double the start of every command. */
import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { test } from 'vitest';

/** The packages that importing a module loads, directly or through other modules. */
async function packagesOf(load: () => Promise<unknown>): Promise<ReadonlySet<string>> {
  const packages = new Set<string>();
  const hooks = registerHooks({
    load: (url, context, next) => {
      const name = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
      if (name !== undefined) packages.add(name);
      return next(url, context);
    },
  });
  await load();
  hooks.deregister();
  return packages;
}

test('a server on PostgreSQL with the embedded engine and files loads no client of Temporal, EventStoreDB or S3, and no traces', async () => {
  const packages = await packagesOf(() => import('../../../apps/server/compose.ts'));
  assert.ok(packages.has('pg') && packages.has('fastify'));
  // The metrics import the API of OpenTelemetry, which does nothing by itself.
  const optional = [...packages].filter((name) =>
    /^@(temporalio|eventstore|grpc|aws-sdk|smithy|opentelemetry(?!\/api$))\//.test(name),
  );
  assert.deepEqual(optional, []);
});
