/**
 * An incomplete export is refused at the line that is wrong, and running the import again does not accept it either.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import {
  closingLine,
  eventLine,
  firstDigest,
  headerLine,
  LogFileError,
  LogFileReader,
  nextDigest,
} from '../../../../core/use-cases/log-files/log-file.ts';
import { newEvent, newStream } from '../../../support/events.ts';
import { exportText, fillOddLog, importText } from '../../../support/log-files.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';

const EVENTS = 12;
const LOG_FILE_HEADER = headerLine(2);

describe('A file that is not a complete export', () => {
  let file = '';
  let lines: string[] = [];
  beforeAll(async () => {
    const source = createMemoryEventStore();
    await fillOddLog(source, EVENTS);
    file = await exportText(source);
    lines = file.split('\n').slice(0, -1);
    assert.equal(lines.length, EVENTS + 2);
  });

  /** Imports the file and returns the error. Checks that the complete file is still accepted afterwards. */
  async function refusal(wrong: string | Uint8Array): Promise<LogFileError> {
    const target = createMemoryEventStore();
    const error: unknown = await importText(target, wrong).then(
      () => assert.fail('It was accepted'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof LogFileError, String(error));
    const again: unknown = await importText(target, wrong).catch((thrown: unknown) => thrown);
    assert.equal(String(again), String(error));
    await importText(target, file);
    assert.equal(await exportText(target), file);
    return error;
  }

  const joined = (parts: readonly (string | undefined)[]): string => parts.map((line) => `${line}\n`).join('');

  test('is refused where it is truncated, between lines or within one', async () => {
    for (let kept = 0; kept < lines.length; kept += 1) {
      assert.equal((await refusal(joined(lines.slice(0, kept)))).line, kept + 1, `${kept} lines`);
      const part = `${joined(lines.slice(0, kept))}${lines[kept]?.slice(0, 30)}`;
      assert.equal((await refusal(part)).line, kept + 1, `${kept} lines and a part`);
    }
    assert.equal((await refusal(file.slice(0, -1))).line, lines.length);
  });

  test('is refused at the first line that is missing, moved or repeated', async () => {
    for (let at = 1; at < lines.length; at += 1) {
      const without = lines.toSpliced(at, 1);
      assert.equal((await refusal(joined(without))).line, at + 1, `without line ${at + 1}`);
      const swapped = lines.with(at, lines[at - 1] ?? '').with(at - 1, lines[at] ?? '');
      assert.equal((await refusal(joined(swapped))).line, at, `lines ${at} and ${at + 1} swapped`);
      const doubled = lines.toSpliced(at, 0, lines[at] ?? '');
      assert.equal((await refusal(joined(doubled))).line, at + 2, `line ${at + 1} twice`);
    }
  });

  test('is refused at a line with any changed byte', async () => {
    const bytes = Buffer.from(joined(lines.slice(0, 3)));
    const rest = Buffer.from(joined(lines.slice(3)));
    for (let at = 0; at < bytes.length; at += 37) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 0x01;
      const { line } = await refusal(Buffer.concat([changed, rest]));
      const wrong = bytes.subarray(0, at).filter((byte) => byte === 10).length + 1;
      assert.ok(line <= wrong + 1 && line >= wrong, `byte ${at} of line ${wrong} refused at line ${line}`);
    }
  });

  test('is refused at its header if it is of another version, or is not an export', async () => {
    const header = LOG_FILE_HEADER.replace('"version":2', '"version":3');
    assert.match(
      (await refusal(joined(lines.with(0, header)))).message,
      /^Line 1: .*version 3; .*reads versions 1 and 2$/,
    );
    for (const other of ['{"format":"other","version":2}', '[]', 'PK\u0003\u0004', `\ufeff${LOG_FILE_HEADER}`, '']) {
      assert.equal((await refusal(joined(lines.with(0, other)))).line, 1, other);
    }
    assert.match((await refusal('')).message, /^Line 1: missing/);
  });

  test('is refused if anything follows its closing line', async () => {
    assert.equal((await refusal(`${file}\n`)).line, lines.length + 1);
    assert.equal((await refusal(file + file)).line, lines.length + 1);
  });

  test('is refused at a line that is not UTF-8', async () => {
    const bytes = Buffer.concat([Buffer.from(joined(lines.slice(0, 2))), Buffer.from([0xff, 10])]);
    assert.match((await refusal(bytes)).message, /^Line 3: not UTF-8/);
  });
});

describe('An event that no log can hold', () => {
  const stream = newStream();
  const stored = (changes: JsonObject): JsonObject => {
    const { actor, id, type, version, occurredAt, requestId, data } = newEvent();
    return {
      account_id: null,
      actor: { id: actor.id, kind: actor.kind },
      ...{ append_count: 1, append_index: 0 },
      causation_id: null,
      ...{ data, id, is_record: true, occurred_at: occurredAt, request_id: requestId, revision: 0 },
      source_address_ref: null,
      ...{ stream, type, version },
      ...changes,
    };
  };

  /** Returns a file with these events and correct digests, whatever the events are. */
  function forged(...texts: readonly string[]): string {
    let last = firstDigest(digest, 2);
    const lines = texts.map((text) => {
      last = nextDigest(digest, last, text);
      return eventLine(last, text);
    });
    return [LOG_FILE_HEADER, ...lines, closingLine(last, texts.length), ''].join('\n');
  }

  test('is refused although its digest is correct', async () => {
    const good = createMemoryEventStore();
    await importText(good, forged(JSON.stringify(stored({}))));
    const wrong: readonly (readonly [string, string])[] = [
      ['no JSON', '{"id":'],
      ['spaces', JSON.stringify(stored({}), null, 1).replaceAll('\n', '')],
      ['a member too many', JSON.stringify({ ...stored({}), zone: 1 })],
      ['no id', JSON.stringify(stored({ id: 'ABC' }))],
      ['an id in upper case', JSON.stringify(stored({ id: newEvent().id.toUpperCase() }))],
      ['no time', JSON.stringify(stored({ occurred_at: '2026-11-31T10:00:00.000Z' }))],
      ['no stream', JSON.stringify(stored({ stream: 'nothing' }))],
      ['an invalid revision', JSON.stringify(stored({ revision: -1 }))],
      ['a revision that cannot be the first', JSON.stringify(stored({ revision: 1 }))],
      ['a fraction', JSON.stringify(stored({ data: { half: 0.5 } }))],
      ['a lone surrogate', JSON.stringify(stored({ data: { lone: '\ud800' } }))],
      ['data that is no object', JSON.stringify(stored({ data: [] }))],
      ['an invalid record flag', JSON.stringify(stored({ is_record: 'true' }))],
      ['no record flag', JSON.stringify(stored({ is_record: null }))],
      ['a place inside an append', JSON.stringify(stored({ append_count: 2, append_index: 1 }))],
      ['a place that no append has', JSON.stringify(stored({ append_count: 0, append_index: 0 }))],
      ['a place that is no number', JSON.stringify(stored({ append_count: '1' }))],
      ['a place that is no whole number', JSON.stringify(stored({ append_count: 1.5, append_index: 0 }))],
      ['a version that is no number', JSON.stringify(stored({ version: '1' }))],
    ];
    for (const [what, text] of wrong) {
      const target = createMemoryEventStore();
      await assert.rejects(importText(target, forged(text)), /^LogFileError: Line 2: /, what);
      assert.deepEqual(await target.readAll(LOG_START, 1), [], what);
    }
  });

  test('is refused, as is the end of the file, if the append before it is incomplete', async () => {
    const first = JSON.stringify(stored({ append_count: 2 }));
    const strange: readonly JsonObject[] = [
      {},
      { append_count: 2, append_index: 1, revision: 2 },
      { append_count: 3, append_index: 1, revision: 1 },
      { append_count: 2, append_index: 1, revision: 1, stream: newStream() },
      { append_count: 2, append_index: 0, revision: 1 },
    ];
    for (const changes of strange) {
      const file = forged(first, JSON.stringify(stored(changes)));
      await assert.rejects(importText(createMemoryEventStore(), file), /^LogFileError: Line 3: .*has no end$/);
    }
    await assert.rejects(importText(createMemoryEventStore(), forged(first)), /^LogFileError: Line 3: .*has no end$/);
    const whole = forged(first, JSON.stringify(stored({ append_count: 2, append_index: 1, revision: 1 })));
    assert.equal((await importText(createMemoryEventStore(), whole)).events, 2);
  });

  test('may have a line of the greatest length, and not one byte more', () => {
    const read = (sizeBytes: number): void => {
      const reader = new LogFileReader(digest);
      reader.read({ bytes: Buffer.from(LOG_FILE_HEADER), ended: true });
      reader.read({ bytes: Buffer.alloc(sizeBytes, 'x'), ended: true });
    };
    assert.throws(() => read(LOG_FILE_LINE_BYTES_MAX), /Line 2: not a JSON object/);
    assert.throws(() => read(LOG_FILE_LINE_BYTES_MAX + 1), /Line 2: longer than/);
  });
});
