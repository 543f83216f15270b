/** The settings of the event log: an unusable choice stops the start with the setting's name. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readSettings } from '../../../apps/server/settings.ts';
import { faultsIn } from '../../support/settings-faults.ts';

const read = (environment: Readonly<Record<string, string>>) => readSettings(environment, '/tmp');

const faultsOf = (environment: Readonly<Record<string, string>>) => faultsIn(() => read(environment));

describe('the setting of the event log', () => {
  test('is PostgreSQL unless EventStoreDB is chosen with its address', () => {
    assert.equal(read({}).eventStoreDb, null);
    assert.equal(read({ STRATA_EVENT_STORE: 'postgres' }).eventStoreDb, null);
    const address = 'esdb://127.0.0.1:2113?tls=false';
    const chosen = read({ STRATA_EVENT_STORE: 'eventstoredb', STRATA_EVENTSTORE_URL: address });
    assert.deepEqual(chosen.eventStoreDb, { address, folder: '/tmp' });
    assert.equal(read({ STRATA_EVENTSTORE_URL: address }).eventStoreDb, null);
  });

  test('is refused by name without an address, and with an unusable one', () => {
    const store = { STRATA_EVENT_STORE: 'eventstoredb' };
    assert.match(faultsOf(store), /STRATA_EVENTSTORE_URL is not set: expected .*esdb:/);
    assert.match(faultsOf({ ...store, STRATA_EVENTSTORE_URL: 'http://host' }), /STRATA_EVENTSTORE_URL is set, but/);
    assert.match(faultsOf({ STRATA_EVENT_STORE: 'kafka' }), /STRATA_EVENT_STORE is "kafka": expected one of/);
    const dropped = faultsOf({ ...store, STRATA_EVENTSTORE_URL: 'esdb://ada:secret@host?tls=false' });
    assert.match(dropped, /STRATA_EVENTSTORE_URL is set, but with tls=false the client sends no credentials/);
    assert.doesNotMatch(dropped, /secret/);
  });
});
