/**
 * Holds contents that a request sends for a commit, until it is answered.
 *
 * Invariants: they have as much room as the pack of a push has then. Its quotas are asked again when they are pushed.
 */
import type { Plans } from '../../account/plans.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { HeldContents, NewContents, StoredBlob } from '../../ports/new-contents.ts';
import type { UsageReader } from '../../ports/usage.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Context } from '../../runtime/execute.ts';
import { roomForPack } from '../../usage/quota.ts';
import { noLongerValid, readAgain } from '../callers/authenticate.ts';
import { type Requirement, stillPermitted } from '../callers/permission.ts';
import type { Principal } from '../callers/principal.ts';
import { type FoundRepository, findRepositoryById } from '../repositories/repositories.ts';
import { quotasOf } from './push-refs.ts';
import { refusalOfPush } from './refusal-of-push.ts';

export interface HoldContentsContext {
  readonly usage: UsageReader;
  readonly plans: Plans;
  readonly newContents: NewContents;
}

export interface ContentsOfRequest extends Pick<HeldContents, 'remove'> {
  /** Takes a content, to its end. Throws the error of its source, and where the node has no room now. */
  add(bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob | { readonly refused: Refusal }>;
}

export async function holdContents(
  { usage, plans, newContents }: HoldContentsContext,
  { repository, signal }: { readonly repository: FoundRepository; readonly signal: AbortSignal },
): Promise<ContentsOfRequest | { readonly refused: Refusal }> {
  const { accountId: account } = repository;
  const quotas = quotasOf({ repository, quotas: plans[repository.account.plan] });
  const room = await roomForPack(usage, account, quotas);
  if ('refused' in room) return refuse(refusalOfPush(room.refused));
  const { packSizeBytesMax: bytesMax, boundBy } = room;
  const held = newContents.hold({ account, bytesMax, signal });
  return {
    remove: () => held.remove(),
    add: async (bytes) => {
      const added = await held.add(bytes);
      if (!('refused' in added)) return added;
      const { refused: code, detail } = added;
      if (code === 'pack-too-large' && boundBy !== null) return refuse({ code: boundBy });
      return refuse(refusalOfPush({ code, detail }));
    },
  };
}

export interface LetIn {
  readonly principal: Principal;
  readonly repository: FoundRepository;
}

/**
 * Returns the caller and the repository at the time when the contents have arrived, which may take days: the token may
 * have been revoked since, and layers that the repository had may have left storage.
 */
export async function letInAgain(
  context: Context & { readonly digest: Digest },
  { principal, repository }: LetIn,
  requirement: Requirement,
): Promise<LetIn | { readonly refused: Refusal }> {
  const { id, accountId } = repository;
  const caller = await readAgain(context, principal);
  const isPermitted = stillPermitted(principal, { requirement, id: '', repository });
  if (caller === null || !isPermitted(caller)) return refuse(noLongerValid(principal));
  await context.entities.reload(repositories, id);
  const current = await findRepositoryById(context, accountId, id);
  return current === null ? refuse({ code: 'repository-not-found' }) : { principal: caller, repository: current };
}
