/**
 * Layers in a bucket behind a network that loses, repeats and delays: what was acknowledged is there whole, what was
 * not is there whole or not at all, and every fault is named without a credential.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir, utimes } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { beforeAll, beforeEach, describe, test } from 'vitest';
import type { S3Agents } from '../../../adapters/s3/bounded-handler.ts';
import { createS3LayerStore, type S3LayerStore } from '../../../adapters/s3/layer-store.ts';
import { S3_PART_BYTES } from '../../../adapters/s3/put.ts';
import { S3_READ_RESUMES_MAX } from '../../../adapters/s3/read.ts';
import { S3_CONNECTIONS_MAX } from '../../../core/kernel/limits.ts';
import { readAgain } from '../../../core/kernel/read-again.ts';
import { LayerStoreError, type LayerStoreErrorCode } from '../../../core/ports/layer-store.ts';
import { type LayerKey, layerKey } from '../../../core/repository/layer.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { needs } from '../../support/optional-suites.ts';
import { type S3Fault, type S3Proxy, startS3Proxy } from '../../support/s3-proxy.ts';
import { type S3Server, startS3Server } from '../../support/versitygw.ts';

/** What Amazon answers a put without a checksum into a bucket with Object Lock. */
const OBJECT_LOCK =
  'Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters';

const WITHOUT_LENGTH = { kind: 'without-length' } as const;

describe('A bucket behind a faulty network', needs('versitygw'), () => {
  const ending = suiteEnding();
  let server: S3Server;
  let proxy: S3Proxy;
  let store: S3LayerStore;

  const openStore = (url: string, answerMs = 1_000, agents?: S3Agents): S3LayerStore => {
    const { region, bucket, accessKeyId, secretAccessKey } = server;
    const credentials = { accessKeyId, secretAccessKey };
    const spans = { connectMs: 1_000, answerMs, stalledMs: 300, retryMs: 5 };
    return createS3LayerStore({
      endpointUrl: url,
      region,
      bucket,
      prefix: '',
      pathStyle: true,
      credentials,
      spans,
      ...(agents === undefined ? {} : { agents }),
    });
  };

  beforeAll(async () => {
    server = await startS3Server(ending);
    proxy = await startS3Proxy(ending, server.port);
    store = openStore(proxy.url);
  });
  beforeEach(() => {
    proxy.fault = () => null;
  });

  /** These faults happen to the requests of this method, one after the other; then none. */
  function faults(method: string, ...list: S3Fault[]): void {
    proxy.fault = (request) => (request.method === method ? (list.shift() ?? null) : null);
  }

  const gets = (): number => proxy.requests.filter((line) => line.startsWith('GET ')).length;

  async function put(key: LayerKey, bytes: Buffer): Promise<'stored' | 'exists'> {
    return store.put(key, chunks(bytes), bytes.length);
  }
  const content = async (key: LayerKey): Promise<Buffer> => Buffer.concat(await Array.fromAsync(await store.get(key)));

  test('stores a put whose answer was lost, and says so', async () => {
    const key = newKey();
    faults('PUT', { kind: 'lose-answer' });
    assert.equal(await put(key, pattern(10_000)), 'stored');
    assert.deepEqual(await content(key), pattern(10_000));
  });

  test('tells its own object from one that somebody else put in between, with the same bytes', async () => {
    const key = newKey();
    assert.equal(await put(key, pattern(10_000)), 'stored');
    faults('PUT', { kind: 'answer', status: 500, code: 'InternalError' });
    assert.equal(await put(key, pattern(10_000)), 'exists');
  });

  test('stores a put that the network sends twice', async () => {
    const key = newKey();
    faults('PUT', { kind: 'twice' });
    assert.equal(await put(key, pattern(10_000)), 'stored');
    assert.deepEqual(await content(key), pattern(10_000));
  });

  test('survives delays, server errors, throttling, silence and a wrong clock that pass', async () => {
    for (const fault of [
      { kind: 'delay', ms: 100 },
      { kind: 'answer', status: 500, code: 'InternalError' },
      { kind: 'answer', status: 503, code: 'SlowDown' },
      { kind: 'answer', status: 403, code: 'RequestTimeTooSkewed' },
      { kind: 'answer', status: 400, code: 'RequestTimeout' },
      { kind: 'answer', status: 409, code: 'ConditionalRequestConflict' },
      { kind: 'no-answer' },
    ] as const) {
      const key = newKey();
      faults('PUT', fault);
      assert.equal(await put(key, pattern(100)), 'stored', JSON.stringify(fault));
      faults('GET', fault);
      assert.deepEqual(await content(key), pattern(100), JSON.stringify(fault));
    }
  });

  test('refuses for good what another attempt does not cure, and is asked once', async () => {
    for (const [fault, code] of [
      [{ kind: 'answer', status: 400, code: 'InvalidArgument' }, 'layer-store-refused'],
      [{ kind: 'answer', status: 403, code: 'AccessDenied' }, 'put-denied'],
      [{ kind: 'answer', status: 404, code: 'NoSuchBucket' }, 'bucket-missing'],
      [{ kind: 'answer', status: 405, code: 'MethodNotAllowed' }, 'layer-store-refused'],
      [{ kind: 'answer', status: 411, code: 'MissingContentLength' }, 'layer-store-refused'],
      [{ kind: 'answer', status: 501, code: 'NotImplemented' }, 'layer-store-refused'],
    ] as const) {
      let asked = 0;
      // Without the condition it is tried once more, which some providers need.
      proxy.fault = ({ method, headers }) => {
        if (method === 'PUT' && headers['if-none-match'] !== undefined) asked += 1;
        return method === 'PUT' ? fault : null;
      };
      await assert.rejects(put(newKey(), pattern(100)), isFailure(code), fault.code);
      assert.equal(asked, 1, fault.code);
    }
  });

  test('that takes no uploads in parts says so of a large layer, and stores small ones', async () => {
    const patient = openStore(proxy.url, 20_000);
    const large = pattern(S3_PART_BYTES + 1);
    for (const part of ['POST ?uploads', 'PUT ?partNumber', 'POST ?uploadId']) {
      const [method = '', query = ''] = part.split(' ');
      proxy.fault = (request) =>
        request.method === method && request.url.includes(query)
          ? { kind: 'answer', status: 501, code: 'NotImplemented' }
          : null;
      await assert.rejects(patient.put(newKey(), chunks(large), large.length), isFailure('multipart-missing'), part);
      assert.equal(await put(newKey(), pattern(100)), 'stored');
    }
  });

  test('names the operation that it denies', async () => {
    const key = newKey();
    await put(key, pattern(10));
    const large = pattern(S3_PART_BYTES + 1);
    for (const [method, query, run, code] of [
      ['GET', 'GetObject', () => content(key), 'get-denied'],
      ['HEAD', '', () => store.head(key), 'head-denied'],
      ['PUT', 'PutObject', () => put(newKey(), pattern(10)), 'put-denied'],
      ['POST', '?uploads', () => store.put(newKey(), chunks(large), large.length), 'put-denied'],
      ['DELETE', 'DeleteObject', () => store.delete(key), 'delete-denied'],
      ['GET', 'list-type', () => Array.fromAsync(store.list('')), 'list-denied'],
      ['HEAD', '', () => store.now(), 'list-denied'],
    ] as const) {
      proxy.fault = (request) =>
        request.method === method && request.url.includes(query)
          ? { kind: 'answer', status: 403, code: 'AccessDenied' }
          : null;
      await assert.rejects(run(), isFailure(code), `${method} ${query}`);
    }
    proxy.fault = () => ({ kind: 'answer', status: 403, code: 'AllAccessDisabled' });
    await assert.rejects(store.delete(key), isFailure('access-denied'));
  });

  test('stores and serves where its answers name no length', async () => {
    const key = newKey();
    const bytes = pattern(3_000_000);
    let lost = 0;
    proxy.fault = ({ method }) => (method === 'PUT' && lost++ === 0 ? { kind: 'lose-answer' } : WITHOUT_LENGTH);
    assert.equal(await put(key, bytes), 'stored', 'its head has the mark of the put whose answer was lost');
    assert.equal((await store.head(key))?.sizeBytes, bytes.length);
    assert.equal(await store.head(newKey()), null);
    const before = gets();
    assert.deepEqual(await content(key), bytes);
    assert.equal(gets(), before + 1, 'the end of the answer is the end of the object');
    const ranged = await store.get(key, { start: 10, end: 1_000 });
    assert.deepEqual(Buffer.concat(await Array.fromAsync(ranged)), bytes.subarray(10, 1_000));
    faults('GET', { ...WITHOUT_LENGTH, afterBytes: 1_000_000 }, { ...WITHOUT_LENGTH, afterBytes: 500_000 });
    assert.deepEqual(await content(key), bytes);
  });

  test('ends a read of which nothing is left when its reader goes on, also where no length was named', async () => {
    const key = newKey();
    await put(key, pattern(1_000));
    faults('GET', WITHOUT_LENGTH);
    const read: Uint8Array[] = [];
    for await (const chunk of await store.get(key)) {
      read.push(chunk);
      // The connection is given back.
      await sleep(700);
    }
    assert.deepEqual(Buffer.concat(read), pattern(1_000));
    // The connection breaks after the last byte, and before the end of the answer.
    const before = gets();
    faults('GET', { ...WITHOUT_LENGTH, afterBytes: 1_000 });
    assert.deepEqual(await content(key), pattern(1_000));
    assert.equal(gets(), before + 2, 'it asks whether anything is left');
  });

  test('names the region that it is in, where it says so', async () => {
    const words = async (fault: S3Fault): Promise<string> => {
      faults('PUT', fault);
      const failed: unknown = await put(newKey(), pattern(100)).catch((error: unknown) => error);
      assert.ok(isFailure('wrong-region')(failed));
      return failed instanceof Error ? failed.message : '';
    };
    for (const [status, code] of [
      [301, 'PermanentRedirect'],
      [307, 'TemporaryRedirect'],
      [400, 'AuthorizationHeaderMalformed'],
    ] as const) {
      const headers = { 'x-amz-bucket-region': 'eu-west-1' };
      const named = await words({ kind: 'answer', status, code, headers });
      assert.match(named, /PutObject with \d+ \(\w+\), since it is in the region eu-west-1: /);
      assert.doesNotMatch(await words({ kind: 'answer', status, code }), /since/);
      const hostile = { 'x-amz-bucket-region': 'evil.test/ <b>' };
      assert.doesNotMatch(await words({ kind: 'answer', status, code, headers: hostile }), /since|evil/);
    }
  });

  test('stores what no condition is taken for, whole and in parts, and looks first whether the key is free', async () => {
    const refusing = openStore(proxy.url);
    proxy.fault = ({ headers }) =>
      headers['if-none-match'] === undefined ? null : { kind: 'answer', status: 501, code: 'NotImplemented' };
    for (const bytes of [pattern(1_000), pattern(S3_PART_BYTES + 1)]) {
      const key = newKey();
      assert.equal(await refusing.put(key, chunks(bytes), bytes.length), 'stored');
      const other = Buffer.alloc(bytes.length, 7);
      assert.equal(await refusing.put(key, chunks(other), other.length), 'exists');
      assert.deepEqual(await content(key), bytes);
    }
  });

  test('is asked with the condition still when it refuses for good what has none', async () => {
    const refusing = openStore(proxy.url);
    const conditions: unknown[] = [];
    proxy.fault = ({ url, headers }) => {
      if (!url.includes('partNumber')) conditions.push(headers['if-none-match']);
      return url.includes('partNumber') ? { kind: 'answer', status: 501, code: 'NotImplemented' } : null;
    };
    const bytes = pattern(S3_PART_BYTES + 1);
    await assert.rejects(refusing.put(newKey(), chunks(bytes), bytes.length), /UploadPart with 501/);
    conditions.length = 0;
    assert.equal(await refusing.put(newKey(), chunks(pattern(10)), 10), 'stored');
    assert.deepEqual(conditions, ['*']);
  });

  test('gets no checksums beside its signed requests, whole and in parts, unless it wants them', async () => {
    const plain = openStore(proxy.url);
    const sums: string[] = [];
    proxy.fault = ({ headers }) => {
      for (const name in headers) if (/checksum|content-md5|trailer/.test(name)) sums.push(name);
      assert.match(headers['x-amz-content-sha256']?.toString() ?? '', /^[0-9a-f]{64}$/);
      return null;
    };
    const bytes = pattern(S3_PART_BYTES + 1);
    assert.equal(await plain.put(newKey(), chunks(bytes), bytes.length), 'stored');
    assert.equal(await plain.put(newKey(), chunks(pattern(10)), 10), 'stored');
    assert.deepEqual(sums, []);

    for (const sizeBytes of [10, S3_PART_BYTES + 1]) {
      const locked = openStore(proxy.url);
      const refused: string[] = [];
      proxy.fault = ({ method, url, headers }) => {
        const isSum = method === 'PUT' && headers['content-md5'] === undefined;
        if (!isSum) return null;
        refused.push(url);
        return { kind: 'answer', status: 400, code: 'InvalidRequest', message: OBJECT_LOCK };
      };
      const key = newKey();
      assert.equal(await locked.put(key, chunks(pattern(sizeBytes)), sizeBytes), 'stored');
      assert.equal(refused.length, 1);
      assert.deepEqual(await content(key), pattern(sizeBytes));
    }
  });

  test('is not asked again for what it refuses for good', async () => {
    for (const [status, code] of [
      [400, 'InvalidArgument'],
      [403, 'AccessDenied'],
      [404, 'NoSuchThing'],
      [405, 'MethodNotAllowed'],
      [411, 'MissingContentLength'],
      [501, 'NotImplemented'],
    ] as const) {
      let asked = 0;
      proxy.fault = ({ method }) => {
        if (method !== 'DELETE') return null;
        asked += 1;
        return { kind: 'answer', status, code };
      };
      await assert.rejects(store.delete(newKey()), new RegExp(`DeleteObject with ${status} \\(${code}\\)`));
      assert.equal(asked, 1, code);
    }
  });

  test('reads on where connections break or stall in the middle of a layer', async () => {
    const key = newKey();
    const bytes = pattern(3_000_000);
    await put(key, bytes);
    faults(
      'GET',
      { kind: 'cut', afterBytes: 1_000_000 },
      { kind: 'stall', afterBytes: 500_000 },
      { kind: 'cut', afterBytes: 1 },
    );
    assert.deepEqual(await content(key), bytes);
    const ranged = await store.get(key, { start: 10, end: 2_000_000 });
    faults('GET', { kind: 'cut', afterBytes: 1_000_000 });
    assert.deepEqual(Buffer.concat(await Array.fromAsync(ranged)), bytes.subarray(10, 2_000_000));
  });

  test('gives up a read after as many broken connections as the limit says, and not before', async () => {
    const key = newKey();
    const bytes = pattern(100_000);
    await put(key, bytes);
    const cut: S3Fault = { kind: 'cut', afterBytes: 1_000 };
    faults('GET', ...Array<S3Fault>(S3_READ_RESUMES_MAX).fill(cut));
    assert.deepEqual(await content(key), bytes);
    faults('GET', ...Array<S3Fault>(S3_READ_RESUMES_MAX + 1).fill(cut));
    await rejectsWith('unreachable', /The connection to the bucket failed at GetObject/, () => content(key));
  });

  test('never mixes the bytes of two objects', async () => {
    const key = newKey();
    await put(key, pattern(3_000_000));
    faults('GET', { kind: 'stall', afterBytes: 1_000_000 });
    const reading = await store.get(key);
    const direct = openStore(server.url);
    await direct.delete(key);
    await direct.put(key, chunks(Buffer.alloc(3_000_000, 7)), 3_000_000);
    await rejectsWith('layer-store-unavailable', /replaced while it was read/, () => Array.fromAsync(reading));
  });

  test('never mixes them either where the bucket ignores the condition of a read', async () => {
    const key = newKey();
    const bytes = pattern(3_000_000);
    await put(key, bytes);
    let asked = 0;
    proxy.fault = ({ method, headers }) => {
      if (method !== 'GET') return null;
      asked += 1;
      if (asked === 1) return { kind: 'cut', afterBytes: 1_000_000 };
      const [, start] = /^bytes=(\d+)-/.exec(headers.range ?? '') ?? [];
      const range = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
      const body = Buffer.alloc(bytes.length - Number(start), 7);
      // gofakes3 1.2.0 answers a read so whose If-Match names another ETag.
      return {
        ...{ kind: 'answer', status: 206, code: null, body },
        headers: { etag: '"0123456789abcdef0123456789abcdef"', 'content-range': range },
      };
    };
    await rejectsWith('layer-store-unavailable', /replaced while it was read/, () => content(key));
  });

  test('goes on for a reader that paused, whose connection was given back', async () => {
    const key = newKey();
    const bytes = pattern(3_000_000);
    await put(key, bytes);
    const read: Uint8Array[] = [];
    const late = await store.get(key);
    await sleep(700);
    for await (const chunk of late) {
      if (read.push(chunk) === 2) await sleep(700);
    }
    assert.deepEqual(Buffer.concat(read), bytes);
  });

  test('names each fault that stays, and no credential', async () => {
    const key = newKey();
    await put(key, pattern(10));
    for (const [fault, code, says] of [
      [{ kind: 'answer', status: 500, code: 'InternalError' }, 'layer-store-unavailable', /with 500 \(InternalError\)/],
      [{ kind: 'answer', status: 503, code: 'SlowDown' }, 'throttled', /with 503 \(SlowDown\)/],
      [{ kind: 'answer', status: 403, code: 'RequestTimeTooSkewed' }, 'clock-skewed', /\(RequestTimeTooSkewed\)/],
      [{ kind: 'answer', status: 403, code: 'AccessDenied' }, 'get-denied', /with 403 \(AccessDenied\)/],
      [{ kind: 'answer', status: 404, code: 'NoSuchBucket' }, 'bucket-missing', /with 404 \(NoSuchBucket\)/],
      [{ kind: 'answer', status: 301, code: 'PermanentRedirect' }, 'wrong-region', /\(PermanentRedirect\)/],
      [{ kind: 'no-answer' }, 'timed-out', /The bucket took too long to answer GetObject/],
      [{ kind: 'lose-answer' }, 'unreachable', /The connection to the bucket failed at GetObject \(ECONNRESET\)/],
    ] as const) {
      proxy.fault = () => fault;
      await rejectsWith(code, says, () => content(key));
    }
  });

  test('takes a bounded number of connections while it is dead, and no other bucket waits for it', async (context) => {
    const key = newKey();
    await put(key, pattern(10));
    const silent = await startS3Proxy(context, server.port);
    silent.fault = () => ({ kind: 'no-answer' });
    // Agents do not count the connections that they are still opening.
    const dead = openStore(silent.url, 900, { http: new HttpAgent(), https: new HttpsAgent() });
    const reads = Array.from({ length: 3 * S3_CONNECTIONS_MAX }, () => dead.get(key).catch((error: unknown) => error));
    await sleep(500);
    // Later the ends of the first connections may reach the server after the next ones.
    const connections = silent.connectionsMax();
    assert.ok(connections > 0 && connections <= S3_CONNECTIONS_MAX, `${connections} connections`);
    const other = await openStore(server.url).get(key);
    assert.deepEqual(Buffer.concat(await Array.fromAsync(other)), pattern(10));
    for (const ended of await Promise.all(reads)) assert.ok(ended instanceof LayerStoreError);
  });

  describe('in parts', () => {
    beforeAll(() => {
      store = openStore(proxy.url, 20_000);
    });

    test('sends a layer of the bound in one request, and one byte more in parts', async () => {
      const [one, two] = [newKey(), newKey()];
      const bytes = pattern(S3_PART_BYTES + 1);
      let from = proxy.requests.length;
      assert.equal(await put(one, bytes.subarray(1)), 'stored');
      assert.deepEqual(proxy.requests.slice(from), ['PUT x-id=PutObject']);
      from = proxy.requests.length;
      assert.equal(await put(two, bytes), 'stored');
      assert.deepEqual(
        proxy.requests.slice(from).map((line) => line.replace(/ .*/, '')),
        ['POST', 'PUT', 'PUT', 'POST'],
      );
      assert.ok((await content(two)).equals(bytes));
      assert.equal(await put(two, Buffer.alloc(S3_PART_BYTES + 1)), 'exists');
      assert.ok((await content(two)).equals(bytes));
    });

    test('survives lost, repeated and refused requests, the completion among them', async () => {
      const bytes = pattern(S3_PART_BYTES + 1_000);
      for (const [method, fault] of [
        ['PUT', { kind: 'answer', status: 503, code: 'SlowDown' }],
        ['PUT', { kind: 'lose-answer' }],
        ['PUT', { kind: 'twice' }],
        ['complete', { kind: 'lose-answer' }],
        ['complete', { kind: 'twice' }],
      ] as const) {
        const key = newKey();
        let left = 1;
        proxy.fault = (request) => {
          const isMeant =
            method === 'PUT'
              ? request.method === 'PUT'
              : /^POST.*uploadId=/.test(`POST ${request.url}`) && request.method === 'POST';
          return isMeant && left-- > 0 ? fault : null;
        };
        assert.equal(await put(key, bytes), 'stored', `${method} ${fault.kind}`);
        assert.ok((await content(key)).equals(bytes));
      }
    });

    /** Answers the first completions with a conflict, and counts what is begun and completed. */
    function conflicting(conflicts: number): { readonly begun: number; readonly completed: number } {
      const counts = { begun: 0, completed: 0 };
      proxy.fault = ({ method, url }) => {
        if (method !== 'POST') return null;
        if (!url.includes('uploadId=')) counts.begun += 1;
        else counts.completed += 1;
        const isConflict = url.includes('uploadId=') && counts.completed <= conflicts;
        return isConflict ? { kind: 'answer', status: 409, code: 'ConditionalRequestConflict' } : null;
      };
      return counts;
    }

    test('begins again where its completion meets another write of the key, as often as three times', async () => {
      const bytes = pattern(S3_PART_BYTES + 1_000);
      const body = readAgain(() => chunks(bytes));
      const key = newKey();
      const passing = conflicting(2);
      assert.equal(await store.put(key, body, bytes.length), 'stored');
      assert.deepEqual(passing, { begun: 3, completed: 3 });
      assert.ok((await content(key)).equals(bytes));
      const staying = conflicting(100);
      const other = store.put(newKey(), body, bytes.length);
      await rejectsWith('layer-store-unavailable', /CompleteMultipartUpload with 409/, () => other);
      assert.deepEqual(staying, { begun: 3, completed: 3 });
      const once = conflicting(100);
      await rejectsWith('layer-store-unavailable', /CompleteMultipartUpload with 409/, () => put(newKey(), bytes));
      assert.deepEqual(once, { begun: 1, completed: 1 }, 'this body can be read once only');
      assert.deepEqual(await uploads(), []);
    });

    test('does not begin again where the completion whose answer was lost is the other write', async () => {
      const bytes = pattern(S3_PART_BYTES + 1_000);
      const key = newKey();
      const answers: S3Fault[] = [
        { kind: 'lose-answer' },
        { kind: 'answer', status: 409, code: 'ConditionalRequestConflict' },
      ];
      let begun = 0;
      proxy.fault = ({ method, url }) => {
        if (method !== 'POST') return null;
        if (url.includes('uploadId=')) return answers.shift() ?? null;
        begun += 1;
        return null;
      };
      assert.equal(
        await store.put(
          key,
          readAgain(() => chunks(bytes)),
          bytes.length,
        ),
        'stored',
      );
      assert.equal(begun, 1);
      assert.ok((await content(key)).equals(bytes));
    });

    test('leaves no object and no parts of a body that fails, and rejects with its error', async () => {
      const key = newKey();
      const failure = new Error('the disk it came from broke');
      async function* failing() {
        yield pattern(S3_PART_BYTES + 100);
        throw failure;
      }
      await assert.rejects(store.put(key, failing(), 3 * S3_PART_BYTES), failure);
      await assert.rejects(
        put(key, pattern(0)).then(() => store.put(newKey(), chunks(pattern(S3_PART_BYTES + 2)), S3_PART_BYTES + 1)),
        /longer/,
      );
      assert.deepEqual(await uploads(), []);
    });

    test('lets a bucket that falls silent hold a put no longer for its abort, which is made all the same', async () => {
      const brief = openStore(proxy.url, 500);
      let isSilent = true;
      proxy.fault = ({ method }) => (isSilent && method !== 'POST' ? { kind: 'no-answer' } : null);
      const bytes = pattern(S3_PART_BYTES + 1);
      await rejectsWith('timed-out', /UploadPart/, () => brief.put(newKey(), chunks(bytes), bytes.length));
      assert.equal((await uploads()).length, 1, 'the put did not wait for its abort');
      isSilent = false;
      for (const deadline = Date.now() + 10_000; (await uploads()).length > 0; await sleep(50)) {
        assert.ok(Date.now() < deadline, 'no abort followed');
      }
    });

    test('removes parts that a dead process left a day ago, and no younger ones', async () => {
      proxy.fault = ({ method }) =>
        method === 'PUT' || method === 'DELETE' ? { kind: 'answer', status: 403, code: 'AccessDenied' } : null;
      for (let left = 0; left < 2; left += 1) await assert.rejects(put(newKey(), pattern(S3_PART_BYTES + 1)));
      proxy.fault = () => null;
      const [old = '', young = ''] = await uploads();
      assert.notEqual(young, '');
      const dayAgo = new Date(Date.now() - 25 * 60 * 60_000);
      await utimes(path.join(server.folder, old), dayAgo, dayAgo);
      await store.abortOldUploads();
      assert.deepEqual(await uploads(), [young]);
    });
  });

  /** Where versitygw keeps uploads that are not completed: a folder for each. */
  async function uploads(): Promise<readonly string[]> {
    const files = await readdir(server.folder, { recursive: true });
    return files.filter((name) => /^\.sgwtmp\/multipart\/[^/]+\/[^/]+$/.test(name));
  }

  async function rejectsWith(code: string, says: RegExp, run: () => Promise<unknown>): Promise<void> {
    await assert.rejects(run(), (error) => {
      assert.ok(error instanceof LayerStoreError);
      assert.equal(error.code, code, error.message);
      assert.match(error.message, says);
      assert.equal(error.cause, undefined);
      const all = inspect(error, { depth: 10, showHidden: true });
      assert.doesNotMatch(
        all,
        new RegExp(`${server.accessKeyId}|${server.secretAccessKey}|authorization|Signature=`, 'i'),
      );
      return true;
    });
  }
});

function newKey(): LayerKey {
  return layerKey(`repositories/${randomUUID()}.tar`);
}

function pattern(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let index = 0; index < length; index += 1) bytes[index] = (index * 31 + (index >> 8)) & 0xff;
  return bytes;
}

async function* chunks(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}

function isFailure(code: LayerStoreErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof LayerStoreError && error.code === code;
}
