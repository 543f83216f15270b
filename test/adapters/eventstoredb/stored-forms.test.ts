/** Events in each form that Strata has stored: form 2 holds an event's place in its append, form 1 does not. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { asNew } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';
import type { ProtocolServer } from '../../support/eventstoredb/protocol-server.ts';
import type { StoredEvent } from '../../support/eventstoredb/recorded-log.ts';
import {
  appendGolden,
  GOLDEN_APPENDS,
  GOLDEN_PLACES,
  GOLDEN_PLACES_FIRST_FORM,
  goldenText,
} from '../../support/golden-log.ts';

interface Stored {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

const EVENTS = GOLDEN_APPENDS.flatMap(({ events }) => events);
const golden = (form: 1 | 2): readonly Stored[] => JSON.parse(goldenText(`stored/eventstoredb-${form}.json`));

/** All events but the server's own. */
const written = ({ log }: ProtocolServer): readonly StoredEvent[] =>
  log.events.filter(({ stream }) => !stream.startsWith('$'));

describe('an event in EventStoreDB', () => {
  test('is stored in the golden form', async (context) => {
    const { server, store } = await openLog(context);
    await appendGolden(store);
    const stored = written(server).map(({ stream, revision, id, type, data, metadata }): Stored => {
      const [dataText, metadataText] = [data, metadata].map((bytes) => Buffer.from(bytes).toString('utf8'));
      return { stream, revision, id, type, data: dataText ?? '', metadata: metadataText ?? '' };
    });
    assert.deepEqual(stored, golden(2));
  });

  for (const [form, places] of [
    [1, GOLDEN_PLACES_FIRST_FORM],
    [2, GOLDEN_PLACES],
  ] as const) {
    test(`is read in form ${form}, and recognised by a retry`, async (context) => {
      const { server, store } = await openLog(context);
      for (const [stream, events] of Map.groupBy(golden(form), ({ stream: name }) => name)) {
        const proposed = events.map(({ id, type, data, metadata }) => {
          return {
            id,
            type,
            contentType: 'application/json',
            data: Buffer.from(data),
            metadata: Buffer.from(metadata),
          };
        });
        server.log.append(stream, 'no-stream', proposed);
      }
      const read = await store.readAll(LOG_START, 100);
      assert.deepEqual(read.map(asNew), EVENTS);
      assert.deepEqual(
        read.map(({ isRecord, appendIndex, appendCount }) => [isRecord, appendIndex, appendCount]),
        places,
      );
      for (const request of GOLDEN_APPENDS) assert.equal((await store.append(request)).outcome, 'appended');
      assert.equal(written(server).length, EVENTS.length);
    });
  }
});
