/**
 * A repository as it stood at a moment, for whoever reads it with git or in a browser: the refs of that moment, over
 * the layers of today, which hold every object that a ref reached within the retention (docs/architecture.md, invariant
 * 4).
 *
 * Invariants: an answer shows all refs of that moment or none. If an object that one of them names has left storage,
 * it is refused. No object is readable but what these refs reach. Memory and work are bounded for each account.
 */
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { Moment } from '../../audit/moment.ts';
import { MIB } from '../../kernel/byte-units.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import { createFairSlots } from '../../kernel/fair-slots.ts';
import type { AccountId, EventId, ObjectId, Timestamp } from '../../kernel/ids.ts';
import { repositories } from '../../repository/evolve.ts';
import type { OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { currentTips } from '../reading/authorise-wants.ts';
import { closing, type ObjectsContext, openView } from '../reading/repository-view.ts';
import type { DeletionsContext } from '../repositories/deletions.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { createKeptByAccount } from './account-cache.ts';
import { logAsOf, repositoryAt } from './as-of.ts';
import { type AbsenceDenial, absenceAt, type DeletedAsOfContext } from './deleted-as-of.ts';
import { type ExpiredTipContext, expiredTip } from './expired-tip.ts';
import { type MomentContext, ownEvent } from './resolve-moment.ts';

/**
 * The memory of a node for repositories as they stood at earlier moments, in all and for one account. The one read last
 * stays, even if it alone is larger. Internal: what is not kept is read again.
 */
export const PAST_REPOSITORIES_SIZE_BYTES_MAX = 64 * MIB;
export const PAST_REPOSITORIES_ACCOUNT_SIZE_BYTES_MAX = 32 * MIB;
/**
 * How many of them a node reads from the log at the same time; one account has one of them read. Internal: further
 * reads wait.
 */
export const PAST_REPOSITORIES_READ_AT_ONCE_MAX = 4;

/** Why a repository cannot be shown as of a moment. */
export type MomentDenial =
  | { readonly code: 'moment-in-future' }
  | { readonly code: 'repository-not-yet-made'; readonly madeAt: Timestamp }
  | { readonly code: 'repository-deleted-then' }
  /** The event is not one of the repository's own stream. */
  | { readonly code: 'event-not-found' }
  /** Objects of that moment have left storage, by this event; null if no event is known. */
  | { readonly code: 'objects-expired'; readonly event: EventId | null };

type Denied = { readonly denied: MomentDenial };

export interface PastRepositories {
  /** Returns the repository as of the moment. `seen`: the log's head when the request arrived. */
  asOf(
    repository: FoundRepository,
    moment: Moment,
    options: { readonly seen: LogPosition; readonly signal: AbortSignal },
  ): Promise<FoundRepository | Denied>;
  /** Says why the account's repository of a name that it has no more cannot be shown; null if it had none. */
  absence(
    wanted: { readonly account: AccountId; readonly name: string },
    moment: Moment,
    options: { readonly seen: LogPosition; readonly signal: AbortSignal },
  ): Promise<AbsenceDenial | null>;
}

export interface PastRepositoriesContext extends MomentContext, ObjectsContext, ExpiredTipContext, DeletionsContext {
  readonly readModels: DeletedAsOfContext['readModels'];
  readonly past: PastEntities;
  readonly events: DeletedAsOfContext['events'];
  readonly clock: DeletedAsOfContext['clock'];
}

interface KeptPast {
  readonly owned: OwnedRepository;
  readonly entity: Entity<OpenRepository>;
  readonly defaultBranch: string;
  /** Whether the layers of a shrink epoch hold the objects: the outcome of the last look. */
  checked: { readonly shrinkEpoch: number; readonly denied: MomentDenial | null } | null;
}

export function createPastRepositories(context: PastRepositoriesContext): PastRepositories {
  const kept = createKeptByAccount<KeptPast>('past_repositories', {
    sizeBytesMax: PAST_REPOSITORIES_SIZE_BYTES_MAX,
    accountSizeBytesMax: PAST_REPOSITORIES_ACCOUNT_SIZE_BYTES_MAX,
  });
  const slots = createFairSlots({ slots: PAST_REPOSITORIES_READ_AT_ONCE_MAX, slotsPerKey: 1 });

  /** Null if the account did not have the repository then. */
  async function read(repository: FoundRepository, position: LogPosition): Promise<KeptPast | null> {
    const { accountId, id } = repository;
    const key = `${id} ${position}`;
    const known = kept.get(accountId, key);
    if (known !== undefined) return known;
    const found = await repositoryAt(context, repository, position);
    if (found === null) return null;
    const past: KeptPast = { ...found, checked: null };
    kept.set(accountId, key, past, repositories.sizeBytes(found.entity.state));
    return past;
  }

  return {
    async asOf(repository, moment, { seen, signal }) {
      const place = await placeOf(context, repository, moment, seen);
      if ('denied' in place) return place;
      const { accountId, id } = repository;
      let past = kept.get(accountId, `${id} ${place.position}`);
      if (past === undefined || !isChecked(past, repository)) {
        const release = await slots.acquire(accountId, signal);
        try {
          past = (await read(repository, place.position)) ?? undefined;
          if (past === undefined) return absentAt(repository, moment);
          if (!isChecked(past, repository)) past.checked = await check(context, repository, past);
        } finally {
          release();
        }
      }
      const denied = past.checked?.denied ?? null;
      return denied === null ? { ...withRefsOf(repository, past), asOf: moment } : { denied };
    },
    async absence(wanted, moment, { seen, signal }) {
      const release = await slots.acquire(wanted.account, signal);
      try {
        return await absenceAt(context, wanted, moment, seen);
      } finally {
        release();
      }
    },
  };
}

/** Returns the position of the log that a moment ends with. */
async function placeOf(
  context: PastRepositoriesContext,
  repository: FoundRepository,
  moment: Moment,
  seen: LogPosition,
): Promise<{ readonly position: LogPosition } | Denied> {
  if ('at' in moment) {
    const prefix = await logAsOf(context, repository.accountId, moment.at, seen);
    return 'refused' in prefix ? { denied: { code: 'moment-in-future' } } : prefix;
  }
  const place = await ownEvent(context, repository, moment.event, seen);
  if (place === null) return { denied: { code: 'event-not-found' } };
  // With the rest of its append: the first push also chooses the default branch, by an event of its own.
  const from = { direction: 'forwards', from: place.revision, limit: 1 } as const;
  const whole = await context.events.readStream(place.stream, from);
  return { position: whole.at(-1)?.position ?? place.position };
}

function absentAt({ owned: { createdAt } }: FoundRepository, moment: Moment): Denied {
  if ('at' in moment && moment.at < createdAt) {
    return { denied: { code: 'repository-not-yet-made', madeAt: createdAt } };
  }
  return { denied: { code: 'repository-deleted-then' } };
}

/** Whether it is known if today's layers hold the objects of that moment. */
function isChecked({ entity, checked }: KeptPast, { entity: { state: now } }: FoundRepository): boolean {
  const nothingDropped = now.keptSinceEpoch !== null && entity.state.shrinkEpoch >= now.keptSinceEpoch;
  return nothingDropped || checked?.shrinkEpoch === now.shrinkEpoch;
}

/** Ids that are looked up before the next look at whether one is missing. */
const LOOKED_UP_AT_ONCE = 1_000;

/**
 * Looks for the objects that the refs of that moment name: the layers are closed under reachability
 * (docs/architecture.md, invariant 3).
 */
async function check(
  context: PastRepositoriesContext,
  repository: FoundRepository,
  past: KeptPast,
): Promise<NonNullable<KeptPast['checked']>> {
  const { state } = repository.entity;
  const missing = await closing(openView(context, repository), async (view): Promise<ObjectId | null> => {
    const current = currentTips(state);
    const tips = new Set([...past.entity.state.refs.entries()].map(([, { id }]) => id));
    const others = [...tips].filter((id) => !current.has(id));
    if (others.length === 0) return null;
    const reader = await view.objects();
    for (let at = 0; at < others.length; at += LOOKED_UP_AT_ONCE) {
      const ids = others.slice(at, at + LOOKED_UP_AT_ONCE);
      const found = await reader.lookup(ids);
      const lacking = ids.find((_, index) => (found[index] ?? null) === null);
      if (lacking !== undefined) return lacking;
    }
    return null;
  });
  const { shrinkEpoch } = state;
  if (missing === null) return { shrinkEpoch, denied: null };
  const event = await expiredTip(context, repository.entity, missing);
  return { shrinkEpoch, denied: { code: 'objects-expired', event } };
}

/**
 * The refs of that moment, over today's layers. These hold more than the refs reach, so a want is never allowed just
 * because its object exists, unless today's refs are the same and reach every object.
 */
function withRefsOf(repository: FoundRepository, past: KeptPast): FoundRepository {
  const { entity: then, defaultBranch } = past;
  // Its addresses have the current name. The one that it had then may be another repository's by now.
  const owned = { ...past.owned, name: repository.owned.name };
  const { state: now, revision } = repository.entity;
  if (then.revision === revision) {
    return { ...repository, owned, entity: { ...repository.entity, state: { ...now, onceReached: false } } };
  }
  const { layers, shrinkEpoch, keptSinceEpoch } = now;
  const state = { ...then.state, layers, shrinkEpoch, keptSinceEpoch, clean: false, onceReached: false, leftTips: [] };
  return { ...repository, owned, entity: { ...then, state }, defaultBranch };
}
