/** Pushes as a repository's events, for tests of what follows from them. */
import { type RefName, refName } from '../../core/git/ref-name.ts';
import { type ObjectId, objectId, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { RequestedUpdate } from '../../core/repository/commands.ts';
import type { RefsUpdated, StoredLayer, StoredRefUpdate } from '../../core/repository/events.ts';

/** The object id that begins with the given hex digits. */
export function oid(digits: string): ObjectId {
  return objectId(digits.padEnd(40, '0'));
}

export function branch(name: string): RefName {
  return refName(`refs/heads/${name}`);
}

export function tag(name: string): RefName {
  return refName(`refs/tags/${name}`);
}

/** A ref's move as an event holds it; null stands for no ref. A move from one object to another is forced. */
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
      push_options: [],
      refused: 0,
      received_bytes: 100,
      ...more,
    },
  };
}

export function layer(n: number, sizeBytes = 1_000): StoredLayer {
  const id = `0190f3e2-7c1a-7b4e-9a35-${String(n).padStart(12, '0')}`;
  return {
    id,
    key: `repositories/r/layers/${id}.tar`,
    size_bytes: sizeBytes,
    sha256: 'c'.repeat(64),
    pack: 'd'.repeat(40),
  };
}

/** A command of a push with what was found out about it: a commit that does not descend from what was before. */
export function wanted(
  ref: RefName,
  before: ObjectId | null,
  after: ObjectId | null,
  more: Partial<RequestedUpdate> = {},
): RequestedUpdate {
  const tip = after === null ? null : ({ id: after, type: 'commit', peeled: null } as const);
  return { ref, before, after, tip, fastForward: false, ...more };
}
