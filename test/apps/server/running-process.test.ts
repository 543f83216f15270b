/** How a process keeps itself on the list of those that run on the log. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { NewerDatabaseError } from '../../../adapters/postgres/migrate.ts';
import { listProcess } from '../../../apps/server/running-process.ts';
import { OLDEST_WRITTEN_EVENTS, READ_EVENTS } from '../../../core/catalogue.ts';
import type { EventVersions, ReadForms, RunningProcesses } from '../../../core/ports/running-processes.ts';
import { until } from '../../support/read-models.ts';

function memoryProcesses() {
  const kept = new Map<string, ReadForms>();
  const oldestOf = new Map<string, EventVersions>();
  let written: EventVersions = {};
  let calls = 0;
  let away = false;
  const reached = (): void => {
    calls += 1;
    if (away) throw new Error('The database is away');
  };
  const processes: RunningProcesses = {
    keep: async (process, forms, oldest) => {
      reached();
      kept.set(process, forms);
      oldestOf.set(process, oldest);
      return written;
    },
    write: async (versions) => {
      written = { ...written, ...versions };
      return { written, raised: versions, olderProcesses: 0 };
    },
    remove: async (process) => {
      reached();
      kept.delete(process);
    },
    list: async () => [...kept.values()],
  };
  return { processes, kept, oldestOf, calls: () => calls, setAway: (isAway: boolean) => void (away = isAway) };
}

describe('A process', () => {
  test('is listed with the events and the models that it reads before it reads them, until it ends', async () => {
    const { processes, kept, oldestOf } = memoryProcesses();
    const listed = await listProcess({ processes, id: 'one', onFault: assert.fail });
    assert.deepEqual(oldestOf.get('one'), OLDEST_WRITTEN_EVENTS);
    assert.deepEqual([...kept], [['one', { events: READ_EVENTS, models: {} }]]);
    assert.equal(READ_EVENTS['TransferRecorded'], 5);
    await listed.readsModels({ samples: 4 });
    assert.deepEqual([...kept], [['one', { events: READ_EVENTS, models: { samples: 4 } }]]);
    await listed.close();
    assert.deepEqual([...kept], []);
  });

  test('sees which version of a model another process reads', async () => {
    const { processes } = memoryProcesses();
    const older = await listProcess({ processes, id: 'older', onFault: assert.fail });
    const newer = await listProcess({ processes, id: 'newer', onFault: assert.fail });
    await older.readsModels({ samples: 3, others: 1 });
    await newer.readsModels({ samples: 4 });
    assert.equal(await newer.isModelRead('samples', 3), true);
    assert.equal(await newer.isModelRead('samples', 2), false);
    await older.close();
    assert.equal(await newer.isModelRead('samples', 3), false);
    assert.equal(await newer.isModelRead('others', 1), false);
    await newer.close();
  });

  test('stays listed, comes back after an outage, and ends though the database is away', async () => {
    const { processes, kept, calls, setAway } = memoryProcesses();
    const faults: string[] = [];
    const listed = await listProcess({ processes, id: 'one', onFault: (what) => void faults.push(what), everyMs: 5 });
    const before = calls();
    await until(() => calls() > before + 1);
    setAway(true);
    kept.clear();
    await until(() => faults.length > 0);
    assert.equal(faults[0], 'running-process');
    setAway(false);
    await until(() => kept.size === 1);
    setAway(true);
    await listed.close();
    const ended = calls();
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(calls(), ended);
  });

  test('writes the versions that the log had when it was last kept', async () => {
    const { processes, oldestOf } = memoryProcesses();
    const events = { Sampled: 3 };
    const options = { processes, onFault: assert.fail, events, oldest: { Sampled: 1 }, everyMs: 5 };
    const listed = await listProcess({ ...options, id: 'one' });
    assert.deepEqual(oldestOf.get('one'), { Sampled: 1 });
    assert.equal(listed.written.versionOf('Sampled'), 1);
    await processes.write({ Sampled: 3 }, {}, true);
    await until(() => listed.written.versionOf('Sampled') === 3);
    await listed.close();
  });

  test('writes no event of a new type before the log has it', async () => {
    const { processes } = memoryProcesses();
    const forms = { events: { Sampled: 1, Fresh: 1 }, oldest: { Sampled: 1, Fresh: 0 } };
    const listed = await listProcess({ processes, onFault: assert.fail, ...forms, id: 'one' });
    assert.deepEqual([listed.written.versionOf('Fresh'), listed.written.versionOf('Sampled')], [0, 1]);
    await listed.finishUpgrade({ whoeverRuns: false });
    assert.equal(listed.written.versionOf('Fresh'), 1);
    await listed.close();
  });

  test('does not start if it does not read an event that is written', async () => {
    const { processes } = memoryProcesses();
    await processes.write({ Sampled: 3, Added: 1, Kept: 2 }, {}, true);
    const events = { Sampled: 2, Kept: 2 };
    await assert.rejects(listProcess({ processes, id: 'older', onFault: assert.fail, events }), (error) => {
      assert.ok(error instanceof NewerDatabaseError);
      assert.match(error.message, /made by a newer version/);
      assert.match(error.message, /: Sampled in version 3, Added in version 1\. /);
      return true;
    });
  });

  test('that runs says so each time that it finds an event written that it does not read', async () => {
    const { processes } = memoryProcesses();
    const faults: unknown[] = [];
    const onFault = (_: string, cause: unknown) => void faults.push(cause);
    const listed = await listProcess({ processes, id: 'older', onFault, events: { Sampled: 2 }, everyMs: 5 });
    await processes.write({ Sampled: 3 }, {}, true);
    await until(() => faults.length > 1);
    assert.ok(faults.every((fault) => fault instanceof NewerDatabaseError));
    await listed.close();
  });

  test('writes the newest versions from the moment on at which it finished the upgrade', async () => {
    const { processes } = memoryProcesses();
    const options = { processes, onFault: assert.fail, events: { Sampled: 2 }, oldest: { Sampled: 1 } };
    const listed = await listProcess({ ...options, id: 'one' });
    assert.equal(listed.written.versionOf('Sampled'), 1);
    const finished = await listed.finishUpgrade({ whoeverRuns: false });
    assert.deepEqual(finished, { raised: { Sampled: 2 }, olderProcesses: 0 });
    assert.equal(listed.written.versionOf('Sampled'), 2);
    await listed.close();
  });
});
