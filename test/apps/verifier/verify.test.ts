/** The verifier against exports of the service, as they are and changed. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { canonicalText, type JsonObject, parseJson } from '../../../apps/verifier/canonical.ts';
import { base64Of, emptyRange, hashOfBase64, rootOf, withLeaf } from '../../../apps/verifier/tree.ts';
import { LINE_LENGTH_MAX, VerifyError, type VerifyOptions } from '../../../apps/verifier/verify.ts';
import { changedBytes, type ExportLine, forged, otherValue } from '../../support/export-changes.ts';
import { createExportedLog, type ExportedLog, kept, verifyText } from '../../support/exported-log.ts';
import { createDice } from '../../support/seeded.ts';

let log: ExportedLog;
/** A checkpoint of the log when it was shorter. */
let older: string;
let text: string;
let lines: readonly string[];

beforeAll(async () => {
  log = await createExportedLog();
  older = await log.checkpoint();
  await log.grow();
  await log.grow();
  text = await log.exported();
  lines = text.split('\n').slice(0, -1);
});
afterAll(() => log.close());

const withKeys = (): Partial<VerifyOptions> => ({ keys: log.keys });
const join = (parts: readonly string[]): string => `${parts.join('\n')}\n`;
const parsed = (index: number): ExportLine => JSON.parse(lines[index] ?? '') as ExportLine;
const written = (line: object): string => canonicalText(line as JsonObject);
const replaced = (index: number, ...by: readonly string[]): string => join(lines.toSpliced(index, 1, ...by));

/** Returns the number of the line that is named. */
async function faultOf(changed: string | Buffer, options: Partial<VerifyOptions> = withKeys()): Promise<number> {
  const error = await verifyText(changed, options).then(
    // Another name or id of a key is nobody's signature, which leaves the verdict open.
    ({ isSigned }) => (isSigned ? null : new VerifyError(Buffer.from(changed).toString().split('\n').length - 1, '')),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof VerifyError, `the change was not found: ${String(error)}`);
  return error.line;
}

async function refused(changed: string | Buffer, line: number, why: RegExp, options = withKeys()): Promise<void> {
  await assert.rejects(verifyText(changed, options), (error: VerifyError) => {
    assert.match(error.message, why);
    assert.equal(error.line, line);
    return true;
  });
}

describe('an export as the service wrote it', () => {
  test('is verified, with all openings, its signature and an older checkpoint', async () => {
    const verified = await verifyText(text, { keys: log.keys, older: [kept(older)] });
    assert.equal(verified.to, lines.length - 1);
    assert.equal(verified.isWhole, true);
    assert.equal(verified.checkpoint.account, log.account);
    assert.ok(verified.openings >= 3);
    assert.ok(kept(older).size < verified.checkpoint.size);
  });

  test('is verified in slices of any time, which prove their place in the whole', async () => {
    const times = [...new Set(lines.slice(0, -1).map((_, index) => String(parsed(index).entry['occurred_at'])))];
    for (const since of [null, ...times]) {
      for (const until of [null, ...times]) {
        const query = [...(since === null ? [] : [`since=${since}`]), ...(until === null ? [] : [`until=${until}`])];
        if (query.length === 0) continue;
        const slice = await log.exported(`?${query.join('&')}`);
        const verified = await verifyText(slice, withKeys());
        assert.equal(verified.isWhole, false);
        const shown = slice.split('\n').slice(0, -2);
        const inside = shown.filter((line) => !line.includes('"guard":true,"leaf"'));
        assert.equal(verified.guards, shown.length - inside.length);
        assert.equal(verified.range?.since, since);
        const isToEnd = verified.to === verified.checkpoint.size && (until === null || until > (times.at(-1) ?? ''));
        assert.equal(verified.range?.until, isToEnd ? times.at(-1) : until);
        const expected = lines.slice(0, -1).filter((_, index) => {
          const at = String(parsed(index).entry['occurred_at']);
          return (since === null || at >= since) && (until === null || at < until);
        });
        assert.deepEqual(inside, expected);
      }
    }
    const empty = await log.exported('?since=2030-01-01T00:00:00Z');
    const nothing = await verifyText(empty, withKeys());
    assert.deepEqual([nothing.to - nothing.from - nothing.guards, nothing.guards > 0], [0, true]);
    await verifyText(await log.exported('?until=0001-01-01T00:00:00Z'), withKeys());
    await verifyText(await log.exported('?since=2026-11-21T12:00:00Z&until=2020-01-01T00:00:00Z'), withKeys());
  });

  test('is verified without its openings: they were erased', async () => {
    const erased = lines.map((line, index) =>
      index < lines.length - 1 ? written({ ...parsed(index), openings: {} }) : line,
    );
    assert.equal((await verifyText(join(erased), withKeys())).openings, 0);
  });

  test('is canonical, and its leaves are those of the documents', () => {
    for (const [index, line] of lines.entries()) {
      assert.equal(canonicalText(parseJson(line)), line);
      if (index === lines.length - 1) continue;
      const { entry, leaf } = parsed(index);
      const { sequence: _sequence, ...hashed } = entry;
      const content = Buffer.from(`\0${canonicalText(hashed as unknown as JsonObject)}`);
      assert.equal(createHash('sha256').update(content).digest('base64'), leaf);
    }
  });
});

describe('a slice', () => {
  /** A guard, entries and a guard of the last minutes: the log grows by a minute at a time. */
  async function made(since: number, until: number): Promise<{ slice: string[]; range: [string, string] }> {
    const moment = (minutes: number): string =>
      new Date(Date.parse(log.fixture.clock.now()) - minutes * 60_000).toISOString();
    const range: [string, string] = [moment(since), moment(until)];
    const text = await log.exported(`?since=${range[0]}&until=${range[1]}`);
    return { slice: text.split('\n').slice(0, -1), range };
  }
  type Ending = Record<string, unknown> & { from: number; guards: { before: number; behind: number } };
  const endingOf = (slice: readonly string[]): Ending => JSON.parse(slice.at(-1) ?? '') as Ending;
  const withEnding = (slice: readonly string[], changes: object): string =>
    join([...slice.slice(0, -1), written({ ...endingOf(slice), ...changes })]);

  beforeAll(async () => {
    for (let n = 0; n < 8; n += 1) await log.grow();
    text = await log.exported();
    lines = text.split('\n').slice(0, -1);
  });

  test('shows its neighbours as guards without openings, back and forward to ones of more than two minutes', async () => {
    const { slice, range } = await made(5, 4);
    const guards = slice.filter((line) => line.includes('"guard":true'));
    const { from, guards: counted } = endingOf(slice);
    assert.ok(counted.before > 0 && counted.behind > 0 && counted.before + counted.behind === guards.length);
    const [first, last] = [slice[0] ?? '', slice.at(-2) ?? ''].map((line) => JSON.parse(line) as ExportLine);
    assert.equal(first?.entry.sequence, from);
    assert.equal(first?.openings, undefined);
    const distance = (at: unknown, bound: string): number => Date.parse(String(at)) - Date.parse(bound);
    assert.ok(distance(first?.entry['occurred_at'], range[0]) < -120_000);
    assert.ok(distance(last?.entry['occurred_at'], range[1]) > 120_000);
    const verified = await verifyText(join(slice), { ...withKeys(), asked: { since: range[0], until: range[1] } });
    assert.deepEqual([verified.range, verified.undecided], [{ since: range[0], until: range[1] }, []]);
  });

  test('of form 1 has no guards, and verifies without a range', async () => {
    const at = String(parsed(3).entry['occurred_at']);
    const old = await log.exported(`?since=${at}&form=1`);
    assert.ok(!old.includes('"guard"') && !old.includes('"form"'));
    assert.equal((await verifyText(old, withKeys())).range, null);
    const asked = { since: at, until: null };
    assert.match((await verifyText(old, { ...withKeys(), asked })).undecided.join(), /form 1 proves no range/);
    const answer = await log.fixture.request('GET', '/v1/account/events/export?form=3', log.token);
    assert.equal(answer.statusCode, 422);
  });

  test('from which entries were cut at an edge is refused, though the tree and the signature are right', async () => {
    const { slice } = await made(5, 4);
    const { from, guards } = endingOf(slice);
    const leaves = lines.slice(0, -1).map((_, index) => hashOfBase64(parsed(index).leaf) ?? '');
    const hashes = (begin: number, end: number): string[] => {
      let range = emptyRange(begin);
      for (const leaf of leaves.slice(begin, end)) range = withLeaf(range, leaf);
      return range.subtrees.map(({ hash }) => base64Of(hash));
    };
    const count = slice.length - 1;
    const cut = (front: number, back: number): string => {
      const kept = { before: Math.max(0, guards.before - front), behind: Math.max(0, guards.behind - back) };
      const [begin, end] = [from + front, from + count - back];
      const places = { from: begin, guards: kept, left: hashes(0, begin), right: hashes(end, leaves.length) };
      const shown = [...slice.slice(front, count - back), slice[count] ?? ''];
      return withEnding(shown, places);
    };
    assert.equal((await verifyText(cut(0, 0), withKeys())).isSigned, true);
    for (let front = 1; front < guards.before + 3; front += 1) {
      await assert.rejects(verifyText(cut(front, 0), withKeys()), /begins neither with the log nor with a guard/);
    }
    for (let back = 1; back < guards.behind + 3; back += 1) {
      await assert.rejects(verifyText(cut(0, back), withKeys()), /ends neither with the log nor with a guard/);
    }
  });

  test('whose last line says another range is refused as soon as a line is on the wrong side of it', async () => {
    const { slice, range } = await made(5, 4);
    const earlier = new Date(Date.parse(range[0]) - 60_001).toISOString();
    const later = new Date(Date.parse(range[1]) + 60_001).toISOString();
    for (const [changes, why] of [
      [{ since: earlier }, /a guard before the slice has a log time of it/],
      [{ until: later }, /a guard behind the slice has a log time of it/],
      [{ since: range[1] }, /log time .* is not of the slice/],
      [{ since: null }, /a guard before the slice has a log time of it/],
      [{ guards: { before: 0, behind: 0 } }, /does not count its guards/],
      [{ form: 3 }, /not those of a slice of form 2/],
    ] as const) {
      await assert.rejects(verifyText(withEnding(slice, changes), withKeys()), why);
    }
  });

  test('proves nothing behind the log, and no other range than the one that it has', async () => {
    const last = String(parsed(lines.length - 2).entry['occurred_at']);
    const beyond = '2030-01-01T00:00:00.000Z';
    const open = await log.exported(`?since=${String(parsed(3).entry['occurred_at'])}&until=${beyond}`);
    const asking = (until: string | null, since: string | null = null) =>
      verifyText(open, { ...withKeys(), asked: { since, until } });
    assert.deepEqual((await asking(last)).undecided, []);
    assert.match((await asking(beyond)).undecided.join(), /proves nothing of the time until 2030/);
    await assert.rejects(asking('2026-01-01T00:00:00.000Z'), /and not until 2026-01-01/);
    await assert.rejects(asking(null, '2026-01-01T00:00:00.000Z'), /and not from 2026-01-01/);
  });
});

describe('an export in which one thing was changed', () => {
  test('shows every single changed byte: thousands of them, each by its line', async () => {
    const dice = createDice(7);
    for (let n = 0; n < 1_500; n += 1) {
      const index = dice.below(lines.length);
      const line = Buffer.from(lines[index] ?? '');
      const changed = changedBytes(dice, line);
      if (changed.equals(line)) continue;
      const parts = lines.map((other, at) => (at === index ? changed : Buffer.from(other)));
      const bytes = Buffer.concat(parts.flatMap((part) => [part, Buffer.from('\n')]));
      assert.equal(await faultOf(bytes), index + 1, `${changed.toString()} in the place of ${line.toString()}`);
    }
  });

  test('shows every change of a value in an entry, in its canonical form, by its line', async () => {
    const dice = createDice(11);
    for (let n = 0; n < 500; n += 1) {
      const index = dice.below(lines.length - 1);
      const line = parsed(index);
      const name = dice.pick(Object.keys(line.entry));
      const entry = { ...line.entry, [name]: otherValue(dice, line.entry[name]) };
      const changed = written({ ...line, entry });
      if (changed !== lines[index]) assert.equal(await faultOf(replaced(index, changed)), index + 1, changed);
    }
  });

  test('shows lines that were dropped, doubled, exchanged or put in', async () => {
    const last = lines.length - 1;
    for (let index = 0; index < last; index += 1) {
      assert.equal(await faultOf(replaced(index)), index + 1, 'dropped');
      assert.equal(await faultOf(replaced(index, lines[index] ?? '', lines[index] ?? '')), index + 2, 'doubled');
      if (index + 1 === last) continue;
      const swapped = lines.toSpliced(index, 2, lines[index + 1] ?? '', lines[index] ?? '');
      const named = await faultOf(join(swapped));
      // The first entry's number tells where a slice begins, so there the second line is the one out of order.
      assert.ok(named === index + 1 || (index === 0 && named === 2), `exchanged ${index}`);
    }
  });

  test('shows a tail that was cut off, at every length', async () => {
    const checkpoint = lines.at(-1) ?? '';
    for (let index = 0; index < lines.length - 1; index += 1) {
      if (index > 0) await refused(join(lines.slice(0, index)), index + 1, /without a checkpoint/);
      const cut = [...lines.slice(0, index), checkpoint];
      await refused(join(cut), index + 1, /the checkpoint is of \d+ entries, and the export has/);
    }
    await refused(text.slice(0, -1), lines.length, /cut off/);
    await refused(`${text}\n`, lines.length + 1, /behind the checkpoint/);
    await refused('', 1, /without a checkpoint/);
  });

  test('shows an entry that was forged with its leaf, by the checkpoints between which it lies', async () => {
    const size = kept(older).size;
    const change = (index: number): string => {
      const line = parsed(index);
      return replaced(index, written(forged({ ...line, entry: { ...line.entry, request_id: 'forged' } })));
    };
    await refused(change(2), lines.length, new RegExp(`lines 1 to ${lines.length - 1},`));
    const options = { ...withKeys(), older: [kept(older)] };
    await refused(
      change(2),
      lines.length,
      new RegExp(`the older checkpoint of ${size}.* lines 1 to ${size},`),
      options,
    );
    await refused(change(size + 1), lines.length, new RegExp(`lines ${size + 1} to ${lines.length - 1},`), options);
  });

  test('shows a head that was forged with all entries: without the keys only an older checkpoint tells', async () => {
    const { entry, ...rest } = parsed(2);
    const first = forged({ ...rest, entry: { ...entry, request_id: 'forged' } });
    const own = lines.slice(0, -1).map((line, index) => (index === 2 ? written(first) : line));
    const range = own.reduce((grown, line) => {
      return withLeaf(grown, hashOfBase64((JSON.parse(line) as ExportLine).leaf) ?? '');
    }, emptyRange(0));
    const [origin, size] = kept(older).note.text.split('\n');
    assert.ok(origin !== undefined && size !== undefined);
    const head = `${origin}\n${own.length}\n${base64Of(rootOf(range))}\n`;
    const [name = '', id = ''] = [log.keys[0]?.name, log.keys[0]?.hash];
    const { privateKey } = generateKeyPairSync('ed25519');
    const signature = Buffer.concat([Buffer.from(id, 'hex'), sign(null, Buffer.from(head), privateKey)]).toString(
      'base64',
    );
    const export_ = join([...own, written({ checkpoint: `${head}\n— ${name} ${signature}\n` })]);
    await verifyText(export_);
    await refused(export_, lines.length, /not signed: the signature of .* is wrong/);
    await refused(export_, lines.length, /the older checkpoint of/, { keys: null, older: [kept(older)] });
  });

  test("shows another account's export, whose checkpoint it is", async () => {
    const bob = await log.fixture.account('carol');
    const token = await log.fixture.token(bob);
    const theirs = (await log.exported('', token)).split('\n').slice(0, -1);
    await refused(join([...theirs.slice(0, -1), lines.at(-1) ?? '']), theirs.length, /the checkpoint is of/);
    await refused(join(theirs), theirs.length, /is of .*\/log\//, { ...withKeys(), older: [kept(older)] });
    const named = await faultOf(join([...theirs.slice(0, 1), ...lines.slice(1)]));
    assert.ok(named <= 2);
  });

  test('shows a log that lost entries which an older checkpoint had', async () => {
    const newer = await log.checkpoint();
    const earlier = await createExportedLog();
    await earlier.close();
    const slice = await log.exported('?until=2030-01-01T00:00:00Z');
    await verifyText(slice, { ...withKeys(), older: [kept(newer), kept(older)] });
    const at = String(parsed(kept(older).size).entry['occurred_at']);
    const behind = await log.exported(`?since=${at}`);
    await verifyText(behind, { ...withKeys(), older: [kept(older), kept(newer)] });
    const before = await log.exported('?until=2026-11-21T10:00:00Z&form=1');
    const { undecided } = await verifyText(before, { ...withKeys(), older: [kept(older)] });
    assert.match(undecided.join(), /ends outside of this slice/);
  });

  test('names the entry by which the operator accepted the loss of an older checkpoint', async () => {
    const [origin = '', size = '', root = '', ...rest] = older.split('\n');
    const otherRoot = Buffer.from(root, 'base64').reverse().toString('base64');
    const lost = [origin, size, otherRoot, ...rest].join('\n');
    await log.accept({ size: Number(size), root: otherRoot, reason: 'The disk "died"' });
    const whole = await log.exported();
    const [index] = whole.split('\n').flatMap((line, at) => (line.includes('"LogTailLost"') ? [at] : []));
    const words = new RegExp(`does not agree: .*; entry ${index} \\(LogTailLost\\) accepts that loss: "The disk`);
    const faultIn = (note: string) =>
      verifyText(whole, { older: [kept(note)] }).then(
        () => '',
        (error: unknown) => (error instanceof VerifyError ? error.message : 'another error'),
      );
    assert.match(await faultIn(lost), words);
    const another = await faultIn(lost.replace(otherRoot, `${'A'.repeat(43)}=`));
    assert.match(another, /does not agree/);
    assert.doesNotMatch(another, /LogTailLost/, 'of another root it says nothing');
    const larger = lost.replace(`\n${size}\n`, '\n999\n');
    await log.accept({ size: 999, root: otherRoot, reason: 'again' });
    const grown = await log.exported();
    await assert.rejects(
      verifyText(grown, { older: [kept(larger)] }),
      /had 999, and now .* accepts that loss: "again"$/,
    );
  });

  test('shows openings that open nothing, open something else, or belong to no reference of the entry', async () => {
    const index = lines.findIndex((_, at) => at < lines.length - 1 && Object.keys(parsed(at).openings).length > 0);
    const line = parsed(index);
    const [ref = '', opening = { nonce: '', value: '' }] = Object.entries(line.openings)[0] ?? [];
    const withOpening = (name: string, changed: object) =>
      replaced(index, written({ ...line, openings: { [name]: changed } }));
    await refused(withOpening(ref, { ...opening, value: 'x' }), index + 1, /does not open it/);
    await refused(withOpening(ref, { ...opening, nonce: `${opening.nonce}00` }), index + 1, /not 32 bytes/);
    await refused(withOpening(ref, { ...opening, nonce: opening.nonce.toUpperCase() }), index + 1, /not 32 bytes/);
    await refused(withOpening(ref, { ...opening, more: 1 }), index + 1, /not a nonce and a value/);
    // The nonce of another length, so that a part of the value could be taken for a part of the nonce.
    const moved = { nonce: opening.nonce.slice(0, 62), value: opening.value };
    await refused(withOpening(ref, moved), index + 1, /not 32 bytes/);
    const nonce = '0'.repeat(64);
    const other = createHash('sha256').update(Buffer.from(nonce, 'hex')).update('x').digest('hex');
    await refused(withOpening(other, { nonce, value: 'x' }), index + 1, /which its entry does not hold/);
  });

  test('is refused with a line that is too long, or nested too deep, in bounded memory', async () => {
    await refused(join(['x'.repeat(LINE_LENGTH_MAX + 1)]), 1, /longer than/);
    await refused('x'.repeat(4 * LINE_LENGTH_MAX), 1, /longer than/);
    await refused(join(['x'.repeat(LINE_LENGTH_MAX)]), 1, /no JSON/);
    const line = lines[0] ?? '';
    const deep = line.replace('"data":{', `"data":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)},`);
    await refused(replaced(0, deep), 1, /nests deeper/);
  });
});
