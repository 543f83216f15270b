/** Why a ref is not as wanted: the words of a push, and those for changes that are made without git. */
import { TAG_CHAIN_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import type { RefRefusalCode } from '../../../core/repository/commands.ts';
import type { RefFault } from '../../../core/use-cases/pushing/change-refs.ts';

/** The reason that git shows in brackets beside the ref: short, without a full stop. */
export const REF_REFUSALS: { readonly [Code in RefRefusalCode]: string } = {
  'ref-moved': 'someone else moved it first: fetch, then push again',
  'ref-exists': 'it exists already: fetch, then push again',
  'ref-missing': 'it does not exist here any more: fetch, then push again',
  'ref-collides': 'a ref cannot be a folder of another: choose another name',
  'name-ambiguous': 'readers would take the name for something else: choose another name',
  'too-many-refs': 'the repository holds as many refs as it may: delete others first',
  'object-missing': 'the object it should point to is not here',
  'tag-too-deep': `it is a chain of more than ${TAG_CHAIN_LENGTH_MAX} tags`,
  'branch-needs-commit': 'a branch can only point to a commit',
  'atomic-push-refused': 'atomic push failed: another ref was refused',
};

/** Without what git tells its user to do. */
const REASONS: typeof REF_REFUSALS = {
  ...REF_REFUSALS,
  'ref-moved': 'it has moved: read it, then try again',
  'ref-exists': 'it exists already',
  'ref-missing': 'it does not exist',
  'atomic-push-refused': 'another ref was refused',
};

/** Returns it without a full stop. */
export function reasonOf(fault: RefFault): string {
  return fault.detail === null ? REASONS[fault.code] : fault.detail;
}
