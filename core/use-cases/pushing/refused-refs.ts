/**
 * The refs that a push was refused, whose objects its layer leaves out: otherwise a mirrored push that is refused in
 * part stores the same objects each time.
 *
 * Must stay true: from then on these refs stay refused, whatever a later race decides, since the layer may lack what
 * they reach.
 */
import type { RefName } from '../../git/ref-name.ts';
import { objectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
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

/** Leaves the objects of refused refs out of the pack, and returns these refs. */
export async function leaveOutRefused(about: LeftOut): Promise<RefusedRefs> {
  const { quarantine, decision, refusedNames, checked, signal } = about;
  const refused = new Map(decision.results.flatMap(({ ref, code }) => (code === null ? [] : [[ref, code] as const])));
  if (quarantine === null || quarantine.objectCount === 0 || refused.size + refusedNames === 0) return NONE_REFUSED;
  const tips = decision.updates.flatMap(({ after }) => (after === ZERO_OBJECT_ID ? [] : [objectId(after)]));
  await quarantine.keepReached(tips, currentTips(checked), signal);
  return refused;
}
