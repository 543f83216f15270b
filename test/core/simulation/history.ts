/**
 * The plain model of a simulated run: what its log alone says, folded by hand, against what clients were told.
 *
 * Must stay true: it shares no code with what it judges but the event's stored form.
 */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { categoryOf, type LogPosition, type RecordedEvent } from '../../../core/kernel/envelope.ts';

/** What a client did, with the log's head before it began and after it ended. */
export interface Operation {
  readonly id: string;
  readonly from: LogPosition;
  readonly to: LogPosition;
}

export interface ReadOperation extends Operation {
  /** The repository's stream, its revision and its refs as they were shown; null when no repository was found. */
  readonly seen: { readonly stream: string; readonly revision: number | 'none'; readonly refs: Refs } | null;
  readonly name: string;
}

export interface PushOperation extends Operation {
  readonly stream: string;
  readonly commands: readonly { readonly ref: string; readonly before: string | null; readonly after: string | null }[];
  /** The code of each command, null for accepted; the refusal of all; or that nobody knows. */
  readonly outcome: readonly (string | null)[] | { readonly refused: string } | 'unknown';
}

type Refs = Readonly<Record<string, string>>;

interface StoredUpdate {
  readonly ref: string;
  readonly before: string;
  readonly after: string;
}

const ZERO = '0'.repeat(40);

export interface History {
  /** Checks that revisions are gapless, times never go back, and every update starts where the one before ended. */
  checkLog(): void;
  checkRead(read: ReadOperation): void;
  checkPush(push: PushOperation): void;
  /** The refs of a repository after all. */
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

  /** The stream's last revision at a position of the log; -1 before its first event. */
  const revisionAt = (stream: string, position: LogPosition): number =>
    (streams.get(stream) ?? []).filter((event) => event.position <= position).length - 1;

  const numbered = (revision: number | 'none'): number => (revision === 'none' ? -1 : revision);

  /** Every moment of a span: its start, and the position of each event in it. */
  const momentsOf = ({ from, to }: Operation): readonly LogPosition[] => [
    from,
    ...log.flatMap(({ position }) => (position > from && position <= to ? [position] : [])),
  ];

  /** The open repository that a name led to at a moment; null for none. */
  function streamNamed(name: string, position: LogPosition): string | null {
    let held: string | null = null;
    for (const event of log) {
      if (event.position > position) break;
      const data = event.data as { readonly name?: string; readonly repository_id?: string };
      if (categoryOf(event.stream) === 'account' && data.name === name) {
        if (event.type === 'RepositoryCreated') held = `repository-${data.repository_id}`;
        if (event.type === 'RepositoryDeleted') held = null;
      }
      if (event.type === 'RepositoryClosed' && event.stream === held) held = null;
    }
    return held;
  }

  return {
    checkLog() {
      for (const [stream, events] of streams) {
        events.forEach((event, index) => {
          assert.equal(event.revision, index, `${stream} has a gap`);
          const before = events[index - 1];
          assert.ok(before === undefined || before.occurredAt <= event.occurredAt, `${stream} goes back in time`);
          assert.notEqual(before?.type, 'RepositoryClosed', `${stream} goes on after its end`);
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
        assert.ok(absent, `${id} did not find ${name}, which was there all the time`);
        return;
      }
      const revision = numbered(seen.revision);
      assert.ok(revision >= revisionAt(seen.stream, from), `${id} saw revision ${revision}, older than its beginning`);
      assert.ok(revision <= revisionAt(seen.stream, to), `${id} saw revision ${revision}, which was not there yet`);
      assert.deepEqual(seen.refs, refsAt(seen.stream, revision), `${id} saw refs that never were`);
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
        `${id} was told otherwise than the log has it`,
      );
      for (const { position } of events)
        assert.ok(position > from && position <= to, `${id} was committed at another time`);
      if (!Array.isArray(outcome)) return;
      const first = Math.max(-1, revisionAt(stream, from));
      const states = Array.from({ length: revisionAt(stream, to) - first + 1 }, (_, n) => refsAt(stream, first + n));
      commands.forEach(({ ref, before }, index) => {
        const code = outcome[index];
        if (code === null || code === 'atomic-push-refused' || code === 'ref-collides') return;
        const justified = states.some((refs) => (refs[ref] ?? null) !== before);
        assert.ok(justified, `${id} was refused ${ref} (${code}) for no reason`);
      });
    },

    finalRefs: (stream) => refsAt(stream, Number.MAX_SAFE_INTEGER - 1),
  };
}
