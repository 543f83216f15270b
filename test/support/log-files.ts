/** Reads and writes exported logs as text, and builds logs that are hard to export. */
import { digest } from '../../adapters/node/digest.ts';
import { fileLines } from '../../adapters/node/file-lines.ts';
import type { NewEvent, StreamName } from '../../core/kernel/envelope.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { exportLog } from '../../core/use-cases/log-files/export-log.ts';
import { type ImportReport, importLog, type LogTarget } from '../../core/use-cases/log-files/import-log.ts';
import { newEvent, newStream } from './events.ts';
import { createDice } from './seeded.ts';

export async function exportText(events: EventStore): Promise<string> {
  let text = '';
  for await (const piece of exportLog({ events, digest }, null)) text += piece.text;
  return text;
}

export type TargetHooks = Partial<Pick<LogTarget, 'begin' | 'onProgress'>>;

/** Imports a log file in chunks that split lines at arbitrary bytes. */
export function importText(
  events: EventStore,
  file: string | Uint8Array,
  hooks: TargetHooks = {},
): Promise<ImportReport> {
  const bytes = Buffer.from(file);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let start = 0; start < bytes.length; start += 60_001) yield bytes.subarray(start, start + 60_001);
  }
  const target = { events, digest, begin: async () => undefined, ...hooks };
  return importLog(target, fileLines(chunks(), LOG_FILE_LINE_BYTES_MAX));
}

/**
 * Data that a program in between could change by mistake: control characters, Unicode forms, key order, large numbers.
 */
const ODD_DATA: readonly JsonObject[] = [
  {},
  { nul: '\0', quote: '\'"\\', lines: 'a\nb\r\u2028\u2029', tab: '\t\u007f\ufeff' },
  { astral: '\u{1f600}', composed: 'é', decomposed: 'e\u0301', private: '\u{e000}', last: '\uffff' },
  { '\u{1f600}': 1, '\u{e000}': 2, '10': 'ten', '9': 'nine', __proto__: null, '': [] },
  { n: [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0, 1e15], deep: [[[[[{ a: [null, true, false] }]]]]] },
  { literal: '"digest":"","event":{}}', escaped: '\\u0000 \\n', long: '€'.repeat(20_000) },
];

function oddEvent(index: number): NewEvent {
  const data = ODD_DATA[index % ODD_DATA.length] ?? {};
  return newEvent({
    type: index % 5 === 0 ? 'Ünknown "type"' : 'ThingHappened',
    version: 1 + (index % 7),
    actor: { kind: index % 2 === 0 ? 'token' : 'trust_rule', id: `Größe \\ \u{1f600} ${index}` },
    requestId: `request-${index}\n`,
    sourceAddressRef: index % 3 === 0 ? 'ab'.repeat(32) : null,
    causationId: index % 4 === 0 ? newEvent().id : null,
    ...(index % 6 === 0 ? { accountId: null } : {}),
    // JSON.parse keeps `__proto__` as an own member.
    data: JSON.parse(JSON.stringify(data)) as JsonObject,
  });
}

/** Fills a log with several streams, appended to at random, one to three events at a time. */
export async function fillOddLog(store: EventStore, events: number): Promise<void> {
  const dice = createDice(events);
  const streams = new Map<StreamName, number>(Array.from({ length: 7 }, () => [newStream(), -1]));
  for (let made = 0; made < events; ) {
    const [stream, revision] = dice.pick([...streams]);
    const count = Math.min(1 + dice.below(3), events - made);
    await store.append({
      stream,
      expected: revision < 0 ? 'none' : revision,
      events: Array.from({ length: count }, (_, index) => oddEvent(made + index)),
    });
    streams.set(stream, revision + count);
    made += count;
  }
}
