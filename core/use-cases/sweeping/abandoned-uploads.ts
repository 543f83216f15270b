/**
 * Half-written layers that processes left when they died: finds them with the account they belong to, and removes them.
 *
 * Invariants: what a living process writes is neither told of nor removed, and what may be of one stays for a day.
 */
import { streamName } from '../../kernel/envelope.ts';
import { type AccountId, parseUuid, type RepositoryId } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { IncomingLayer, LayerStore } from '../../ports/layer-store.ts';
import type { Log } from '../../ports/log.ts';
import type { RepositoryOwners } from '../../ports/repository-lists.ts';

export interface LeftIncomingContext extends RepositoryOwners {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly layers: Pick<LayerStore, 'incoming'>;
}

export interface LeftIncoming extends IncomingLayer {
  /** Null: the file does not name it. */
  readonly repository: RepositoryId | null;
  /** Whose repository it was to become a layer of; null if the log does not know the repository. */
  readonly account: AccountId | null;
}

const REPOSITORY_KEY = /^repositories\/([^/]+)\//;

export async function* leftIncoming(context: LeftIncomingContext): AsyncGenerator<LeftIncoming, void, undefined> {
  for await (const incoming of context.layers.incoming?.list() ?? []) {
    if (!incoming.isLeft) continue;
    const repository = parseUuid<RepositoryId>(REPOSITORY_KEY.exec(incoming.key ?? '')?.[1] ?? '');
    const account = repository === null ? null : await accountOf(context, repository);
    yield { ...incoming, repository, account };
  }
}

async function accountOf(
  { events, ownerOf }: Omit<LeftIncomingContext, 'layers'>,
  repository: RepositoryId,
): Promise<AccountId | null> {
  const [first] = await events.readStream(streamName('repository', repository), { direction: 'forwards', limit: 1 });
  return first === undefined ? ownerOf(repository) : first.accountId;
}

/** Returns how many it removed. Resolves early when the signal is aborted. */
export async function removeLeftIncoming(
  context: LeftIncomingContext & { readonly log: Log },
  signal: AbortSignal,
): Promise<number> {
  let removed = 0;
  for await (const left of leftIncoming(context)) {
    if (signal.aborted) break;
    await context.layers.incoming?.remove(left);
    removed += 1;
    const { account, repository, sizeBytes, at } = left;
    context.log.info({ account, repository, sizeBytes, at }, 'Removed a half-written layer of a process that died');
  }
  return removed;
}
