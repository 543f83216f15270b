/** Reading stored events in their current version. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  accept,
  type DomainEvent,
  downcast,
  type EventKind,
  type EventKinds,
  isNotWritten,
  NEW_RECORD_V1,
  notWritten,
  oldestWritten,
  RECORD_V1,
  readEvent,
  refuse,
  UnknownEventError,
} from '../../../core/kernel/decider.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';

type Painted = DomainEvent<'Painted', { readonly colour: string; readonly coats: number; readonly path: string }>;
type Sold = DomainEvent<'Sold', Record<never, never>>;

/** Returns an upcaster that adds its version to `path`. */
function tracing(version: number) {
  return ({ path = '1', ...data }: JsonObject): JsonObject => {
    assert.ok(typeof path === 'string');
    return { ...data, path: `${path} ${version}` };
  };
}

const kinds: EventKinds<Painted | Sold> = {
  Painted: { version: 3, record: true, upcasters: [tracing(2), tracing(3)] },
  Sold: RECORD_V1,
};

function stored(type: string, version: number, data: JsonObject = {}) {
  return { stream: streamName('thing', '1'), revision: 7, type, version, data };
}

describe('A stored event', () => {
  test('passes through the upcasters after its version, in order', () => {
    assert.deepEqual(readEvent(kinds, stored('Painted', 1)), { type: 'Painted', data: { path: '1 2 3' } });
    assert.deepEqual(readEvent(kinds, stored('Painted', 2)), { type: 'Painted', data: { path: '1 3' } });
  });

  test('of the current version is read unchanged', () => {
    const data = { colour: 'red', coats: 2, path: 'own' };
    assert.deepEqual(readEvent(kinds, stored('Painted', 3, data)), { type: 'Painted', data });
  });

  test('is not changed by reading', () => {
    const event = stored('Painted', 1, { colour: 'red' });
    readEvent(kinds, event);
    assert.deepEqual(event.data, { colour: 'red' });
  });

  test('of an unknown type or version is refused with its stream and revision', () => {
    for (const [type, version] of [
      ['Burnt', 1],
      ['toString', 1],
      ['__proto__', 1],
      ['Painted', 4],
      ['Painted', 0],
      ['Sold', 2],
    ] as const) {
      assert.throws(
        () => readEvent(kinds, stored(type, version)),
        (error: unknown) =>
          error instanceof UnknownEventError &&
          error.code === 'unknown-event' &&
          error.message.includes(`thing-1 revision 7 holds ${type} version ${version}`),
      );
    }
  });
});

describe('An event of a new type', () => {
  const event = { type: 'Burnt', data: { at: 'noon' } };

  test('is written in its first version as soon as it is written at all', () => {
    assert.equal(oldestWritten(NEW_RECORD_V1), 0);
    assert.equal(isNotWritten(NEW_RECORD_V1, 0), true);
    assert.throws(() => downcast(NEW_RECORD_V1, event, 0), /not written yet/);
    for (const writtenMax of [1, 2]) {
      assert.equal(isNotWritten(NEW_RECORD_V1, writtenMax), false);
      assert.deepEqual(downcast(NEW_RECORD_V1, event, writtenMax), { ...event, version: 1 });
    }
  });

  test('may have a second version before every program knows the first', () => {
    const down = ({ at = null }: JsonObject): JsonObject => ({ at });
    const kind: EventKind = { version: 2, record: true, upcasters: [tracing(2)], downcasters: [down, notWritten] };
    const newest = { ...event, data: { at: 'noon', path: '1 2' } };
    assert.equal(isNotWritten(kind, 0), true);
    assert.throws(() => downcast(kind, newest, 0), /not written yet/);
    assert.deepEqual(downcast(kind, newest, 1), { ...event, version: 1 });
    assert.deepEqual(downcast(kind, newest, 2), { ...newest, version: 2 });
  });

  test('that all programs know is always written', () => {
    assert.equal(oldestWritten(RECORD_V1), 1);
    assert.equal(isNotWritten(RECORD_V1, 0), false);
  });
});

describe('A decision', () => {
  test('holds the events to append, possibly none, or one refusal', () => {
    assert.deepEqual(accept(), { events: [] });
    assert.deepEqual(accept('a', 'b'), { events: ['a', 'b'] });
    assert.deepEqual(refuse({ code: 'email-taken' }), { refused: { code: 'email-taken' } });
  });
});
