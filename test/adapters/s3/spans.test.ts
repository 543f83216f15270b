/** How long a bucket may keep requests waiting: to the last moment of each span, and no longer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { describe, type TestContext, test, vi } from 'vitest';
import { type BucketOptions, openBucket } from '../../../adapters/s3/bucket.ts';
import { checkBucket } from '../../../adapters/s3/check-bucket.ts';
import { S3_ANSWER_SPAN_MS, S3_STALLED_SPAN_MS } from '../../../adapters/s3/client.ts';
import { S3Failure } from '../../../adapters/s3/failures.ts';
import { openRead } from '../../../adapters/s3/read.ts';
import { repeatable, S3_RETRY_SPAN_MS } from '../../../adapters/s3/requests.ts';
import { BUCKET_CHECK_SPAN_MS, S3_CONNECT_SPAN_MS, S3_CONNECTIONS_MAX } from '../../../core/kernel/limits.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { eventually, turns } from '../../support/test-timers.ts';

const KEYS = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'secret' };
const AT = { Bucket: 'layers', Key: 'a' };

interface Silent {
  readonly options: BucketOptions;
  /** The ranges of the requests that came, empty without one. */
  readonly asked: readonly string[];
}

/** A bucket that answers as the listener does, and a fake clock for whoever waits for it. */
async function bucketOf(context: TestContext, listener: RequestListener = () => undefined): Promise<Silent> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers.range ?? '');
    listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const place = { endpointUrl: `http://127.0.0.1:${port}`, region: 'us-east-1', bucket: AT.Bucket, prefix: '' };
  const options = { ...place, pathStyle: true, credentials: KEYS };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  context.onTestFinished(() => void vi.useRealTimers());
  return { options, asked };
}

/** Lets the span pass up to its last moment, then to its end. Returns what had settled at each of the two. */
async function overSpan(spanMs: number, work: Promise<unknown>): Promise<readonly [string, string]> {
  let outcome = 'waits';
  work.then(
    (value) => (outcome = JSON.stringify(value)),
    (error: unknown) => (outcome = error instanceof S3Failure ? error.code : String(error)),
  );
  await vi.advanceTimersByTimeAsync(spanMs - 1);
  await turns();
  const before = outcome;
  await vi.advanceTimersByTimeAsync(1);
  await eventually(() => outcome !== 'waits');
  return [before, outcome];
}

describe('A bucket', () => {
  test('may take its time for an answer, to the last moment', async (context) => {
    const { options, asked } = await bucketOf(context);
    const { client } = openBucket(options).sender;
    const answer = client.send(new HeadObjectCommand(AT));
    await eventually(() => asked.length === 1);
    assert.deepEqual(await overSpan(S3_ANSWER_SPAN_MS, answer), ['waits', 'AbortError: Request aborted']);
  });

  test('keeps a request waiting for a connection to the last moment of its span', async (context) => {
    const { options, asked } = await bucketOf(context);
    const { client } = openBucket(options).sender;
    const answers = Array.from({ length: S3_CONNECTIONS_MAX }, () => client.send(new HeadObjectCommand(AT)));
    for (const answer of answers) answer.catch(() => undefined);
    await eventually(() => asked.length === S3_CONNECTIONS_MAX);
    const waiting = client.send(new HeadObjectCommand(AT));
    // The request is signed before it waits.
    await turns();
    assert.deepEqual(await overSpan(S3_CONNECT_SPAN_MS, waiting), ['waits', 'throttled']);
    assert.equal(asked.length, S3_CONNECTIONS_MAX);
  });

  test('may send nothing in the middle of a layer to the last moment; then the rest is asked for again', async (context) => {
    const { options, asked } = await bucketOf(context, (request, response) => {
      const isRest = request.headers.range !== undefined;
      const range = isRest ? { 'content-range': 'bytes 5-9/10' } : {};
      response.writeHead(isRest ? 206 : 200, { 'content-length': isRest ? 5 : 10, etag: '"a"', ...range });
      response.write('layer');
    });
    const reading = await openRead({ ...openBucket(options), at: AT });
    assert.equal(String((await reading.next()).value), 'layer');
    const next = reading.next();
    await vi.advanceTimersByTimeAsync(S3_STALLED_SPAN_MS - 1);
    await turns();
    assert.deepEqual(asked, ['']);
    await vi.advanceTimersByTimeAsync(1);
    assert.equal(String((await next).value), 'layer');
    assert.deepEqual(asked, ['', 'bytes=5-9']);
    await reading.return(undefined);
  });

  test('is asked again after a failure to the last moment of the span, and no more when that is over', async (context) => {
    const { options } = await bucketOf(context);
    const { sender } = openBucket(options);
    for (const [spanMs, attempts] of [
      [S3_RETRY_SPAN_MS - 1, 2],
      [S3_RETRY_SPAN_MS, 1],
    ] as const) {
      let count = 0;
      const outcome = repeatable(sender, 'HeadObject', async () => {
        count += 1;
        if (count === 2) return 'there';
        await new Promise((resolve) => setTimeout(resolve, spanMs));
        throw new S3Failure('unreachable', 'The bucket cannot be reached');
      }).catch((error: unknown) => (error instanceof S3Failure ? error.code : error));
      await vi.advanceTimersByTimeAsync(spanMs + 1_000);
      assert.deepEqual([await outcome, count], [attempts === 2 ? 'there' : 'unreachable', attempts]);
    }
  });

  test('has as long as its check may take, whatever it does', async (context) => {
    const { options, asked } = await bucketOf(context);
    const connection = {
      bucketName: AT.Bucket,
      keyPrefix: '',
      access: { mode: 'STATIC_KEYS', ...PLACE, ...KEYS },
    } as const;
    const checked = checkBucket(connection, () => options);
    await eventually(() => asked.length === 1);
    const fault = { step: 'put', code: 'timed-out', message: 'The bucket took too long' };
    assert.deepEqual(await overSpan(BUCKET_CHECK_SPAN_MS, checked), ['waits', JSON.stringify({ fault })]);
  });
});

const PLACE = { endpointUrl: 'https://bucket.example', region: 'us-east-1' };
