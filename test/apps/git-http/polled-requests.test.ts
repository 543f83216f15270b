import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  createPolledRequests,
  POLLED_REQUEST_BYTES_MAX,
  POLLED_REQUESTS_BYTES_MAX,
} from '../../../apps/git-http/polled-requests.ts';
import { dataPacket } from '../../../core/git/wire/pkt-line.ts';
import { parseUploadPackRequest } from '../../../core/git/wire/upload-pack-request.ts';

const noTurn = async (): Promise<void> => undefined;

function lsRefs(...lines: string[]): Buffer {
  const packets = lines.map((line) => dataPacket(line));
  return Buffer.concat([dataPacket('command=ls-refs\n'), Buffer.from('0001'), ...packets, Buffer.from('0000')]);
}

describe('A request of refs that comes again', () => {
  test('is read as it was read first, immediately', async () => {
    const requests = createPolledRequests();
    const bodies = [
      lsRefs(),
      lsRefs('peel\n', 'symrefs\n', 'ref-prefix refs/heads/\n'),
      lsRefs('peel', 'symrefs', 'ref-prefix refs/tags/'),
      lsRefs('ref-prefix refs/heads/ü'),
      lsRefs('ref-prefix refs/heads/Ã¼'),
    ];
    for (const body of [...bodies, ...bodies]) {
      const expected = await parseUploadPackRequest(body, 2, noTurn);
      assert.ok('kind' in expected && expected.kind === 'ls-refs');
      assert.deepEqual(await requests.parse(Buffer.from(body), 2, noTurn), expected);
    }
    for (const body of bodies) assert.equal(requests.parse(body, 2, noTurn) instanceof Promise, false);
  });

  test('in another version of the protocol, or with anything behind it, is refused as ever', async () => {
    const requests = createPolledRequests();
    const body = lsRefs('peel');
    await requests.parse(body, 2, noTurn);
    for (const version of [0, 1] as const) {
      assert.deepEqual(
        await requests.parse(body, version, noTurn),
        await parseUploadPackRequest(body, version, noTurn),
      );
    }
    const longer = await requests.parse(Buffer.concat([body, body]), 2, noTurn);
    assert.ok('refused' in longer && longer.refused === 'request-trailing-bytes');
  });

  test('is not kept if it is long, or one of very many', async () => {
    const requests = createPolledRequests();
    const long = lsRefs(`ref-prefix ${'x'.repeat(POLLED_REQUEST_BYTES_MAX)}`);
    await requests.parse(long, 2, noTurn);
    assert.ok(requests.parse(long, 2, noTurn) instanceof Promise);
    const first = lsRefs('ref-prefix first');
    await requests.parse(first, 2, noTurn);
    assert.equal(requests.parse(first, 2, noTurn) instanceof Promise, false);
    for (let n = 0; n < POLLED_REQUESTS_BYTES_MAX / 1_000; n += 1) {
      await requests.parse(lsRefs(`ref-prefix refs/${'x'.repeat(100)}/${n}`), 2, noTurn);
    }
    assert.ok(requests.parse(first, 2, noTurn) instanceof Promise);
  });
});
