/** What JSON says of a ref that is not as wanted, beside the words. */
import type { RefFault } from '../../core/use-cases/pushing/change-refs.ts';

/** The members of a conflict, if there is one. */
export function movedJson({ head }: RefFault): { readonly code?: string; readonly head?: string } {
  return head === null ? {} : { code: 'head-moved', head };
}
