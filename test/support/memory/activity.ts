/** Ref changes and pushes in memory: each read folds the whole log. */
import { accessTokenEventKinds } from '../../../core/access-token/events.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import type { Digest } from '../../../core/kernel/digest.ts';
import { categoryOf, entityIdOf, LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import { objectId, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { ActivityReader, ActivityRow, ChangedThing, PushRow } from '../../../core/ports/activity.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { repositoryEventKinds } from '../../../core/repository/events.ts';
import { withUpdatesInPlace } from '../../../core/use-cases/pushing/restore-wide-updates.ts';

interface Change extends ActivityRow {
  readonly target: string | null;
}

function rowOf({ target: _target, ...row }: Change): ActivityRow {
  return row;
}

function thingOf(ref: string): ChangedThing {
  if (ref.startsWith('refs/heads/')) return 'branch';
  return ref.startsWith('refs/tags/') ? 'tag' : 'ref';
}

export function createMemoryActivity(options: {
  readonly events: EventStore;
  readonly digest: Digest;
}): ActivityReader {
  async function changesOf(repository: RepositoryId): Promise<readonly Change[]> {
    const stream = streamName('repository', repository);
    const names = new Map<string, string>();
    const all = await options.events.readAll(LOG_START, Number.MAX_SAFE_INTEGER);
    for (const recorded of all) {
      if (categoryOf(recorded.stream) !== 'accessToken') continue;
      const event = readEvent(accessTokenEventKinds, recorded);
      if (event.type === 'AccessTokenRevoked' || event.type === 'AccessTokenExchanged') continue;
      if (event.data.name !== undefined) {
        names.set(entityIdOf(recorded.stream), event.data.name);
      }
    }
    const changes: Change[] = [];
    for (const recorded of all) {
      if (recorded.stream !== stream || recorded.type !== 'RefsUpdated') continue;
      const event = readEvent(repositoryEventKinds, await withUpdatesInPlace(options, recorded));
      if (event.type !== 'RefsUpdated') continue;
      const { revision, id: eventId, occurredAt: at, actor } = recorded;
      const tokenName = actor.kind === 'token' ? (names.get(actor.id) ?? null) : null;
      const push: PushRow = { revision, eventId, at, actor, tokenName };
      for (const update of event.data.updates) {
        const { ref } = update;
        const kind = event.data.restored === null ? update.kind : 'restore';
        const ids = { before: objectId(update.before), after: objectId(update.after) };
        const target = update.kind === 'delete' ? null : (update.peeled ?? update.after);
        changes.push({ number: changes.length, push, ref, ...ids, kind, target });
      }
    }
    return changes;
  }

  return {
    activity: async (repository, { offset, limit }) => {
      const all = (await changesOf(repository)).toReversed();
      const items = all.slice(offset, offset + limit).map(rowOf);
      return { items, total: all.length };
    },
    pushActivity: async (repository, { before, limit, changes }) => {
      const byRevision = Map.groupBy(await changesOf(repository), ({ push }) => push.revision);
      const revisions = [...byRevision.keys()].filter((revision) => before === null || revision < before);
      return revisions
        .toSorted((a, b) => b - a)
        .slice(0, limit)
        .flatMap((revision) => {
          const own = byRevision.get(revision) ?? [];
          const [first] = own;
          if (first === undefined) return [];
          const counts = [...Map.groupBy(own, ({ ref, kind }) => `${kind} ${thingOf(ref)}`).values()].flatMap(
            ([change, ...more]) =>
              change === undefined ? [] : [{ kind: change.kind, thing: thingOf(change.ref), count: more.length + 1 }],
          );
          const shown = changes === 0 ? [] : own.slice(-changes).toReversed().map(rowOf);
          return [{ push: first.push, counts, first: first.number, count: own.length, changes: shown }];
        });
    },
    changes: async (repository, first, count) =>
      (await changesOf(repository))
        .slice(first, first + count)
        .toReversed()
        .map(rowOf),
    pushes: async (repository, revisions) => {
      const pushes = new Map((await changesOf(repository)).map(({ push }) => [push.revision, push]));
      return revisions.flatMap((revision) => pushes.get(revision) ?? []);
    },
    keyedPush: async (repository, push) => {
      for (const recorded of await options.events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
        if (recorded.stream !== streamName('repository', repository) || recorded.type !== 'RefsUpdated') continue;
        const event = readEvent(repositoryEventKinds, recorded);
        if (event.type !== 'RefsUpdated' || event.data.push_id !== push) continue;
        const { request_digest: requestDigest } = event.data;
        const { revision, id: eventId, occurredAt: at } = recorded;
        return requestDigest === null ? null : { revision, eventId, at, requestDigest };
      }
      return null;
    },
    pushTips: async (repository, from, limit) =>
      (await changesOf(repository))
        .filter(({ number, target }) => number >= from && target !== null)
        .slice(0, limit)
        .map(({ number, push, target }) => ({ number, revision: push.revision, target: objectId(target ?? '') })),
  };
}
