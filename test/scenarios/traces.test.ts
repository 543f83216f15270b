/**
 * Traces of a real server, sent to a stand-in for a collector: what a push waits for and what follows it is one trace,
 * strangers choose nothing about it, and a server without a collector does not even load the library.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/optional-suites.ts';
import { startS3Proxy } from '../support/s3-proxy.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import {
  attributeOf,
  type CollectedSpan,
  pathOf,
  startTraceCollector,
  type TraceCollector,
} from '../support/trace-collector.ts';
import { BUCKET_ENV, createUserBucket } from '../support/user-bucket.ts';
import { startS3Server } from '../support/versitygw.ts';
import { createWebhook, webhookReceivers } from '../support/webhook-receiver.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;
/** Prints how many modules of OpenTelemetry the process has loaded, but for its API: prom-client imports it. */
const TELL_LOADED = `import { createRequire } from 'node:module';
const { cache } = createRequire(process.execPath);
process.on('exit', () => console.log('loaded', Object.keys(cache).filter((file) => /@opentelemetry.(?!api.)/.test(file)).length));`;
const TELLING = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(TELL_LOADED)}` };

async function pushTo(context: Parameters<typeof newWorkTree>[0], url: string): Promise<string> {
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  return work;
}

/** Returns the spans of the trace of the n-th push, once the read models follow it. */
function traceOfPush(collector: TraceCollector, at: number): Promise<readonly CollectedSpan[]> {
  return collector.until((spans) => {
    const push = spans.filter(({ name }) => name === 'git push')[at];
    const all = spans.filter(({ traceId }) => traceId === push?.traceId);
    const models = new Set(
      all.filter(({ name }) => name === 'projection').map((span) => attributeOf(span, 'projection.model')),
    );
    return models.has('history') && models.has('repositories') ? all : undefined;
  });
}

describe('A server whose settings name a collector of traces', () => {
  const ending = suiteEnding();
  let collector: TraceCollector;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    collector = await startTraceCollector(ending);
    const env = { OTEL_SERVICE_NAME: 'git-of-acme', OTEL_EXPORTER_OTLP_HEADERS: 'api-key=hunter2' };
    strata = await startStrata(ending, { env: { ...collector.env, ...env, ...TELLING } });
    ada = await createAccount(strata, 'ada');
  });

  test('sends one trace of a push: its barrier, git, the store, the append, and the read models behind it', async () => {
    await pushTo(ending, await createRepository(strata, ada, 'traced'));
    const trace = await traceOfPush(collector, 0);
    const paths = new Set(trace.map((span) => pathOf(trace, span).join(' > ')));
    for (const path of ['barrier', 'git receive', 'store put', 'append', 'append > projection']) {
      assert.ok(paths.has(`git push > ${path}`), `${path} in ${[...paths].join(', ')}`);
    }
    const [push] = trace.filter(({ name }) => name === 'git push');
    assert.ok(push !== undefined);
    assert.equal(attributeOf(push, 'push.outcome'), 'ok');
    assert.equal(attributeOf(push, 'http.response.status_code'), 200);
    assert.ok(strata.log().includes(String(attributeOf(push, 'request.id'))), 'the log has the same request');
  });

  test('names requests of the API by their operation, with the append beneath one that has a body', async () => {
    await createRepository(strata, ada, 'named');
    await collector.until((spans) =>
      spans.find((span) => pathOf(spans, span).join(' > ') === 'api createRepository > append'),
    );
  });

  test('follows the settings of the SDK, and says nothing of names, paths and secrets', async () => {
    await collector.until((spans) => spans[0]);
    assert.equal(collector.headers()['api-key'], 'hunter2');
    // Ids of traces and spans are random, and some begin or end as a word does.
    const sent = collector.bodies.join('\n').replaceAll(/"(?:[0-9a-f]{32}|[0-9a-f]{16})"/g, '""');
    assert.ok(sent.includes('git-of-acme'));
    for (const word of ['ada', 'traced', 'named', 'hunter2', ada.token, ada.id]) {
      assert.ok(!sent.includes(`"${word}`) && !sent.includes(`${word}"`), word);
    }
    assert.ok(!strata.log().includes('hunter2'));
  });

  test("has a stranger's traceparent as a link, and its own trace", async () => {
    await fetch(`${strata.url}/v1/repositories`, { headers: { traceparent: TRACEPARENT } });
    const span = await collector.until((spans) => spans.find(({ links }) => (links ?? []).length > 0));
    assert.notEqual(span.traceId, TRACE);
    assert.deepEqual(
      span.links?.map(({ traceId, spanId }) => ({ traceId, spanId })),
      [{ traceId: TRACE, spanId: PARENT }],
    );
  });

  test('ignores a traceparent in another form', async () => {
    const before = collector.spans.length;
    for (const traceparent of ['', 'x', `${TRACEPARENT}-more`, TRACEPARENT.replace(TRACE, '0'.repeat(32))]) {
      assert.equal((await fetch(`${strata.url}/v1/repositories`, { headers: { traceparent } })).status, 401);
    }
    await collector.until((spans) => (spans.length >= before + 4 ? true : undefined));
    assert.ok(collector.spans.slice(before).every(({ links }) => (links ?? []).length === 0));
  });
});

test("a trusted proxy's traceparent is the parent, and decides whether a request is sampled", async (context) => {
  const collector = await startTraceCollector(context);
  const env = {
    ...collector.env,
    STRATA_TRUSTED_PROXIES: '127.0.0.0/8,::1',
    OTEL_TRACES_SAMPLER: 'parentbased_always_off',
  };
  const strata = await startStrata(context, { env });
  const read = (headers: Record<string, string>) => fetch(`${strata.url}/v1/repositories`, { headers });
  await read({});
  await read({ traceparent: TRACEPARENT.replace(/01$/, '00') });
  await read({ traceparent: TRACEPARENT });
  const span = await collector.until((spans) => spans[0]);
  assert.deepEqual([span.traceId, span.parentSpanId, span.name], [TRACE, PARENT, 'api listRepositories']);
  assert.equal(await strata.stop(), 0);
  assert.deepEqual(
    new Set(collector.spans.map(({ traceId }) => traceId)),
    new Set([TRACE]),
    'nothing else was sampled',
  );
});

test('a collector that is away costs one warning, and no request', async (context) => {
  const strata = await startStrata(context, {
    env: {
      ...{ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`, OTEL_BSP_SCHEDULE_DELAY: '50' },
      ...{ OTEL_EXPORTER_OTLP_TIMEOUT: '300', OTEL_TRACES_SAMPLER: 'sometimes' },
    },
  });
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'lonely');
  const work = await pushTo(context, url);
  await context.expect
    .poll(() => strata.log().includes('The collector takes no traces'), { timeout: 20_000 })
    .toBe(true);
  await commitFile(work, 'second', 'more\n');
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await strata.stop(), 0);
  assert.equal(strata.log().split('The collector takes no traces').length - 1, 1);
  assert.match(strata.log(), /"level":"warn".*"setting":"OTEL_TRACES_SAMPLER"/);
});

describe('The header traceparent', needs('versitygw'), () => {
  test("goes out to the platform's bucket, and to no bucket and no URL of a user", async (context) => {
    const collector = await startTraceCollector(context);
    const s3 = await startS3Server(context);
    const proxy = await startS3Proxy(context, Number(new URL(s3.url).port));
    const puts: { readonly isOwn: boolean; readonly traceparent: unknown }[] = [];
    proxy.fault = ({ method, url, headers }) => {
      if (method === 'PUT') puts.push({ isOwn: url.includes('/own/'), traceparent: headers['traceparent'] });
      return null;
    };
    const receivers = await webhookReceivers(context);
    const bucket = {
      ...{ STRATA_STORAGE: 's3', STRATA_S3_ENDPOINT: proxy.url, STRATA_S3_REGION: s3.region },
      ...{ STRATA_S3_BUCKET: s3.bucket, STRATA_S3_PREFIX: 'git', STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId },
      STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    };
    const env = { ...collector.env, ...BUCKET_ENV, ...receivers.env, ...bucket };
    const strata = await startStrata(context, { env });
    const ada = await createAccount(strata, 'ada');
    const receiver = await receivers.start();
    await createWebhook(strata, ada, receiver.url);

    await pushTo(context, await createRepository(strata, ada, 'ours'));
    const [push] = await traceOfPush(collector, 0);
    const ofPush = puts.filter(({ traceparent }) => String(traceparent).includes(push?.traceId ?? 'none'));
    assert.equal(ofPush.length, 1, JSON.stringify(puts));
    assert.match(String(ofPush[0]?.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);

    const own = await createUserBucket(strata, ada, { ...s3, url: proxy.url });
    await pushTo(context, await own.create(strata, 'theirs'));
    await traceOfPush(collector, 1);
    const toOwn = puts.filter(({ isOwn }) => isOwn);
    assert.ok(toOwn.length > 0);
    assert.ok(toOwn.every(({ traceparent }) => traceparent === undefined));

    const [delivery] = await receiver.until(1);
    assert.equal(delivery?.headers['traceparent'], undefined);
    const webhook = await collector.until((spans) => spans.find(({ name }) => name === 'webhook'));
    assert.equal(collector.spans.filter(({ traceId }) => traceId === webhook.traceId).length, 1);
  });
});

describe('A server without a collector', () => {
  const ending = suiteEnding();
  test.each([{}, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }])(
    'loads nothing of OpenTelemetry: %o',
    async (settings) => {
      const strata = await startStrata(ending, { env: { ...settings, ...TELLING } });
      await fetch(`${strata.url}/v1/repositories`, { headers: { traceparent: TRACEPARENT } });
      assert.equal(await strata.stop(), 0);
      assert.match(strata.log(), /^loaded 0$/m);
    },
  );
});
