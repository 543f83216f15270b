/**
 * The refs of a repository, as of a moment or now, as JSON text.
 *
 * Invariants: a repository may have some 200,000 refs, so they are sorted and written in parts. A node does so for
 * one request of an account at a time, and for few of all accounts.
 */
import { refsText } from '../../audit/account-state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import { createFairSlots } from '../../kernel/fair-slots.ts';
import type { Timestamp } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { NextTurn } from '../../kernel/turns.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Refs } from '../../repository/ref-runs.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { type LogAsOfContext, logAsOf, repositoryAt } from '../as-of/as-of.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { namedRefs, type TextAnswer } from './account-states.ts';

/**
 * Repositories whose refs, perhaps of the past, a node sends at the same time; of an account one. Internal: further
 * requests wait.
 */
const REPOSITORY_REFS_AT_ONCE_MAX = 4;

export interface RepositoryRefsContext extends LogAsOfContext {
  readonly past: PastEntities;
  readonly clock: Pick<Clock, 'now' | 'nextTurn'>;
}

export interface RepositoryRefs {
  /**
   * Returns `{default_branch, refs}`, the refs in byte order of their names, as of the moment or, for null, as the
   * caller found them. Refused with `repository-not-found` if there was no such repository then, and with
   * `moment-in-future`. Rejects with the signal's reason if it aborts while others have their turn.
   */
  refsAt(
    repository: FoundRepository,
    at: Timestamp | null,
    request: { readonly seen: LogPosition; readonly signal: AbortSignal },
  ): Promise<TextAnswer | { readonly refused: Refusal }>;
}

export function createRepositoryRefs(context: RepositoryRefsContext): RepositoryRefs {
  const slots = createFairSlots({ slots: REPOSITORY_REFS_AT_ONCE_MAX, slotsPerKey: 1 });
  return {
    async refsAt(repository, at, { seen, signal }) {
      const prefix = at === null ? null : await logAsOf(context, repository.accountId, at, seen);
      if (prefix !== null && 'refused' in prefix) return prefix;
      const close = await slots.acquire(repository.accountId, signal);
      try {
        const shown = prefix === null ? repository : await repositoryAt(context, repository, prefix.position);
        if (shown !== null) {
          const { defaultBranch, entity } = shown;
          return { chunks: textOf(defaultBranch, entity.state.refs, context.clock.nextTurn), close };
        }
      } catch (error) {
        close();
        throw error;
      }
      close();
      return refuse({ code: 'repository-not-found' });
    },
  };
}

async function* textOf(defaultBranch: string, refs: Refs, nextTurn: NextTurn): AsyncGenerator<string> {
  yield `{"default_branch":${canonicalJson(defaultBranch)},"refs":`;
  yield* refsText(namedRefs(refs), nextTurn);
  yield '}';
}
