/**
 * A simple model of a simulated run: it folds the log, and compares the result with what the clients received.
 *
 * Invariants: it shares no code with the code under test, except the stored form of events.
 */
import assert from 'node:assert/strict';
import { categoryOf, type LogPosition, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';

/** An operation of a client, with the log's head before and after it. */
export interface Operation {
  readonly id: string;
  readonly from: LogPosition;
  readonly to: LogPosition;
}

export interface ReadOperation extends Operation {
  /** The repository's stream, revision and refs that the client received; null if it found no repository. */
  readonly seen: { readonly stream: string; readonly revision: number | 'none'; readonly refs: Refs } | null;
  readonly name: string;
}

export interface PushOperation extends Operation {
  readonly stream: string;
  readonly commands: readonly { readonly ref: string; readonly before: string | null; readonly after: string | null }[];
  /** The code of each command, null if accepted; or the refusal of the whole push; or `unknown` after a fault. */
  readonly outcome: readonly (string | null)[] | { readonly refused: string } | 'unknown';
}

type Refs = Readonly<Record<string, string>>;

interface StoredUpdate {
  readonly ref: string;
  readonly before: string;
  readonly after: string;
}

const ZERO = '0'.repeat(40);

/** Returns whether one of two refs is a folder in the other's name, so that git can store only one of them. */
function collide(a: string, b: string): boolean {
  return a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}

export interface History {
  /** Checks that revisions have no gaps, times never decrease, and every update starts at the tip of the one before. */
  checkLog(): void;
  checkRead(read: ReadOperation): void;
  checkPush(push: PushOperation): void;
  /** Returns the refs of a repository at the end of the log. */
  finalRefs(stream: string): Refs;
}

export function historyOf(log: readonly RecordedEvent[]): History {
  const streams = new Map<string, RecordedEvent[]>();
  for (const event of log) {
    const events = streams.get(event.stream) ?? [];
    streams.set(event.stream, [...events, event]);
  }

  const updatesOf = ({ type, data }: RecordedEvent): readonly StoredUpdate[] =>
    type === 'RefsUpdated' ? (data as JsonObject & { readonly updates: readonly StoredUpdate[] }).updates : [];

  function refsAt(stream: string, revision: number): Refs {
    const refs: Record<string, string> = {};
    for (const event of (streams.get(stream) ?? []).slice(0, revision + 1)) {
      for (const { ref, after } of updatesOf(event)) {
        if (after === ZERO) delete refs[ref];
        else refs[ref] = after;
      }
    }
    return refs;
  }

  /** Returns the stream's last revision at a position of the log; -1 before its first event. */
  const revisionAt = (stream: string, position: LogPosition): number =>
    (streams.get(stream) ?? []).filter((event) => event.position <= position).length - 1;

  const numbered = (revision: number | 'none'): number => (revision === 'none' ? -1 : revision);

  /**
   * Returns the positions of the log during an operation: its head at the start, and each event appended in between.
   */
  const momentsOf = ({ from, to }: Operation): readonly LogPosition[] => [
    from,
    ...log.flatMap(({ position }) => (position > from && position <= to ? [position] : [])),
  ];

  /** Returns the stream of the open repository with this name at a position; null if there is none. */
  function streamNamed(name: string, position: LogPosition): string | null {
    let stream: string | null = null;
    for (const event of log) {
      if (event.position > position) break;
      const data = event.data as { readonly name?: string; readonly repository_id?: string };
      if (categoryOf(event.stream) === 'account' && data.name === name) {
        if (event.type === 'RepositoryCreated') stream = `repository-${data.repository_id}`;
        if (event.type === 'RepositoryDeleted') stream = null;
      }
      if (event.type === 'RepositoryClosed' && event.stream === stream) stream = null;
    }
    return stream;
  }

  return {
    checkLog() {
      for (const [stream, events] of streams) {
        events.forEach((event, index) => {
          assert.equal(event.revision, index, `${stream} has a gap`);
          const before = events[index - 1];
          assert.ok(before === undefined || before.occurredAt <= event.occurredAt, `${stream} goes back in time`);
          assert.notEqual(before?.type, 'RepositoryClosed', `${stream} has events after RepositoryClosed`);
          const names = Object.keys(refsAt(stream, index));
          const folders = names.filter((name) => names.some((other) => other.startsWith(`${name}/`)));
          assert.deepEqual(folders, [], `${stream} revision ${index} holds refs that are folders of others`);
          const refs = refsAt(stream, index - 1);
          for (const update of updatesOf(event)) {
            assert.equal(update.before, refs[update.ref] ?? ZERO, `${stream} revision ${index} lost an update`);
          }
        });
      }
    },

    checkRead(read) {
      const { id, from, to, seen, name } = read;
      if (seen === null) {
        const absent = momentsOf(read).some((position) => streamNamed(name, position) === null);
        assert.ok(absent, `${id} did not find ${name}, which existed all the time`);
        return;
      }
      const revision = numbered(seen.revision);
      assert.ok(revision >= revisionAt(seen.stream, from), `${id} read revision ${revision}, older than its start`);
      assert.ok(revision <= revisionAt(seen.stream, to), `${id} read revision ${revision}, which did not exist yet`);
      assert.deepEqual(seen.refs, refsAt(seen.stream, revision), `${id} read refs that never existed`);
      const named = momentsOf(read).some((position) => streamNamed(name, position) === seen.stream);
      assert.ok(named, `${id} found a repository that ${name} never was`);
    },

    checkPush(push) {
      const { id, from, to, stream, commands, outcome } = push;
      const events = log.filter((event) => event.requestId === id && event.type === 'RefsUpdated');
      assert.ok(events.length <= 1, `${id} was committed ${events.length} times`);
      const stored = events.flatMap(updatesOf);
      if (outcome === 'unknown') return;
      const accepted = commands.filter((_, index) => Array.isArray(outcome) && outcome[index] === null);
      const moved = accepted.filter(({ before, after }) => before !== after);
      assert.deepEqual(
        stored.map(({ ref, before, after }) => ({ ref, before, after })),
        moved.map(({ ref, before, after }) => ({ ref, before: before ?? ZERO, after: after ?? ZERO })),
        `${id} received another result than the log has`,
      );
      for (const { position } of events)
        assert.ok(position > from && position <= to, `${id} was committed at another time`);
      if (!Array.isArray(outcome)) {
        const closed = (streams.get(stream) ?? []).some(
          ({ type, position }) => type === 'RepositoryClosed' && position <= to,
        );
        assert.ok(closed, `${id} was refused (${JSON.stringify(outcome)}) although its repository was open`);
        return;
      }
      const first = Math.max(-1, revisionAt(stream, from));
      const states = Array.from({ length: revisionAt(stream, to) - first + 1 }, (_, n) => refsAt(stream, first + n));
      const isJustified = (
        code: string | null | undefined,
        { ref, before }: { ref: string; before: string | null },
      ) => {
        if (code === 'atomic-push-refused') return outcome.some((other) => other !== null && other !== code);
        const others = [...states.flatMap((refs) => Object.keys(refs)), ...commands.map((command) => command.ref)];
        if (code === 'ref-collides') return others.some((other) => collide(ref, other));
        return states.some((refs) => (refs[ref] ?? null) !== before);
      };
      commands.forEach(({ ref, before }, index) => {
        const code = outcome[index];
        if (code === null) return;
        assert.ok(isJustified(code, { ref, before }), `${id} was refused ${ref} (${code}) for no reason`);
      });
    },

    finalRefs: (stream) => refsAt(stream, Number.MAX_SAFE_INTEGER - 1),
  };
}
