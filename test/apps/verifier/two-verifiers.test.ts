/**
 * Exports that a third hand made by docs/audit.md, right and wrong ones: the verifier and the one in docs/verifier say
 * the same of each, and what the third hand knows. `STRATA_EXPORTS=10000` makes as many, `STRATA_EXPORTS_SECONDS` as
 * many as it gets done in that time, and `STRATA_EXPORTS_SEED` makes others.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { readCheckpoint, readKeys } from '../../../apps/verifier/file.ts';
import { exportsOf, judge } from '../../../apps/verifier/judge.ts';
import { ROOT } from '../../architecture/source-tree.ts';
import {
  MADE_KINDS,
  type MadeExport,
  makeExport,
  makeLog,
  makeSigner,
  noteOf,
  rotated,
} from '../../support/made-exports.ts';
import { needs } from '../../support/optional-suites.ts';
import { createDice } from '../../support/seeded.ts';
import { tempDir } from '../../support/temp-dir.ts';

const PROGRAM = path.join(ROOT, 'docs/verifier/verify.py');
/** Files of one log, which each verifier judges in one process. */
const BATCH = 40;
/** Below the limit of a file. */
const SPAN_MS = 6 * 60_000;

interface Said {
  readonly verdict: string;
  /** Null where none is proved, or the file is refuted. */
  readonly range: string | null;
  readonly text: string;
}

const VERDICTS = ['verified', 'refuted', 'undecided'] as const;

async function ownSaid(folder: string, kept: readonly string[]): Promise<ReadonlyMap<string, Said>> {
  const keys = await readKeys(path.join(folder, 'keys'));
  const older = await Promise.all(kept.map((file) => readCheckpoint(file)));
  const said = new Map<string, Said>();
  for await (const judged of judge(await exportsOf([folder]), { keys, older })) {
    const { file, status, verified } = judged;
    const range = verified?.range ?? null;
    const text = verified === null ? judged.why : verified.undecided.join('; ');
    said.set(path.basename(file), {
      verdict: VERDICTS[status],
      range: range === null ? null : `${range.since} ${range.until}`,
      text,
    });
  }
  return said;
}

/** A verdict stands at the beginning of a line, and its report below it. */
function secondSaid(folder: string, kept: readonly string[]): ReadonlyMap<string, Said> {
  const args = ['--keys', path.join(folder, 'keys'), ...kept.flatMap((file) => ['--checkpoint', file])];
  const { stdout, stderr } = spawnSync('python3', [PROGRAM, folder, ...args], { encoding: 'utf8' });
  assert.match(stderr, /^(warning: .* a slice of form 1 may hide entries at its edges.*\n)*$/);
  const said = new Map<string, Said>();
  for (const text of stdout.split(/^(?=verified |refuted |undecided )/m)) {
    const [, verdict = '', name = ''] = /^(\w+) (?:.*\/)?([^/\s]+\.ndjson)/.exec(text) ?? [];
    const [, since, until] = /^ {2}range (from the start|\S+) until (\S+),/m.exec(text) ?? [];
    const range =
      since === undefined ? null : `${since === 'from the start' ? 'null' : since} ${until}`.replace('None', 'null');
    said.set(name, { verdict, range, text });
  }
  return said;
}

test('Two verifiers say the same of exports that a third hand made, and refuse all that are wrong', {
  timeout: SPAN_MS + 60_000,
  ...needs('python3'),
}, async (context) => {
  const seed = Number(process.env['STRATA_EXPORTS_SEED'] ?? 37);
  const seconds = Number(process.env['STRATA_EXPORTS_SECONDS'] ?? 0);
  const wanted = seconds > 0 ? Number.POSITIVE_INFINITY : Number(process.env['STRATA_EXPORTS'] ?? 400);
  const deadline = performance.now() + (seconds > 0 ? seconds * 1_000 : SPAN_MS);
  const dice = createDice(seed);
  const root = await tempDir(context);
  const signer = makeSigner('strata.example');
  const tried = new Map<string, number>();
  let count = 0;
  for (let batch = 0; count < wanted && performance.now() < deadline; batch += 1) {
    const folder = path.join(root, String(batch));
    await mkdir(folder);
    await writeFile(path.join(folder, 'keys'), `${signer.line}\n`);
    const log = rotated(dice, makeLog(dice, signer), dice.below(3));
    const size = dice.below(log.entries.length + 1);
    const kept = dice.chance(0.3) ? [path.join(folder, 'kept')] : [];
    for (const file of kept) await writeFile(file, noteOf(log, size));
    const made = new Map<string, MadeExport>();
    for (let n = 0; n < BATCH && count < wanted; n += 1) {
      const kind = MADE_KINDS[count % MADE_KINDS.length] ?? '';
      const one = makeExport(dice, log, kind);
      made.set(`${n}.ndjson`, one);
      await writeFile(path.join(folder, `${n}.ndjson`), one.bytes);
      count += 1;
    }
    const [own, second] = [await ownSaid(folder, kept), secondSaid(folder, kept)];
    for (const [name, { what, verdict, range, bytes }] of made) {
      const [one, other] = [own.get(name), second.get(name)];
      const about = `STRATA_EXPORTS_SEED=${seed}, ${batch}/${name}: ${what}\n${one?.text}\n${other?.text}\n${bytes.toString()}`;
      assert.ok(one !== undefined && other !== undefined, about);
      assert.deepEqual([one.verdict, one.range], [other.verdict, other.range], about);
      tried.set(one.verdict, (tried.get(one.verdict) ?? 0) + 1);
      if (verdict === null) continue;
      if (verdict === 'refuted') assert.equal(one.verdict, 'refuted', about);
      // A kept checkpoint may end outside of a slice.
      else assert.ok(one.verdict === verdict || (kept.length > 0 && one.verdict === 'undecided'), about);
      if (verdict !== 'refuted') {
        assert.equal(one.range, range === null ? null : `${range.since} ${range.until}`, about);
      }
    }
    await rm(folder, { recursive: true });
  }
  for (const verdict of VERDICTS)
    assert.ok((tried.get(verdict) ?? 0) > count / 50, `${verdict}: ${tried.get(verdict)}`);
  await context.annotate(`${count} exports: ${JSON.stringify(Object.fromEntries(tried))}`);
});
