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

const NO_TURNS = async (): Promise<void> => undefined;

describe('A fetch without a boundary commit', () => {
  test('names no object that the answer could rely on, and keeps every other byte', async () => {
    for (const body of [V2, V0]) {
      const expected = body
        .toString()
        .replaceAll(`0035shallow ${B}\n`, '')
        .replaceAll(/have [0-9a-f]{40}/g, `have ${UNKNOWN}`);
      assert.equal(Buffer.from(await withoutEdges(body, new Set([B]), NO_TURNS)).toString(), expected);
    }
  });

  test('is parsed as the same request of a client that has only an unknown object', async () => {
    for (const [body, version] of [
      [V2, 2],
      [V0, 0],
    ] as const) {
      const before = await parseUploadPackRequest(body, version, NO_TURNS);
      const after = await parseUploadPackRequest(await withoutEdges(body, new Set([B]), NO_TURNS), version, NO_TURNS);
      assert.ok('kind' in before && before.kind === 'fetch' && 'kind' in after && after.kind === 'fetch');
      const shallow = before.request.shallow.filter((id) => id !== B);
      assert.deepEqual(after.request, { ...before.request, shallow });
    }
  });

  test('is the same body if no commit is hidden', async () => {
    assert.equal(await withoutEdges(V2, new Set(), NO_TURNS), V2);
  });
});
