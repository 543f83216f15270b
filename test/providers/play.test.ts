/** A provider as the proxy plays it: what it answers to each request, and what is noted of the facts behind it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import type { S3Request } from '../support/s3-proxy.ts';
import { tempDir } from '../support/temp-dir.ts';
import { play } from './play.ts';
import { type Facts, PROVIDERS } from './rows.ts';

const LAYER = '/layers/own/repositories/1/layers/2.tar';
const CONDITION = { 'if-none-match': '*' };

function put(url: string, text: string, headers: S3Request['headers'] = {}): S3Request {
  const body = Buffer.from(text);
  const sha256 = createHash('sha256').update(body).digest('hex');
  return { method: 'PUT', url, headers: { 'x-amz-content-sha256': sha256, ...headers }, body };
}

function ask(method: string, url: string, headers: S3Request['headers'] = {}): S3Request {
  return { method, url, headers, body: Buffer.alloc(0) };
}

/** A provider of which no source tells anything but these facts. */
async function newPlay(context: TestContext, facts: Partial<Facts>) {
  const nothing = { address: null, objects: null, parts: null, condition: null, race: null };
  const folder = await tempDir(context);
  const all = { ...nothing, completion: null, hashes: null, checksums: null, ...facts };
  const played = play({ name: 'Some', facts: all }, { bucket: 'layers', folder });
  const file = path.join(folder, LAYER.slice('/layers/'.length));
  await mkdir(path.dirname(file), { recursive: true });
  return { played, file, answer: (request: S3Request) => played.fault(request) };
}

const source = 'https://example.org';
const refused = (status: number, code: string) => ({ status, code, message: '' });

test('a fact without a source lets the request pass, and is noted unless the request is of a manifest', async (context) => {
  const { played, answer } = await newPlay(context, {});
  const seen = played.watch();
  assert.equal(answer(put(LAYER.replace('layers/2.tar', 'manifest/1.json'), 'x', CONDITION)), null);
  assert.deepEqual([...seen.unknown], []);
  assert.equal(answer(put(LAYER, 'x', CONDITION)), null);
  assert.deepEqual([...seen.unknown], ['address', 'objects', 'condition']);
  assert.equal(answer(put(LAYER, 'x', { 'x-amz-checksum-crc32': 'AAAAAA==' })), null);
  assert.equal(answer(put(LAYER, 'x', { 'x-amz-content-sha256': 'other' })), null);
  assert.equal(answer(ask('POST', `${LAYER}?uploadId=1`, CONDITION)), null);
  const names = ['address', 'objects', 'condition', 'checksums', 'hashes', 'parts', 'completion'];
  assert.deepEqual([...seen.unknown], names);
  assert.deepEqual([...played.watch().unknown], []);
});

test('an address or a checksum that it refuses is noted as what the service cannot do without', async (context) => {
  const [path403, chunks400] = [refused(403, 'OnlyHosts'), refused(400, 'NoChunks')];
  const hosts = await newPlay(context, { address: { is: path403, source } });
  const seen = hosts.played.watch();
  assert.deepEqual(hosts.answer(ask('GET', '/layers?list-type=2')), { kind: 'answer', ...path403 });
  assert.equal(seen.refused, path403);
  assert.equal(hosts.answer(ask('GET', '/?list-type=2', { host: 'layers.example.org' })), null);
  const { answer } = await newPlay(context, { checksums: { is: chunks400, source } });
  assert.deepEqual(answer(put(LAYER, 'x', { 'content-encoding': 'aws-chunked' })), { kind: 'answer', ...chunks400 });
});

test('a condition is ignored or refused as the provider does it', async (context) => {
  const ignoring = await newPlay(context, { condition: { is: 'ignored', source } });
  await writeFile(ignoring.file, 'before');
  const fault = ignoring.answer(put(LAYER, 'x', CONDITION));
  assert.ok(fault?.kind === 'after');
  await fault.work();
  await assert.rejects(readFile(ignoring.file), /ENOENT/);
  const no501 = refused(501, 'NotImplemented');
  const refusing = await newPlay(context, { condition: { is: no501, source } });
  const seen = refusing.played.watch();
  assert.deepEqual(refusing.answer(put(LAYER, 'x', CONDITION)), { kind: 'answer', ...no501 });
  assert.deepEqual([seen.refused, seen.isUnconditional], [null, false]);
  assert.equal(refusing.answer(put(LAYER, 'x')), null);
  assert.ok(seen.isUnconditional);
});

test('of racing puts the later ones meet a conflict, or succeed too, until the key is there', async (context) => {
  const conflict = refused(409, 'ConditionalRequestConflict');
  const conflicting = await newPlay(context, { race: { is: conflict, source } });
  assert.equal(conflicting.answer(put(LAYER, '1', CONDITION)), null);
  assert.deepEqual(conflicting.answer(put(LAYER, '2', CONDITION)), { kind: 'answer', ...conflict });
  await writeFile(conflicting.file, '1');
  assert.equal(conflicting.answer(put(LAYER, '2', CONDITION)), null);
  const letting = await newPlay(context, { race: { is: 'several win', source } });
  assert.equal(letting.answer(put(LAYER, '1', CONDITION))?.kind, 'after');
  assert.deepEqual(letting.answer(put(LAYER, '2', CONDITION)), { kind: 'answer', status: 200, code: null });
  const unknown = await newPlay(context, {});
  const seen = unknown.played.watch();
  unknown.answer(put(LAYER, '1', CONDITION));
  unknown.answer(ask('HEAD', LAYER));
  unknown.answer(put(LAYER, '2', CONDITION));
  assert.ok(!seen.unknown.has('race'), 'one came after the other');
  unknown.answer(put(LAYER, '3', CONDITION));
  assert.ok(seen.unknown.has('race'));
});

test('a body of another hash is stored, or refused, as the provider does it', async (context) => {
  const other = put(LAYER, 'x', { 'x-amz-content-sha256': 'other' });
  const taking = await newPlay(context, { hashes: { is: 'taken', source } });
  assert.deepEqual(taking.answer(other), { kind: 'answer', status: 200, code: null });
  assert.equal(await readFile(taking.file, 'utf8'), 'x');
  const no400 = refused(400, 'InvalidDigest');
  const { answer } = await newPlay(context, { hashes: { is: no400, source } });
  assert.deepEqual(answer(other), { kind: 'answer', ...no400 });
});

test('R2 refuses an upload whose parts before the last differ, and another provider takes it', async (context) => {
  const parts = PROVIDERS.find(({ name }) => name === 'Cloudflare R2')?.facts.parts ?? null;
  const { answer } = await newPlay(context, { parts });
  const part = (upload: string, number: number, text: string): void => {
    assert.equal(answer(put(`${LAYER}?partNumber=${number}&uploadId=${upload}`, text)), null);
  };
  for (const [number, text] of [...['aa', 'aa', 'a'].entries()]) part('equal', number, text);
  assert.equal(answer(ask('POST', `${LAYER}?uploadId=equal`)), null);
  for (const [number, text] of [...['aa', 'a', 'a'].entries()]) part('unequal', number, text);
  const fault = answer(ask('POST', `${LAYER}?uploadId=unequal`));
  assert.ok(fault?.kind === 'answer' && fault.code === 'InvalidPart');
  const any = await newPlay(context, { parts: { is: 'of any size', source } });
  for (const text of ['aa', 'a', 'a']) any.answer(put(`${LAYER}?partNumber=1&uploadId=1`, text));
  assert.equal(any.answer(ask('POST', `${LAYER}?uploadId=1`)), null);
});

test('an object that is read after it was stored is noted as read back', async (context) => {
  const { played, answer } = await newPlay(context, {});
  const seen = played.watch();
  answer(ask('GET', LAYER));
  assert.ok(!seen.isReadBack);
  answer(put(LAYER, 'x', CONDITION));
  answer(ask('GET', LAYER));
  assert.ok(seen.isReadBack);
});
