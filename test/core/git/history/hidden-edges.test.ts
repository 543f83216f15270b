/** A fetch's body without some commits of the client's shallow boundary, and otherwise unchanged. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { withoutEdges } from '../../../../core/git/history/hidden-edges.ts';
import { parseUploadPackRequest } from '../../../../core/git/wire/upload-pack-request.ts';
import { DELIMITER, FLUSH, packet } from '../../../support/git-wire.ts';
import { oid } from '../../../support/repository-history.ts';

const [A, B, C] = [oid('a'), oid('b'), oid('c')];
const UNKNOWN = 'f'.repeat(40);
const V2 = Buffer.concat([
  ...[packet('command=fetch\n'), packet('agent=git/2\n'), DELIMITER, packet('thin-pack'), packet(`want ${A}\n`)],
  ...[packet(`shallow ${B}\n`), packet(`shallow ${C}`), packet('deepen 2147483647\n'), packet(`have ${B}\n`), FLUSH],
]);
const V0 = Buffer.concat([
  packet(`want ${A} side-band-64k\n`),
  ...[packet(`want ${B}\n`), packet(`shallow ${B}\n`), packet('deepen 2147483647')],
  ...[FLUSH, packet(`have ${C}\n`), packet(`have ${A}\n`), packet('done\n')],
]);

describe('A fetch without a boundary commit', () => {
  test('names no object that the answer could rely on, and keeps every other byte', () => {
    for (const body of [V2, V0]) {
      const expected = body
        .toString()
        .replaceAll(`0035shallow ${B}\n`, '')
        .replaceAll(/have [0-9a-f]{40}/g, `have ${UNKNOWN}`);
      assert.equal(Buffer.from(withoutEdges(body, new Set([B]))).toString(), expected);
    }
  });

  test('is parsed as the same request of a client that has only an unknown object', () => {
    for (const [body, version] of [
      [V2, 2],
      [V0, 0],
    ] as const) {
      const before = parseUploadPackRequest(body, version);
      const after = parseUploadPackRequest(withoutEdges(body, new Set([B])), version);
      assert.ok('kind' in before && before.kind === 'fetch' && 'kind' in after && after.kind === 'fetch');
      const shallow = before.request.shallow.filter((id) => id !== B);
      assert.deepEqual(after.request, { ...before.request, shallow, haves: [UNKNOWN] });
    }
  });

  test('is the same body if no commit is hidden', () => {
    assert.equal(withoutEdges(V2, new Set()), V2);
  });
});
