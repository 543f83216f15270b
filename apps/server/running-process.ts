/**
 * Lists this process among those that run on the log, from its start to its end, and knows which versions of events are
 * written (core/ports/running-processes.ts).
 *
 * Invariants: the process is listed before it reads, and starts only if it reads every version that is written. It is
 * kept listed far more often than the span needs, so that a short outage takes nobody off the list. A failed removal
 * stops nobody: the span ends it.
 */
import { NewerDatabaseError } from '../../adapters/postgres/migrate.ts';
import { OLDEST_WRITTEN_EVENTS, READ_EVENTS } from '../../core/catalogue.ts';
import {
  type EventVersions,
  type Raised,
  type ReadForms,
  type RunningProcesses,
  type WrittenForms,
  writtenVersion,
} from '../../core/ports/running-processes.ts';
import { every } from './periodic.ts';

/** How often a process is kept. Internal: it is the pace of the work, a twentieth of the span. */
const KEEP_EVERY_MS = 30_000;

export interface RunningProcess {
  /** What this process writes: as the log had it when the process was last kept. */
  readonly written: WrittenForms;
  /** Adds the versions of the read models that this process is about to read. */
  readsModels(models: ReadForms['models']): Promise<void>;
  /** Says whether a process that is listed reads the model in that version. */
  isModelRead(model: string, version: number): Promise<boolean>;
  /** Makes the newest version of each event the written one (`RunningProcesses.write`). */
  finishUpgrade(options: { readonly whoeverRuns: boolean }): Promise<Omit<Raised, 'written'>>;
  close(): Promise<void>;
}

export interface RunningProcessOptions {
  readonly processes: RunningProcesses;
  /** Names this process. */
  readonly id: string;
  readonly onFault: (what: 'running-process', cause: unknown) => void;
  readonly everyMs?: number;
  /** What this process reads, and the oldest versions that it can write; those of the catalogue when left out. */
  readonly events?: EventVersions;
  readonly oldest?: EventVersions;
}

/** Resolves when the process is listed. Throws `NewerDatabaseError` if it does not read every event that is written. */
export async function listProcess(options: RunningProcessOptions): Promise<RunningProcess> {
  const { processes, id, onFault, everyMs = KEEP_EVERY_MS } = options;
  const { events = READ_EVENTS, oldest = OLDEST_WRITTEN_EVENTS } = options;
  let forms: ReadForms = { events, models: {} };
  let written: EventVersions = {};
  const keep = async (): Promise<void> => {
    written = await processes.keep(id, forms, oldest);
    refuseNewer(events, written);
  };
  await keep();
  const stop = every(everyMs, keep, (cause) => onFault('running-process', cause));
  return {
    written: { versionOf: (type) => writtenVersion(type, written, oldest) },
    async readsModels(models) {
      forms = { ...forms, models };
      await keep();
    },
    isModelRead: async (model, version) => (await processes.list()).some(({ models }) => models[model] === version),
    async finishUpgrade({ whoeverRuns }) {
      const { raised, olderProcesses, written: now } = await processes.write(events, oldest, whoeverRuns);
      written = now;
      return { raised, olderProcesses };
    },
    async close() {
      await stop();
      await processes.remove(id).catch(() => undefined);
    },
  };
}

function refuseNewer(read: EventVersions, written: EventVersions): void {
  const newer = Object.entries(written).filter(([type, version]) => version > (read[type] ?? 0));
  if (newer.length === 0) return;
  const names = newer.map(([type, version]) => `${type} in version ${version}`);
  throw new NewerDatabaseError(
    'The log is written by a newer version of Strata, whose events this one cannot read: ' +
      `${names.join(', ')}. The database was made by a newer version. Start that version, or restore the backup from ` +
      'before the upgrade (docs/operating.md, Upgrade)',
  );
}
