/** Ref changes and pushes in memory: each read folds the whole log. */
import { accessTokenEventKinds } from '../../../core/access-token/events.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import type { Digest } from '../../../core/kernel/digest.ts';
import { categoryOf, entityIdOf, LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import { objectId, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { ActivityReader, ActivityRow, PushRow } from '../../../core/ports/activity.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { repositoryEventKinds } from '../../../core/repository/events.ts';
import { withUpdatesInPlace } from '../../../core/use-cases/pushing/restore-wide-updates.ts';

interface Change extends ActivityRow {
  readonly target: string | null;
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
      const items = all.slice(offset, offset + limit).map(({ target: _target, ...row }) => row);
      return { items, total: all.length };
    },
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
