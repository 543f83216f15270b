/**
 * The policy that asks for a manifest after each change of a repository's refs, layers, default branch or name.
 *
 * Invariants: a change is passed only after the request for its manifest is stored, so none is forgotten, whichever
 * process dies. Many changes of one repository are one request. No push waits for it. Any number of nodes may run it.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { plusMs, type RepositoryId, type Timestamp, uuid } from '../../kernel/ids.ts';
import { MANIFEST_DELAY_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ManifestWrites, WantedManifest } from '../../ports/manifest-writes.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import { repositories } from '../../repository/evolve.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';

export interface ManifestRequestsContext extends PassingContext {
  readonly manifests: Pick<ManifestWrites, 'want'>;
  readonly clock: Pick<Clock, 'now'>;
}

const POLICY = 'manifests';

/** Reads the log from where it stopped. Rejects if the log, the marks or the requests cannot be reached. */
export async function requestManifests(
  context: ManifestRequestsContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  const wanted = new Map<RepositoryId, WantedManifest>();
  const store = async (): Promise<void> => {
    await context.manifests.want([...wanted.values()]);
    wanted.clear();
  };
  const marks: PolicyMarks = {
    read: (policy) => context.marks.read(policy),
    save: async (policy, mark) => {
      await store();
      await context.marks.save(policy, mark);
    },
  };
  const pass = async (recorded: RecordedEvent): Promise<boolean> => {
    const request = requestOf(recorded, context.clock.now());
    // The first change of a repository is due first.
    if (request !== null && !wanted.has(request.repository)) wanted.set(request.repository, request);
    return true;
  };
  await passEvents({ ...context, marks }, POLICY, pass, signal);
  await store();
}

function requestOf(recorded: RecordedEvent, now: Timestamp): WantedManifest | null {
  const { accountId, occurredAt } = recorded;
  const repository = changedBy(recorded);
  if (repository === null || accountId === null) return null;
  // The clock of the node that appended the event may be ahead.
  const changedAt = occurredAt < now ? occurredAt : now;
  return { account: accountId, repository, dueAt: plusMs(changedAt, MANIFEST_DELAY_MS) };
}

/** Any event of a repository's stream raises its revision. */
function changedBy(recorded: RecordedEvent): RepositoryId | null {
  const { stream, type } = recorded;
  if (categoryOf(stream) === repositories.category) return uuid(entityIdOf(stream));
  if (categoryOf(stream) !== accounts.category || type !== 'RepositoryRenamed') return null;
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  return event.type === 'RepositoryRenamed' ? uuid(event.data.repository_id) : null;
}
