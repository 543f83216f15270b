/** Which appends a log refuses, and sizes at the limits. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type NewEvent, streamName } from '../../../core/kernel/envelope.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX, STREAM_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { APPEND_PLACE_BYTES } from '../../../core/ports/append-check.ts';
import { type EventStore, EventStoreError } from '../../../core/ports/event-store.ts';
import { asNew, newEvent, newStream } from '../../support/events.ts';

export function limitsContract(store: () => EventStore): void {
  describe('an append', () => {
    test('succeeds at one byte less than 1 MiB and is refused at 1 MiB', async () => {
      for (const letter of ['x', 'é', '\u{1f600}']) {
        const stream = newStream();
        const fitting = eventsOfSize(APPEND_SIZE_BYTES_MAX - 1, letter);
        const result = await store().append({ stream, expected: 'none', events: fitting });
        assert.equal(result.outcome, 'appended');
        const read = await store().readStream(stream, { direction: 'forwards', limit: 10 });
        assert.deepEqual(read.map(asNew), fitting);
        const tooLarge = eventsOfSize(APPEND_SIZE_BYTES_MAX, letter);
        await assertRefused('append-too-large', store().append({ stream, expected: 1, events: tooLarge }));
      }
    });

    test('succeeds at one byte less than 1 MiB with one event and with 2,000, of long type names', async () => {
      const alone = newEvent({ type: 'T'.repeat(35), data: { note: '' } });
      const note = 'x'.repeat(APPEND_SIZE_BYTES_MAX - 1 - listBytes([alone]));
      const many = Array.from({ length: 2_000 }, () => newEvent({ type: 'T'.repeat(35), data: { note: '' } }));
      const [last = alone] = many.splice(-1);
      const rest = 'x'.repeat(APPEND_SIZE_BYTES_MAX - 1 - listBytes([...many, last]));
      for (const events of [[{ ...alone, data: { note } }], [...many, { ...last, data: { note: rest } }]]) {
        assert.equal(listBytes(events), APPEND_SIZE_BYTES_MAX - 1);
        const result = await store().append({ stream: newStream(), expected: 'none', events });
        assert.equal(result.outcome, 'appended');
      }
    });

    test('that could not be stored or hashed is refused, and concurrent ones succeed', async () => {
      const [twice, stream] = [newEvent(), newStream()];
      const bad: (readonly NewEvent[])[] = [
        [],
        [twice, twice],
        [newEvent({ data: { fraction: 0.5 } })],
        [newEvent({ data: { lone: '\ud800' } })],
        [newEvent({ requestId: 'a\0b' })],
        [newEvent({ type: '\udc00' })],
        [newEvent({ version: 0.5 })],
        [newEvent({ id: 'ABC' as NewEvent['id'] })],
        [newEvent({ occurredAt: 'yesterday' as NewEvent['occurredAt'] })],
      ];
      const good = newStream();
      const [accepted] = await Promise.all([
        store().append({ stream: good, expected: 'none', events: [newEvent()] }),
        ...bad.map((events) => assertRefused('invalid-event', store().append({ stream, expected: 'none', events }))),
        ...[-1, 1.5, Number.NaN, 2 ** 31].map((expected) =>
          assertRefused('invalid-event', store().append({ stream, expected, events: [newEvent()] })),
        ),
      ]);
      assert.equal(accepted?.outcome, 'appended');
    });

    test('succeeds with a stream name of the largest size and is refused with a longer one', async () => {
      const longest = STREAM_NAME_BYTES_MAX / 3 - 'username-'.length;
      const id = newStream().slice('repository-'.length).padEnd(longest, '€');
      const fitting = { stream: streamName('username', id), expected: 'none', events: [newEvent()] } as const;
      assert.equal((await store().append(fitting)).outcome, 'appended');
      await assertRefused('invalid-event', store().append({ ...fitting, stream: streamName('username', `${id}€`) }));
    });
  });
}

/** Returns two events that count as an append of exactly this size. */
function eventsOfSize(sizeBytes: number, letter: string): readonly NewEvent[] {
  const first = newEvent();
  const second = newEvent();
  const withNote = (note: string) => [first, { ...second, data: { note } }];
  const missing = sizeBytes - listBytes(withNote(''));
  const letterBytes = Buffer.byteLength(letter);
  const events = withNote(letter.repeat(Math.floor(missing / letterBytes)) + 'x'.repeat(missing % letterBytes));
  assert.equal(listBytes(events), sizeBytes);
  return events;
}

function listBytes(events: readonly NewEvent[]): number {
  const counted = events.map(({ isRecord: _isRecord, ...event }) => ({ ...event, actor: { ...event.actor } }));
  return Buffer.byteLength(canonicalJson(counted)) + (events.length > 1 ? events.length * APPEND_PLACE_BYTES : 0);
}

async function assertRefused(code: string, append: Promise<unknown>): Promise<undefined> {
  await assert.rejects(append, (error) => error instanceof EventStoreError && error.code === code);
}
