/** Golden events: one stored event of each type and version, kept in test/golden/<category>. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Actor } from '../../core/kernel/envelope.ts';
import { type LogPosition, type RecordedEvent, streamName } from '../../core/kernel/envelope.ts';
import { timestamp, uuid } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';

const FOLDER = path.join(import.meta.dirname, '..', 'golden');

export interface GoldenEvent {
  /** `<category>/<Type>.v<version>.json` */
  readonly file: string;
  readonly category: string;
  readonly event: RecordedEvent;
}

interface StoredForm {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly version: number;
  readonly account_id: string | null;
  readonly occurred_at: string;
  readonly actor: Actor;
  readonly request_id: string;
  readonly source_address_ref: string | null;
  readonly causation_id: string | null;
  readonly data: JsonObject;
}

/**
 * Returns all of them, sorted by file name. The pattern leaves out the other files there, such as workflow histories.
 */
export function goldenEvents(): readonly GoldenEvent[] {
  return globSync('*/*.v*.json', { cwd: FOLDER }).sort().map(readGolden);
}

function readGolden(file: string): GoldenEvent {
  const stored = JSON.parse(readFileSync(path.join(FOLDER, file), 'utf8')) as StoredForm;
  const dash = stored.stream.indexOf('-');
  return {
    file,
    category: path.dirname(file),
    event: {
      id: uuid(stored.id),
      stream: streamName(stored.stream.slice(0, dash), stored.stream.slice(dash + 1)),
      revision: stored.revision,
      position: 1n as LogPosition,
      isRecord: true,
      appendIndex: 0,
      appendCount: 1,
      type: stored.type,
      version: stored.version,
      accountId: stored.account_id === null ? null : uuid(stored.account_id),
      occurredAt: timestamp(stored.occurred_at),
      actor: stored.actor,
      requestId: stored.request_id,
      sourceAddressRef: stored.source_address_ref,
      causationId: stored.causation_id === null ? null : uuid(stored.causation_id),
      data: stored.data,
    },
  };
}
