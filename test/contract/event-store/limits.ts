/** What a log refuses to take, and the sizes at its bounds. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type NewEvent, streamName } from '../../../core/kernel/envelope.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX, STREAM_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { type EventStore, EventStoreError } from '../../../core/ports/event-store.ts';
import { asNew, newEvent, newStream } from '../../support/events.ts';

export function limitsContract(store: () => EventStore): void {
  describe('limits', () => {
    test('takes an append of one byte less than 1 MiB and refuses 1 MiB', async () => {
      for (const letter of ['x', 'é', '\u{1f600}']) {
        const stream = newStream();
        const fitting = eventsOfSize(APPEND_SIZE_BYTES_MAX - 1, letter);
        const result = await store().append({ stream, expected: 'none', events: fitting });
        assert.equal(result.outcome, 'appended');
        const read = await store().readStream(stream, { direction: 'forwards', limit: 10 });
        assert.deepEqual(read.map(asNew), fitting);
        const tooLarge = eventsOfSize(APPEND_SIZE_BYTES_MAX, letter);
        await refused('append-too-large', store().append({ stream, expected: 1, events: tooLarge }));
      }
    });

    test('refuses what could not be stored or hashed, and spoils no append made at the same moment', async () => {
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
        ...bad.map((events) => refused('invalid-event', store().append({ stream, expected: 'none', events }))),
        ...[-1, 1.5, Number.NaN, 2 ** 31].map((expected) =>
          refused('invalid-event', store().append({ stream, expected, events: [newEvent()] })),
        ),
      ]);
      assert.equal(accepted?.outcome, 'appended');
    });

    test('takes a stream name of the longest size and refuses a longer one', async () => {
      const longest = STREAM_NAME_BYTES_MAX / 3 - 'username-'.length;
      const id = newStream().slice('repository-'.length).padEnd(longest, '€');
      const fitting = { stream: streamName('username', id), expected: 'none', events: [newEvent()] } as const;
      assert.equal((await store().append(fitting)).outcome, 'appended');
      await refused('invalid-event', store().append({ ...fitting, stream: streamName('username', `${id}€`) }));
    });
  });
}

/** Two events whose list has exactly this many bytes of canonical JSON. */
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
  return Buffer.byteLength(canonicalJson(events.map((event) => ({ ...event, actor: { ...event.actor } }))));
}

async function refused(code: string, append: Promise<unknown>): Promise<undefined> {
  await assert.rejects(append, (error) => error instanceof EventStoreError && error.code === code);
}
