/**
 * Lets the layers of a repository go before the retention is over, for a purge or an erasure: `LayersExpired`.
 *
 * Invariants: each event is decided on the repository's newest state, and names only layers that no event has let go
 * before, so that the work can be repeated after a crash.
 */
import { readEvent } from '../../kernel/decider.ts';
import { type StreamName, streamName } from '../../kernel/envelope.ts';
import type { EventId, RepositoryId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { ReplacedLayers } from '../../repository/commands.ts';
import { decideRepository } from '../../repository/decide.ts';
import { type LayersExpired, type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Repository } from '../../repository/state.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { readForward } from '../../runtime/read-forward.ts';
import type { RepositoryCommandOrigin } from './repositories.ts';

export interface LayersGone {
  /** The last event; null if there was nothing to let go. */
  readonly event: EventId | null;
  readonly sizeBytes: number;
}

/** Lets those go that compactions replaced; with `all`, which takes a deleted repository, the current ones too. */
export async function letLayersGo(
  context: Context & { readonly failpoint: Failpoint },
  { account, cause, guarding }: RepositoryCommandOrigin,
  { id, all, reason }: { readonly id: RepositoryId; readonly all: boolean; readonly reason: 'purge' | 'erasure' },
): Promise<LayersGone | { readonly refused: Refusal }> {
  const about = { account, cause, ...(guarding === undefined ? {} : { guarding }) };
  let event: EventId | null = null;
  let sizeBytes = 0;
  for (;;) {
    const entity = await context.entities.reload(repositories, id);
    const replaced = await replacedLayers(context, id, entity.state);
    let gone: readonly LayersExpired[] = [];
    const executed = await execute(context, repositories, id, about, (state) => {
      const decision = decideRepository(state, { type: 'PurgeLayers', all, replaced, reason });
      gone = 'refused' in decision ? [] : decision.events.filter((one) => one.type === 'LayersExpired');
      return decision;
    });
    if ('refused' in executed) return executed;
    if (gone.length === 0) return { event, sizeBytes };
    event = executed.entity.lastEventId;
    for (const { data } of gone) for (const { size_bytes } of data.layers) sizeBytes += size_bytes;
    await context.failpoint('purge-appended');
  }
}

/** Returns what compactions replaced and no event has let go yet, in the order of the stream. */
export async function replacedLayers(
  { events }: Pick<Context, 'events'>,
  id: RepositoryId,
  state: Repository,
): Promise<readonly ReplacedLayers[]> {
  const { expiredThrough } = state.status === 'closed' ? state.before : state;
  const stream: StreamName = streamName('repository', id);
  const replaced: ReplacedLayers[] = [];
  for await (const recorded of readForward(events, stream, expiredThrough + 1)) {
    const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
    if (event.type !== 'LayersCompacted') continue;
    replaced.push({ compactedAt: recorded.revision, layers: event.data.removed });
  }
  return replaced;
}
