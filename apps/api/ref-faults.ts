/** Why a ref is not as wanted, as JSON: the words of a push, but for what git tells its user to do. */
import type { RefFault } from '../../core/use-cases/pushing/change-refs.ts';
import { REF_REFUSALS } from '../git-http/push-messages.ts';

const REASONS: typeof REF_REFUSALS = {
  ...REF_REFUSALS,
  'ref-moved': 'it has moved: read it, then try again',
  'ref-exists': 'it exists already',
  'ref-missing': 'it does not exist',
  'atomic-push-refused': 'another ref was refused',
};

export function reasonOf(fault: RefFault): string {
  return fault.detail === null ? REASONS[fault.code] : fault.detail;
}

/** The members of a conflict, if there is one. */
export function movedJson({ head }: RefFault): { readonly code?: string; readonly head?: string } {
  return head === null ? {} : { code: 'head-moved', head };
}
