/** How a process keeps itself on the list of those that run on the log. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { listProcess } from '../../../apps/server/running-process.ts';
import { READ_EVENTS } from '../../../core/catalogue.ts';
import type { ReadForms, RunningProcesses } from '../../../core/ports/running-processes.ts';
import { until } from '../../support/read-models.ts';

function memoryProcesses() {
  const kept = new Map<string, ReadForms>();
  let calls = 0;
  let away = false;
  const reached = (): void => {
    calls += 1;
    if (away) throw new Error('The database is away');
  };
  const processes: RunningProcesses = {
    keep: async (process, forms) => {
      reached();
      kept.set(process, forms);
    },
    remove: async (process) => {
      reached();
      kept.delete(process);
    },
    list: async () => [...kept.values()],
  };
  return { processes, kept, calls: () => calls, setAway: (isAway: boolean) => void (away = isAway) };
}

describe('A process', () => {
  test('is listed with the events and the models that it reads before it reads them, until it ends', async () => {
    const { processes, kept } = memoryProcesses();
    const listed = await listProcess({ processes, id: 'one', onFault: assert.fail });
    assert.deepEqual([...kept], [['one', { events: READ_EVENTS, models: {} }]]);
    assert.equal(READ_EVENTS['TransferRecorded'], 3);
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
});
