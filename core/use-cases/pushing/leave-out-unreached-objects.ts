/**
 * What the layer of a push leaves out: objects that no accepted ref reaches. Some are of refs that were refused: a
 * mirrored push that is refused in part would store them each time. Others nothing refers to. Both could be fetched by
 * their ids, since a repository serves what its layers hold (docs/git-path.md, Wants).
 *
 * Invariants: from then on the refused refs stay refused, whatever a later race decides, since the layer may lack
 * what they reach.
 */
import type { RefName } from '../../git/ref-name.ts';
import { type ObjectId, objectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import { finishInTurns, type NextTurn } from '../../kernel/turns.ts';
import type { Quarantine } from '../../ports/object-database.ts';
import type { RefRefusalCode, UpdateRefs } from '../../repository/commands.ts';
import { decidingRefs, type UpdateRefsDecision } from '../../repository/decide.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { currentTips } from '../reading/authorise-wants.ts';

export type RefusedRefs = ReadonlyMap<RefName, RefRefusalCode>;

export const NONE_REFUSED: RefusedRefs = new Map();

/** Decides as `decideRefs` does, in turns, but these refs are refused already. */
export async function decideOthers(
  state: OpenRepository,
  command: UpdateRefs,
  refused: RefusedRefs,
  nextTurn: NextTurn,
): Promise<UpdateRefsDecision> {
  if (refused.size === 0) return finishInTurns(decidingRefs(state, command), nextTurn);
  const others = command.updates.filter(({ ref }) => !refused.has(ref));
  const decision = await finishInTurns(decidingRefs(state, { ...command, updates: others }), nextTurn);
  const codes = new Map(decision.results.map(({ ref, code }) => [ref, code]));
  return {
    ...decision,
    results: command.updates.map(({ ref }) => ({ ref, code: refused.get(ref) ?? codes.get(ref) ?? null })),
  };
}

/** What is left out of the pack of a push: `checked` is the state whose layers the pack was last checked against. */
export interface LeftOut {
  readonly quarantine: Quarantine | null;
  readonly decision: UpdateRefsDecision;
  /** The number of further commands that were refused for their names. */
  readonly refusedNames: number;
  readonly checked: OpenRepository;
  readonly signal: AbortSignal;
}

/**
 * How many of the repository's tips end the walk of what a push brought: nearly every push builds on one of them.
 * Internal: both ways find the same objects.
 */
const NEAR_TIPS_MAX = 1_000;

/** Whether a lost race has refused refs since then: the pack still holds what they reach. */
export function refusesMore({ results }: UpdateRefsDecision, refused: RefusedRefs): boolean {
  return results.some(({ ref, code }) => code !== null && !refused.has(ref));
}

/** Leaves what no accepted ref reaches out of the pack, and returns the refused refs. */
export async function leaveOutUnreached(about: LeftOut): Promise<RefusedRefs> {
  const { quarantine, decision, refusedNames, checked, signal } = about;
  const refused = new Map(decision.results.flatMap(({ ref, code }) => (code === null ? [] : [[ref, code] as const])));
  if (quarantine === null || quarantine.objectCount === 0) return NONE_REFUSED;
  const tips = decision.updates.flatMap(({ after }) => (after === ZERO_OBJECT_ID ? [] : [objectId(after)]));
  const known = currentTips(checked);
  const holdsOthers =
    refused.size + refusedNames > 0 || (await quarantine.leavesOver(tips, nearTips(decision, known), signal));
  if (holdsOthers) await quarantine.keepReached(tips, known, signal);
  return refused;
}

/**
 * The tips that the refs leave, and some others. A repository may have hundreds of thousands, and git would read all.
 */
function nearTips({ updates }: UpdateRefsDecision, known: ReadonlySet<ObjectId>): ReadonlySet<ObjectId> {
  const near = new Set(known.values().take(NEAR_TIPS_MAX));
  for (const { before } of updates) {
    const left = objectId(before);
    if (known.has(left)) near.add(left);
  }
  return near;
}
