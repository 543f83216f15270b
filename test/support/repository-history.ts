/** Pushes as events of a repository, for tests of everything computed from them. */
import { type RefName, refName } from '../../core/git/ref-name.ts';
import { OBJECT_ID_DIGITS, type ObjectId, objectId, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { RequestedUpdate } from '../../core/repository/commands.ts';
import type { RecordedLayer, RefsUpdated, StoredRefUpdate } from '../../core/repository/events.ts';

/** Returns the object id that begins with these hex digits, padded with zeros. */
export function oid(digits: string): ObjectId {
  return objectId(digits.padEnd(OBJECT_ID_DIGITS, '0'));
}

export function branch(name: string): RefName {
  return refName(`refs/heads/${name}`);
}

export function tag(name: string): RefName {
  return refName(`refs/tags/${name}`);
}

/**
 * One update of a ref as an event stores it; null means that the ref does not exist. A move between objects is forced.
 */
export function moved(
  ref: RefName,
  before: ObjectId | null,
  after: ObjectId | null,
  more: Partial<StoredRefUpdate> = {},
): StoredRefUpdate {
  return {
    ref,
    before: before ?? ZERO_OBJECT_ID,
    after: after ?? ZERO_OBJECT_ID,
    type: after === null ? null : 'commit',
    peeled: null,
    kind: after === null ? 'delete' : before === null ? 'create' : 'force-push',
    ...more,
  };
}

export function pushed(updates: readonly StoredRefUpdate[], more: Partial<RefsUpdated['data']> = {}): RefsUpdated {
  return {
    type: 'RefsUpdated',
    data: {
      push_id: '0190f3e2-7c1a-7b4e-9a35-0000000000ff',
      updates,
      parts: null,
      layer: null,
      once_reached: true,
      push_options: [],
      refused: 0,
      received_bytes: 100,
      restored: null,
      door: 'git',
      request_digest: null,
      rules: null,
      certificate_ref: null,
      undone: null,
      ...more,
    },
  };
}

export function layer(n: number, sizeBytes = 1_000): RecordedLayer {
  const id = `0190f3e2-7c1a-7b4e-9a35-${String(n).padStart(12, '0')}`;
  return {
    id,
    key: `repositories/r/layers/${id}.tar`,
    size_bytes: sizeBytes,
    sha256: 'c'.repeat(64),
    pack: 'd'.repeat(OBJECT_ID_DIGITS),
  };
}

/** One update requested by a push: by default its tip is a commit that does not descend from `before`. */
export function wanted(
  ref: RefName,
  before: ObjectId | null,
  after: ObjectId | null,
  more: Partial<RequestedUpdate> = {},
): RequestedUpdate {
  const tip = after === null ? null : ({ id: after, type: 'commit', peeled: null } as const);
  return { ref, before, after, tip, fastForward: false, ...more };
}
