/**
 * Lists this process among those that run on the log, from its start to its end (core/ports/running-processes.ts).
 *
 * Invariants: the process is listed before it reads. It is kept listed far more often than the span needs, so that a
 * short outage takes nobody off the list. A failed removal stops nobody: the span ends it.
 */
import { READ_EVENTS } from '../../core/catalogue.ts';
import type { ReadForms, RunningProcesses } from '../../core/ports/running-processes.ts';
import { every } from './periodic.ts';

/** How often a process is kept. Internal: it is the pace of the work, a twentieth of the span. */
const KEEP_EVERY_MS = 30_000;

export interface RunningProcess {
  /** Adds the versions of the read models that this process is about to read. */
  readsModels(models: ReadForms['models']): Promise<void>;
  /** Says whether a process that is listed reads the model in that version. */
  isModelRead(model: string, version: number): Promise<boolean>;
  close(): Promise<void>;
}

export interface RunningProcessOptions {
  readonly processes: RunningProcesses;
  /** Names this process. */
  readonly id: string;
  readonly onFault: (what: 'running-process', cause: unknown) => void;
  readonly everyMs?: number;
}

/** Resolves when the process is listed. */
export async function listProcess(options: RunningProcessOptions): Promise<RunningProcess> {
  const { processes, id, onFault, everyMs = KEEP_EVERY_MS } = options;
  let forms: ReadForms = { events: READ_EVENTS, models: {} };
  const keep = (): Promise<void> => processes.keep(id, forms);
  await keep();
  const stop = every(everyMs, keep, (cause) => onFault('running-process', cause));
  return {
    async readsModels(models) {
      forms = { ...forms, models };
      await keep();
    },
    isModelRead: async (model, version) => (await processes.list()).some(({ models }) => models[model] === version),
    async close() {
      await stop();
      await processes.remove(id).catch(() => undefined);
    },
  };
}
