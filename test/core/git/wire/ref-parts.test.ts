/** Answers about refs in pieces, which clients may read slowly. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { receivePackAdvertisement } from '../../../../core/git/wire/advertisement.ts';
import { lsRefsAnswer } from '../../../../core/git/wire/ls-refs.ts';
import {
  type AdvertisedRun,
  type KeptRuns,
  piecesOf,
  type RefPart,
  wholeAnswer,
} from '../../../../core/git/wire/ref-parts.ts';
import { objectId } from '../../../../core/kernel/ids.ts';

const REFS_A_RUN = 512;
const PIECE_BYTES_MAX = 128 * 1024;

function runsOf(count: number, nameLength: number, runs: number): readonly AdvertisedRun[] {
  const id = objectId('1'.repeat(40));
  return Array.from({ length: runs }, (_, run) =>
    Array.from({ length: count }, (__, ref) => {
      const name = `refs/heads/${String(run).padStart(4, '0')}-${String(ref).padStart(6, '0')}`;
      return { name: name.padEnd(nameLength, 'x'), id, peeled: null };
    }),
  );
}

function keptRuns(): KeptRuns & { readonly bytes: Map<AdvertisedRun, Uint8Array> } {
  const bytes = new Map<AdvertisedRun, Uint8Array>();
  return { bytes, get: (run) => bytes.get(run), set: (run, _form, made) => void bytes.set(run, made) };
}

const textOf = (parts: readonly RefPart[], kept?: KeptRuns): string =>
  Buffer.concat([...piecesOf(parts, kept)]).toString();

describe('An answer about refs', () => {
  const whole = { symrefs: false, peel: false, unborn: false, prefixes: [] };
  for (const [what, nameLength] of [
    ['ordinary names', 40],
    ['names of 4 KB', 4_000],
  ] as const) {
    const refs = { head: 'refs/heads/main', runs: runsOf(REFS_A_RUN, nameLength, 3) };
    const prefixed = { ...whole, prefixes: ['refs/heads/0000-0001', 'refs/heads/0001', 'refs/heads/0002-0003'] };
    for (const [form, parts] of [
      ['an advertisement', receivePackAdvertisement(refs, { version: 0, agent: 'strata/1' })],
      ['ls-refs', lsRefsAnswer(refs, whole)],
      ['ls-refs with prefixes', lsRefsAnswer(refs, prefixed)],
    ] as const) {
      test(`has small pieces, whatever is kept: ${form} of ${what}`, () => {
        const text = textOf(parts);
        for (const piece of piecesOf(parts)) assert.ok(piece.length <= PIECE_BYTES_MAX, `${piece.length} bytes`);
        const kept = keptRuns();
        assert.equal(textOf(parts, kept), text);
        assert.equal(kept.bytes.size > 0, nameLength === 40);
        assert.equal(textOf(parts, kept), text);
        assert.equal(Buffer.from(wholeAnswer(parts, text.length, kept) ?? []).toString(), text);
        assert.equal(wholeAnswer(parts, text.length - 1, kept), null);
      });
    }
  }
});
