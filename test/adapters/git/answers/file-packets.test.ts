/** A file in packets: every byte of it, behind headers that git understands, in buffers that one reader has alone. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { type FilePacketsOptions, filePackets } from '../../../../adapters/git/answers/file-packets.ts';
import { sideBandPackets } from '../../../../core/git/wire/side-band.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const PAYLOAD = 65_515;

async function fileOf(context: TestContext, bytes: Buffer): Promise<FileHandle> {
  const name = path.join(await tempDir(context), 'pack');
  writeFileSync(name, bytes);
  const file = await open(name, 'r');
  cleanUp(context, () => file.close());
  return file;
}

const partsOf = (file: FileHandle, end: number, options: Partial<FilePacketsOptions> = {}) =>
  filePackets(file, { from: 0, end, mayOverwrite: false, onRead: null, ...options });

async function copied(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const part of parts) copies.push(Buffer.from(part));
  return Buffer.concat(copies);
}

describe('A file in packets', () => {
  for (const sizeBytes of [1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 4 * PAYLOAD, 4 * PAYLOAD + 1, 9 * PAYLOAD + 7]) {
    test(`of ${sizeBytes} bytes is the same as its bytes on a side band`, async (context) => {
      const bytes = randomBytes(sizeBytes);
      const file = await fileOf(context, bytes);
      const expected = Buffer.from(sideBandPackets(1, bytes));
      for (const mayOverwrite of [true, false]) {
        assert.ok((await copied(partsOf(file, sizeBytes, { mayOverwrite }))).equals(expected));
      }
      const read: Buffer[] = [];
      const onRead = (payload: Uint8Array): void => void read.push(Buffer.from(payload));
      await copied(partsOf(file, sizeBytes, { mayOverwrite: true, onRead }));
      assert.ok(Buffer.concat(read).equals(bytes));
    });
  }

  test('begins and ends where it is told to', async (context) => {
    const bytes = randomBytes(5 * PAYLOAD);
    const file = await fileOf(context, bytes);
    const answer = await copied(
      filePackets(file, { from: 12, end: 4 * PAYLOAD + 99, mayOverwrite: true, onRead: null }),
    );
    assert.ok(answer.equals(Buffer.from(sideBandPackets(1, bytes.subarray(12, 4 * PAYLOAD + 99)))));
  });

  test('has right headers when the system reads less than it was asked for', async (context) => {
    const bytes = randomBytes(6 * PAYLOAD);
    const file = await fileOf(context, bytes);
    let calls = 0;
    const readv = async (views: readonly Buffer[], position: number) => {
      calls += 1;
      return file.readv(calls % 2 === 0 ? views : views.slice(0, 1).map((view) => view.subarray(0, 1_000)), position);
    };
    const short = new Proxy(file, { get: (target, key) => (key === 'readv' ? readv : Reflect.get(target, key)) });
    const answer = await copied(partsOf(short, bytes.length, { mayOverwrite: true }));
    const payloads: Buffer[] = [];
    for (let at = 0; at < answer.length; ) {
      const length = Number.parseInt(answer.toString('latin1', at, at + 4), 16);
      assert.equal(answer[at + 4], 1);
      payloads.push(answer.subarray(at + 5, at + length));
      at += length;
    }
    assert.ok(calls > 2);
    assert.ok(Buffer.concat(payloads).equals(bytes));
  });

  test('uses one buffer for a reader that is done with each part, and another for each other reader', async (context) => {
    const sizeBytes = 9 * PAYLOAD;
    const file = await fileOf(context, randomBytes(sizeBytes));
    const buffersOf = async (mayOverwrite: boolean): Promise<Set<ArrayBufferLike>> => {
      const buffers = new Set<ArrayBufferLike>();
      for await (const part of partsOf(file, sizeBytes, { mayOverwrite })) {
        assert.ok(part.buffer.byteLength <= 256 * 1024);
        buffers.add(part.buffer);
      }
      return buffers;
    };
    const [one, two, kept] = [await buffersOf(true), await buffersOf(true), await buffersOf(false)];
    assert.deepEqual([one.size, two.size, kept.size], [1, 1, 3]);
    assert.equal(new Set([...one, ...two, ...kept]).size, 5);
  });

  test('keeps all parts as they were for a reader that holds them', async (context) => {
    const bytes = randomBytes(9 * PAYLOAD);
    const file = await fileOf(context, bytes);
    const parts = await Array.fromAsync(partsOf(file, bytes.length));
    assert.ok(Buffer.concat(parts).equals(Buffer.from(sideBandPackets(1, bytes))));
  });

  test('breaks where the file is shorter than it should be', async (context) => {
    const file = await fileOf(context, randomBytes(PAYLOAD));
    await assert.rejects(copied(partsOf(file, PAYLOAD + 1, { mayOverwrite: true })), /ended at byte 65515/);
  });
});
