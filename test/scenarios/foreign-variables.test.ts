/**
 * A machine whose environment is meant for other programs: the libraries of the service read some of these variables
 * themselves. What each is for, and who reads it:
 * - libpq's (PostgreSQL 18, section 32.15), by pg;
 * - Amazon's (AWS SDKs and Tools Reference Guide, "Environment variables supported"), by its SDK;
 * - proxies (curl(1), ENVIRONMENT), by @grpc/grpc-js and, with NODE_USE_ENV_PROXY, by Node;
 * - Temporal's (Environment configuration) and OpenTelemetry's (SDK configuration, "General").
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, type TestContext, test } from 'vitest';
import { cleanUp } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import {
  admin,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  startStrata,
} from '../support/strata.ts';
import { startS3Server } from '../support/versitygw.ts';

/** Answers nothing, and counts who asks. */
async function startProxy(context: TestContext) {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections };
}

function ofOtherPrograms(proxy: string): Readonly<Record<string, string>> {
  return {
    ...{ PGHOST: 'db.example.org', PGPORT: '6432', PGUSER: 'other', PGPASSWORD: 'other', PGDATABASE: 'other' },
    ...{ PGSSLMODE: 'verify-full', PGSSLNEGOTIATION: 'direct', PGSERVICE: 'other', PGREPLICATION: 'database' },
    ...{ PGOPTIONS: '-c search_path=other -c default_transaction_read_only=on', PGCLIENT_ENCODING: 'LATIN1' },
    ...{ AWS_PROFILE: 'other', AWS_CONFIG_FILE: '/nonexistent/config', AWS_REGION: 'eu-other-1' },
    ...{ AWS_ACCESS_KEY_ID: 'other', AWS_SECRET_ACCESS_KEY: 'other', AWS_SESSION_TOKEN: 'other' },
    ...{ AWS_ENDPOINT_URL: proxy, AWS_ENDPOINT_URL_S3: proxy, AWS_USE_FIPS_ENDPOINT: 'true' },
    ...{ AWS_USE_DUALSTACK_ENDPOINT: 'true', AWS_MAX_ATTEMPTS: 'none', AWS_RETRY_MODE: 'other' },
    ...{ AWS_REQUEST_CHECKSUM_CALCULATION: 'other', AWS_RESPONSE_CHECKSUM_VALIDATION: 'other' },
    ...{ http_proxy: proxy, https_proxy: proxy, grpc_proxy: proxy, all_proxy: proxy, no_proxy: '' },
    ...{ HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: '', NODE_USE_ENV_PROXY: '1' },
    ...{ TEMPORAL_ADDRESS: 'temporal.example.org:7233', TEMPORAL_NAMESPACE: 'other', TEMPORAL_TLS: 'true' },
    // A service may have no home folder, and a start script of its own.
    ...{ HOME: 'relative', TZ: 'Asia/Tokyo', LC_ALL: 'tr_TR.UTF-8' },
    ...{ OTEL_SERVICE_NAME: 'other', OTEL_TRACES_SAMPLER: 'other', OTEL_LOG_LEVEL: 'other' },
  };
}

async function serves(context: TestContext, env: Readonly<Record<string, string>>): Promise<void> {
  const proxy = await startProxy(context);
  const strata = await startStrata(context, { log: 'eventstoredb', env: { ...ofOtherPrograms(proxy.url), ...env } });
  const ada = await createAccount(strata, 'ada');
  await createRepository(strata, ada, 'hello');
  const work = await newWorkTree(context);
  await commitFile(work, 'file', 'text');
  await git(work, ['push', gitUrl(strata, ada, 'hello'), 'HEAD:main']);
  await admin(strata, ['storage', 'verify']);
  assert.equal(proxy.connections(), 0);
}

describe('Beside variables of other programs, the service', () => {
  test('starts, takes a push and runs commands, all on the parts that its settings name', async (context) => {
    await serves(context, {});
  });

  test('does so with layers in a bucket', needs('versitygw'), async (context) => {
    const s3 = await startS3Server(context);
    await serves(context, {
      HOME: '',
      STRATA_STORAGE: 's3',
      STRATA_S3_ENDPOINT: s3.url,
      STRATA_S3_REGION: s3.region,
      STRATA_S3_BUCKET: s3.bucket,
      STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId,
      STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    });
  });
});
